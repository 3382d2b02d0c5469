"""Position delete files joined to few: which ones, in which groups, and what replaces them.

Deletes of data files that are gone are left out. In format version 3 deletion vectors take their place; vectors that
are there already stay as they are.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from bergline.datafiles.write.write_spec import delete_write_spec
from bergline.expressions.evaluate import evaluate
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, bind
from bergline.expressions.project import partition_schema, project_inclusive
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    is_deletion_vector,
    partition_key,
)
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.delete_tallies import DeleteTallies
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import FileGroup
from bergline.scan.planner import FileChoice, plan_scan
from bergline.table.engine.file_groups import in_job_order, packed
from bergline.table.engine.plans import DeleteFileSpec, DeleteJoin, delete_file_spec
from bergline.table.engine.row_engine import FileChanges
from bergline.table.operations.rewrite_files import RewriteFiles, Rewritten, check_same_deletes
from bergline.table.operations.rewrite_options import RewriteOptions


class PositionDeletesResult(msgspec.Struct, frozen=True):
    """What was rewritten; all zero if there was nothing to gain."""

    rewritten_delete_files: int = 0
    added_delete_files: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0

    def __add__(self, other: "PositionDeletesResult") -> "PositionDeletesResult":
        return PositionDeletesResult(*(getattr(self, f) + getattr(other, f) for f in self.__struct_fields__))


class DeleteGroup(msgspec.Struct, frozen=True):
    """Position delete files of a partition, and the data files that their rows are about."""

    removed: tuple[DataFile, ...]
    join: DeleteJoin
    sequence_number: int
    """The highest of the delete files."""


def plan_position_deletes_rewrite(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    row_filter: Predicate,
    options: RewriteOptions,
    *,
    done: Collection[str] = (),
) -> list[DeleteGroup]:
    """The delete files of a snapshot that are worth rewriting, but for those that were written by this already."""
    groups = _worthwhile(io, metadata, snapshot, row_filter, options, done=done)
    if not groups:
        return []
    plan = plan_scan(
        io,
        metadata,
        snapshot.snapshot_id,
        table_schema=metadata.schema,
        columns=metadata.schema,
        row_filter=ALWAYS_TRUE,
        choose=_with_deletes(io, metadata, snapshot),
    )
    targets = _Targets([p for p in plan.files if p.position_deletes])
    spec = delete_file_spec(metadata, {e.data_file.spec_id for group in groups for e in group})
    ordered = in_job_order(groups, _size, options.rewrite_job_order)
    if spec.kind == "vector":  # a data file has one vector, whatever group its deletes are in
        by_partition: dict[Any, list[ManifestEntry]] = defaultdict(list)
        for group in ordered:
            by_partition[partition_key(group[0].data_file)] += group
        ordered = list(by_partition.values())
    return [_group(group, targets, spec) for group in ordered]


def _worthwhile(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    row_filter: Predicate,
    options: RewriteOptions,
    *,
    done: Collection[str],
) -> list[list[ManifestEntry]]:
    manifests = [m for m in load_manifest_list(io, snapshot) if m.content is ManifestContent.DELETES]
    matches = _Partitions(bind(row_filter, metadata.schema), metadata)
    partitions: dict[Any, list[ManifestEntry]] = defaultdict(list)
    for entry in live_entries(io, manifests, metadata):
        file = entry.data_file
        is_known = file.content is FileContent.POSITION_DELETES and not is_deletion_vector(file)
        if is_known and file.file_path not in done and matches.may_hold(file):
            partitions[partition_key(file)].append(entry)
    rules = options.sizes(delete_write_spec(metadata).target_file_size)
    return [
        group
        for entries in partitions.values()
        for group in packed(
            [e for e in entries if rules.rewrite_all or rules.is_off(_size(e))],
            _size,
            rules.largest_group,
            most_items=rules.most_group_files,
        )
        if rules.rewrite_all or rules.is_worth_it([_size(e) for e in group])
    ]


def _with_deletes(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> FileChoice:
    manifests = [m for m in load_manifest_list(io, snapshot) if m.has_live_files]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    tallies = DeleteTallies(io, deletes, metadata, of_several=True)

    def may_have_deletes(files: FileGroup) -> pl.Series:
        found = tallies.of(files)
        return (found["deletes"] > 0) | found["doubt"]

    return may_have_deletes


class RewriteDeletes(RewriteFiles):
    """Delete files in the place of others; data files that get a vector must have no other deletes by then."""

    def __init__(
        self,
        io: FileIO,
        groups: Sequence[DeleteGroup],
        written: Sequence[FileChanges],
        *,
        since: int,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            io,
            Rewritten(
                tuple(file for changes in written for file in changes.delete_files),
                tuple(file for group in groups for file in group.removed),
                sequence_number=max(group.sequence_number for group in groups),
            ),
            since=since,
            branch=branch,
            summary=summary,
            discard_on_failure=True,
        )
        self._vectors = [p for group in groups if group.join.write.kind == "vector" for p in group.join.files]

    def _validate(self, base: TableMetadata, parent: Snapshot, *, follows: bool) -> None:
        super()._validate(base, parent, follows=follows)
        if self._vectors:
            check_same_deletes(self._io, base, parent, self._vectors, sequence_number=-1, branch=self._branch)


class _Partitions:
    """Says of delete files whether their partition may hold rows that match."""

    def __init__(self, row_filter: Predicate, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._projected = {
            spec.spec_id: project_inclusive(row_filter, spec, metadata.schema) for spec in metadata.partition_specs
        }

    def may_hold(self, file: DataFile) -> bool:
        """False only if no row of the partition matches."""
        projected = self._projected[file.spec_id]
        if projected == ALWAYS_TRUE:
            return True
        spec = self._metadata.specs_by_id[file.spec_id]
        values = dict(zip([f.field_id for f in spec.fields], file.partition, strict=True))
        names = partition_schema(spec, self._metadata.schema).names
        return evaluate(projected, lambda name: values[names[name].id]) is True


class _Targets:
    """The data files that position delete files apply to."""

    def __init__(self, files: Sequence[PlannedFile]) -> None:
        self._by_delete: dict[str, list[PlannedFile]] = defaultdict(list)
        for planned in files:
            for delete in planned.position_deletes:
                self._by_delete[delete.file_path].append(planned)

    def of(self, deletes: Sequence[DataFile]) -> list[PlannedFile]:
        found = {p.file.file_path: p for delete in deletes for p in self._by_delete.get(delete.file_path, ())}
        return list(found.values())


def _group(entries: Sequence[ManifestEntry], targets: _Targets, spec: DeleteFileSpec) -> DeleteGroup:
    chosen = {e.data_file.file_path: e.data_file for e in entries}
    numbers = [e.sequence_number or 0 for e in entries]
    files = []
    for planned in targets.of(list(chosen.values())):
        deletes = planned.position_deletes
        if spec.kind != "vector":
            deletes = tuple(d for d in deletes if d.file_path in chosen)
        else:
            # a vector hides all others, and what was about this file alone is about nothing any more
            chosen |= {d.file_path: d for d in deletes if only_data_file(d) is not None}
        files.append(PlannedFile(planned.file, planned.sequence_number, deletes))
    return DeleteGroup(tuple(chosen.values()), DeleteJoin(tuple(files), spec), max(numbers))


def _size(entry: ManifestEntry) -> int:
    return entry.data_file.file_size_in_bytes
