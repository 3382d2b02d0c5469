"""How two refs differ, from metadata alone: snapshots on each side, files and rows by partition, columns."""

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from bergline.arguments import counted
from bergline.format.manifest.manifest import DataFile, FileContent, ManifestEntry
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import render_type
from bergline.io.fileio import FileIO
from bergline.notebook import drawn
from bergline.scan.restrictions import check_rows_readable
from bergline.table.references.common_ancestor import Divergence, find_divergence, known_by
from bergline.table.references.snapshot_change import differing_entries
from bergline.table.scans.version import resolve_version

_SHOWN = 20


class PartitionDiff(msgspec.Struct):
    """What was added to and removed from one partition; rows are those of the data files, before deletes."""

    partition: str
    """As in file paths; empty for a table without partitions."""
    spec_id: int
    added_rows: int = 0
    removed_rows: int = 0
    added_data_files: int = 0
    removed_data_files: int = 0
    added_delete_files: int = 0
    removed_delete_files: int = 0
    added_deletes: int = 0
    """Positions and keys in the added delete files."""
    removed_deletes: int = 0

    def __str__(self) -> str:
        return f"{self.partition or 'all rows'}: {', '.join(self._parts())}"

    def _parts(self) -> Iterator[str]:
        for sign, word in (("+", "added"), ("-", "removed")):
            for things, files in (("row", "data_file"), ("delete", "delete_file")):
                if number := getattr(self, f"{word}_{files}s"):
                    of = counted(getattr(self, f"{word}_{things}s"), things)
                    yield f"{sign}{of} in {counted(number, files.replace('_', ' '))}"


class RefDiff(msgspec.Struct, frozen=True):
    """How one ref differs from another."""

    ancestor: Snapshot | None
    """The last common snapshot; None if there is none, or if it has expired."""
    only_from: tuple[Snapshot, ...] = ()
    """The snapshots that only the first has, oldest first, as far as known."""
    only_to: tuple[Snapshot, ...] = ()
    already_merged: frozenset[int] = frozenset()
    """Those of `only_to` whose changes the first already has, by a merge or cherry-pick."""
    partitions: tuple[PartitionDiff, ...] = ()
    schema_changes: tuple[str, ...] = ()
    """By the schemas with which the two are read: a branch with the table's, a tag with its snapshot's."""
    from_ref: str = ""
    to_ref: str = ""

    def __str__(self) -> str:
        """A summary in a few lines: where they diverged, what each has had since, and what differs."""
        parted = "with no common ancestor" if self.ancestor is None else f"since snapshot {self.ancestor.snapshot_id}"
        merged = f", {len(self.already_merged)} of them merged already" if self.already_merged else ""
        own = f"{counted(len(self.only_to), 'snapshot')} of its own{merged}"
        there = f"`{self.from_ref}` has {len(self.only_from)}"
        lines = [f"`{self.to_ref}` against `{self.from_ref}`, {parted}: {own}; {there}"]
        lines += map(str, self.partitions[:_SHOWN])
        if len(self.partitions) > _SHOWN:
            lines.append(f"and {counted(len(self.partitions) - _SHOWN, 'partition')} more")
        return "\n  ".join([*lines, *self.schema_changes])

    def _repr_html_(self) -> str:
        return drawn("diff_html", self)

    def to_arrow(self) -> pa.Table:
        """The partitions as rows."""
        columns = {
            name: pa.string() if name == "partition" else pa.int32() if name == "spec_id" else pa.int64()
            for name in PartitionDiff.__struct_fields__
        }
        schema = pa.schema([pa.field(name, type_, nullable=False) for name, type_ in columns.items()])
        return pa.Table.from_pylist([msgspec.structs.asdict(p) for p in self.partitions], schema)


def diff_refs(io: FileIO, base: TableMetadata, from_ref: str, to_ref: str) -> RefDiff:
    """How the second ref differs from the first; manifests that both have are not opened."""
    check_rows_readable(base)  # partitions reveal values
    before, after = (base.snapshot(base.ref(name).snapshot_id) for name in (from_ref, to_ref))
    divergence = find_divergence(base, after.snapshot_id, before.snapshot_id) or _known(base, before, after)
    old, new = differing_entries(io, base, before, after)
    added = [e for key, e in new.items() if key not in old]
    removed = [e for key, e in old.items() if key not in new]
    return RefDiff(
        divergence.ancestor,
        divergence.others,
        divergence.picked,
        known_by(divergence.picked, divergence.others),
        tuple(_by_partition(base, added, removed)),
        schema_changes(*(resolve_version(base, ref=name).schema for name in (from_ref, to_ref))),
        from_ref,
        to_ref,
    )


def schema_changes(before: Schema, after: Schema) -> tuple[str, ...]:
    """Descriptions of added, dropped, renamed or changed columns; a column is identified by its id."""
    gone = [f"dropped `{name}`" for i, name in before.names_by_id.items() if i not in after.ids]
    return (*gone, *(text for field_id in after.ids for text in _changes(field_id, before, after)))


def _changes(field_id: int, before: Schema, after: Schema) -> Iterator[str]:
    name, new = after.names_by_id[field_id], after.ids[field_id]
    old = before.ids.get(field_id)
    if old is None:
        yield f"added `{name}` {_type(after, field_id)}"
        return
    if before.names_by_id[field_id] != name:
        yield f"renamed `{before.names_by_id[field_id]}` to `{name}`"
    types = _type(before, field_id), _type(after, field_id)
    if types[0] != types[1]:
        yield f"changed `{name}` from {types[0]} to {types[1]}"
    if old.required != new.required:
        yield f"made `{name}` {'required' if new.required else 'optional'}"
    if old.doc != new.doc:
        yield f"changed the comment of `{name}`"


def _type(schema: Schema, field_id: int) -> str:
    wire = render_type(schema.ids[field_id].type)
    return wire if isinstance(wire, str) else str(wire["type"])


def _known(base: TableMetadata, before: Snapshot, after: Snapshot) -> Divergence:
    """The lines as far as they go, if it is no longer known where they diverged."""
    ours, theirs = (tuple(base.ancestors(s.snapshot_id))[::-1] for s in (before, after))
    return Divergence(None, theirs, ours)


def _by_partition(
    base: TableMetadata, added: Iterable[ManifestEntry], removed: Iterable[ManifestEntry]
) -> Iterator[PartitionDiff]:
    """Sums for each partition, by name."""
    sums: dict[tuple[str, int], PartitionDiff] = {}
    for word, entries in (("added", added), ("removed", removed)):
        for entry in entries:
            file = entry.data_file
            key = _partition(base, file), file.spec_id
            _count(sums.setdefault(key, PartitionDiff(*key)), word, file)
    return iter([sums[key] for key in sorted(sums)])


def _count(into: PartitionDiff, word: str, file: DataFile) -> None:
    files, rows = ("data_files", "rows") if file.content is FileContent.DATA else ("delete_files", "deletes")
    for name, more in ((f"{word}_{files}", 1), (f"{word}_{rows}", file.record_count)):
        setattr(into, name, getattr(into, name) + more)


def _partition(base: TableMetadata, file: DataFile) -> str:
    spec = base.specs_by_id[file.spec_id]
    return spec.partition_path(base.schema_for(spec), file.partition)
