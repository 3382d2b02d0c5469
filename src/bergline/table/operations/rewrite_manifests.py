"""Rewrite manifests: the same entries in other manifests, those of one partition side by side."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bergline.arguments import shown
from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.manifest.inheritance import existing_entry
from bergline.format.manifest.manifest import ManifestContent, ManifestEntry, ManifestFile
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata, positive_property
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.branches import branch_head, check_branch_exists
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.manifests.merging import DEFAULT_MANIFEST_SIZE

_Kind = tuple[ManifestContent, int]


class _Group(msgspec.Struct, frozen=True):
    """Manifests of one kind and spec, and those that hold the same live entries now."""

    sources: tuple[ManifestFile, ...]
    written: tuple[ManifestFile, ...]
    entries: int


class RewriteManifests(SnapshotProducer):
    """Every entry keeps its numbers, its row ids and the snapshot that added it.

    What others add meanwhile is kept as it is; only where they replaced a manifest is its kind computed again.
    """

    def __init__(
        self,
        io: FileIO,
        *,
        paths: Collection[str] | None = None,
        spec_id: int | None = None,
        sort_by: Sequence[str] = (),
        min_count: int | None = None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> None:
        """`paths` are those of the manifests to rewrite, by default all, or those of a partition spec.

        `sort_by` are the partition fields that count first for what is written side by side. With `min_count`, only
        kinds of manifests are rewritten that have so many, and become half as many or fewer.
        """
        super().__init__(io, branch, summary or {}, merges=False, starts_branch=False)
        self._paths = None if paths is None else frozenset(paths)
        self._spec_id = spec_id
        self._sort_by = tuple(sort_by)
        self._min_count = min_count
        self._are_checked = False
        self._groups: dict[tuple[_Kind, int], _Group] = {}

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """No change where every kind of files has one manifest at most."""
        check_branch_exists(base, self._branch)
        parent = branch_head(base, self._branch)
        self._check_paths(parent)
        self._check_spec(base)
        if parent is None or not self._work(base, parent):
            return Change()
        return super().attempt(base, stamp)

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The new manifests in front of those that are kept."""
        manifests = load_manifest_list(self._io, parent) if parent else []
        groups = [self._group(base, kind, sources) for kind, sources in self._work(base, parent).items()]
        replaced = {m.manifest_path for group in groups for m in group.sources}
        created = [m for group in groups for m in group.written]
        return Draft(
            SnapshotOperation.REPLACE,
            (*created, *(m for m in manifests if m.manifest_path not in replaced)),
            replaced=len(replaced),
            summary={"entries-processed": str(sum(group.entries for group in groups))},
        )

    def _check_paths(self, parent: Snapshot | None) -> None:
        """Refuse names that are no manifests of the branch; one that others replace meanwhile is left out."""
        if self._paths is None or self._are_checked:
            return
        there = {m.manifest_path for m in load_manifest_list(self._io, parent)} if parent else set()
        if strange := sorted(self._paths - there):
            more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            raise InvalidInputError(
                f"expected the paths of manifests of branch `{self._branch}`, found {shown(strange[0])}{more}"
            )
        self._are_checked = True

    def _check_spec(self, base: TableMetadata) -> None:
        """NotFoundError for a spec or a partition field that the table does not have."""
        specs = {spec.spec_id: spec for spec in base.partition_specs}
        if self._spec_id is not None and self._spec_id not in specs:
            known = ", ".join(map(str, specs))
            raise NotFoundError(
                f"no partition spec {self._spec_id}", kind="spec", name=str(self._spec_id), hints=[f"there are {known}"]
            )
        chosen = specs.values() if self._spec_id is None else [specs[self._spec_id]]
        fields = dict.fromkeys(f.name for spec in chosen for f in spec.fields)
        for name in self._sort_by:
            if name not in fields:
                raise NotFoundError(
                    f"no partition field `{name}` to sort by", kind="partition field", name=name, known=fields
                )

    def _work(self, base: TableMetadata, parent: Snapshot | None) -> dict[_Kind, list[ManifestFile]]:
        """The manifests to rewrite; one alone has nothing to be joined with, unless it has dead entries only."""
        chosen = [
            manifest
            for manifest in (load_manifest_list(self._io, parent) if parent else [])
            if self._spec_id in {None, manifest.partition_spec_id}
            and (self._paths is None or manifest.manifest_path in self._paths)
        ]
        found = {}
        for kind, manifests in _by_kind(chosen).items():
            known = self._groups.get((kind, base.format_version))
            if known is not None and set(known.sources) <= set(manifests):
                found[kind] = list(known.sources)
            elif self._min_count is not None and not _are_many(base, manifests, self._min_count):
                continue
            elif len(manifests) > 1 or not manifests[0].has_live_files:
                found[kind] = manifests
        return found

    def _group(self, base: TableMetadata, kind: _Kind, sources: Sequence[ManifestFile]) -> _Group:
        key = kind, base.format_version
        known = self._groups.get(key)
        if known is None or known.sources != tuple(sources):
            known = self._groups[key] = self._rewrite(base, kind, sources)
        return known

    def _rewrite(self, base: TableMetadata, kind: _Kind, sources: Sequence[ManifestFile]) -> _Group:
        content, spec_id = kind
        live = [e for m in sources if m.has_live_files for e in load_entries(self._io, m, base) if e.is_live]
        names = [f.name for f in base.specs_by_id[spec_id].fields]
        first = [names.index(name) for name in self._sort_by if name in names]
        entries = sorted(map(existing_entry, live), key=lambda entry: _by_partition(entry, first))
        written = self.write_manifests(base, spec_id, entries, content) if entries else ()
        if sum(m.existing_files_count or 0 for m in written) != len(entries):
            raise FormatError(f"expected {len(entries)} live files in the new manifests, found others")
        return _Group(tuple(sources), written, len(entries))


def many_small_manifests(
    base: TableMetadata, manifests: Iterable[ManifestFile], min_count: int
) -> dict[tuple[ManifestContent, int], list[ManifestFile]]:
    """The manifests that are rewritten with a `min_count`, by content and partition spec."""
    by_kind = _by_kind(manifests)
    return {kind: some for kind, some in by_kind.items() if _are_many(base, some, min_count)}


def _by_kind(manifests: Iterable[ManifestFile]) -> dict[_Kind, list[ManifestFile]]:
    by_kind: dict[_Kind, list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        by_kind[manifest.content, manifest.partition_spec_id].append(manifest)
    return by_kind


def _are_many(base: TableMetadata, manifests: Sequence[ManifestFile], min_count: int) -> bool:
    size = max(1, positive_property(base, "commit.manifest.target-size-bytes", DEFAULT_MANIFEST_SIZE))
    becoming = max(1, -(-sum(m.manifest_length for m in manifests) // size))
    return len(manifests) >= max(min_count, 2 * becoming)


def _by_partition(entry: ManifestEntry, first: Sequence[int]) -> tuple[Any, ...]:
    """Nulls first and NaN last; values of one field are of one type."""
    values = entry.data_file.partition
    return tuple(_order(value) for value in (*(values[index] for index in first), *values))


def _order(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)
