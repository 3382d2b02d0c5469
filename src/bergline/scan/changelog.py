"""Changelog planning: the data files of which a snapshot added or deleted rows, from the manifests that it wrote."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

import msgspec
import polars as pl

from bergline.expressions.bound_filter import BoundFilter
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    partition_key,
)
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifests import live_entries, load_entries, load_manifest_list, resolved_columns, spec_of
from bergline.scan.plan import ChangelogPlan, FileChange, PlannedFile, ScanPlan, check_readable, delete_keys
from bergline.scan.planned_files import FileGroup, PlannedFiles
from bergline.scan.planner import bound_on, file_groups, key_columns, plan_scan
from bergline.scan.pruning import Pruning
from bergline.scan.restrictions import check_rows_readable


def plan_changelog(
    io: FileIO,
    metadata: TableMetadata,
    snapshots: Sequence[Snapshot],
    *,
    table_schema: Schema,
    columns: Schema,
    row_filter: Predicate | BoundFilter = ALWAYS_TRUE,
) -> ChangelogPlan:
    """Plan a read of what each of some snapshots changed; their positions in the sequence are the ordinals."""
    check_rows_readable(metadata)
    bound = bound_on(row_filter, table_schema)
    pruning = Pruning(bound, table_schema)
    changes = tuple(
        msgspec.structs.replace(change, ordinal=ordinal, snapshot_id=snapshot.snapshot_id)
        for ordinal, snapshot in enumerate(snapshots)
        for change in _SnapshotChanges(io, metadata, snapshot, pruning).files()
    )
    last = snapshots[-1].snapshot_id if snapshots else None
    return _plan(metadata, last, (table_schema, columns), bound, changes)


def plan_difference(
    io: FileIO,
    metadata: TableMetadata,
    before: int | None,
    after: int | None,
    *,
    table_schema: Schema,
    columns: Schema,
) -> ChangelogPlan:
    """Plan a read of how two snapshots differ, whichever came first, as one change without an ordinal."""
    plans = [plan_scan(io, metadata, s, table_schema=table_schema, columns=columns) for s in (before, after)]
    # a file that was removed and added again has another sequence number: other deletes apply to it
    old, new = ({(p.file.file_path, p.sequence_number): p for p in plan.files} for plan in plans)
    changes: list[FileChange] = []
    for key in dict.fromkeys((*old, *new)):
        first, last = old.get(key), new.get(key)
        change = _file_change(first, last)
        if change is not None:
            changes.append(change)
    return _plan(metadata, after, (table_schema, columns), ALWAYS_TRUE, tuple(changes))


class _SnapshotChanges:
    """What one snapshot changed; its parent may have expired."""

    # spec: the manifests of a snapshot keep the entries of the files that it removed, with the status DELETED

    def __init__(self, io: FileIO, metadata: TableMetadata, snapshot: Snapshot, pruning: Pruning) -> None:
        self._io = io
        self._metadata = metadata
        self._id = snapshot.snapshot_id
        self._number = snapshot.sequence_number
        self._pruning = pruning
        manifests = load_manifest_list(io, snapshot)
        self._data = [m for m in manifests if m.content is ManifestContent.DATA]
        self._deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
        written = [e for m in self._own(self._deletes) for e in load_entries(io, m, metadata)]
        written = [e for e in written if e.snapshot_id == self._id]
        self._removed_deletes = [e for e in written if e.status is EntryStatus.DELETED]
        self._added_deletes = [e for e in written if e.status is EntryStatus.ADDED]

    def files(self) -> Iterator[FileChange]:
        """The data files; removed ones first."""
        for removed in self._written(EntryStatus.DELETED):
            yield _changed_file(removed, _deletes_of(self._before, removed), None)
        for added in self._written(EntryStatus.ADDED):
            # only deletes of the same snapshot apply to rows that are not older than it
            is_plain = added.sequence_number >= self._number and not self._added_deletes
            yield _changed_file(added, None, () if is_plain else _deletes_of(self._after, added))
        if self._added_deletes or self._removed_deletes:
            for planned in self._touched():
                change = _changed_file(planned, _deletes_of(self._before, planned), _deletes_of(self._after, planned))
                if change.may_insert or change.may_delete:
                    yield change

    @cached_property
    def _live(self) -> list[ManifestEntry]:
        return list(live_entries(self._io, self._deletes, self._metadata))

    @cached_property
    def _before(self) -> DeleteIndex:
        """The deletes that existed before the snapshot."""
        new = delete_keys(e.data_file for e in self._added_deletes)
        old = [e for e in self._live if not delete_keys([e.data_file]) <= new]
        return DeleteIndex([*old, *self._removed_deletes], self._metadata)

    @cached_property
    def _after(self) -> DeleteIndex:
        return DeleteIndex(self._live, self._metadata)

    def _own(self, manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
        return [m for m in manifests if m.added_snapshot_id == self._id]

    def _written(self, status: EntryStatus) -> Iterable[PlannedFile]:
        """The data files that the snapshot itself added or removed."""
        own = [m for m in self._own(self._data) if self._pruning.may_match_manifest(m, spec_of(m, self._metadata))]
        chosen = (pl.col("status") == int(status)) & (pl.col("snapshot_id") == self._id)
        groups = []
        for spec_id, frame in resolved_columns(self._io, own, self._metadata).items():
            spec = self._metadata.specs_by_id[spec_id]
            types = partition_types(spec, self._metadata.schema_for(spec))
            groups.append(FileGroup(self._pruning.matching(frame.filter(chosen), spec), spec_id, types))
        return PlannedFiles(groups)

    def _touched(self) -> Iterator[PlannedFile]:
        """The data files that stay, but to which a delete file applies that was added or removed."""
        entries = [*self._added_deletes, *self._removed_deletes]
        changed = DeleteIndex(_distinct(entries), self._metadata)
        paths = [only_data_file(entry.data_file) for entry in entries]
        stays = (pl.col("status") != int(EntryStatus.ADDED)) | (pl.col("snapshot_id") != self._id)
        if all(path is not None for path in paths):
            stays &= pl.col("file_path").is_in(paths)
        live = [m for m in self._data if m.has_live_files]
        for group in file_groups(self._io, live, self._metadata, self._pruning):
            for planned in PlannedFiles([FileGroup(group.frame.filter(stays), group.spec_id, group.partition)]):
                if _deletes_of(changed, planned):
                    yield planned


def _deletes_of(index: DeleteIndex, planned: PlannedFile) -> tuple[DataFile, ...]:
    if not index:
        return ()
    return index.deletes_for(planned.file.file_path, partition_key(planned.file), planned.sequence_number)


def _distinct(entries: Sequence[ManifestEntry]) -> Iterator[ManifestEntry]:
    """The entries with only the latest deletion vector of each data file."""
    seen: set[str] = set()
    for entry in entries:
        path = entry.data_file.referenced_data_file
        if entry.data_file.file_format.upper() != "PUFFIN" or path is None:
            yield entry
        elif path not in seen:
            seen.add(path)
            yield entry


def _file_change(first: PlannedFile | None, last: PlannedFile | None) -> FileChange | None:
    """How two states of a data file differ; None if they do not."""
    planned = first or last
    if planned is None or (first and last and delete_keys(first.deletes) == delete_keys(last.deletes)):
        return None
    return _changed_file(planned, None if first is None else first.deletes, None if last is None else last.deletes)


def _changed_file(
    planned: PlannedFile, before: tuple[DataFile, ...] | None, after: tuple[DataFile, ...] | None
) -> FileChange:
    return FileChange(planned.file, planned.sequence_number, before, after)


def _plan(
    metadata: TableMetadata,
    snapshot_id: int | None,
    schemas: tuple[Schema, Schema],
    bound: Predicate,
    changes: tuple[FileChange, ...],
) -> ChangelogPlan:
    table_schema, columns = schemas
    deletes = list(chain.from_iterable((*(c.before or ()), *(c.after or ())) for c in changes))
    for file in (*(c.file for c in changes), *deletes):
        check_readable(file, metadata.location)
    ids = {i for d in deletes if d.content is FileContent.EQUALITY_DELETES for i in d.equality_ids or ()}
    mapping = metadata.properties.get(NAME_MAPPING_PROPERTY)
    read = ScanPlan(
        snapshot_id=snapshot_id,
        table_schema=table_schema,
        schema=columns,
        filter=bound,
        files=(),
        key_columns=key_columns(metadata, ids),
        specs=metadata.specs_by_id,
        name_mapping=None if mapping is None else parse_name_mapping(mapping),
    )
    return ChangelogPlan(read, changes)
