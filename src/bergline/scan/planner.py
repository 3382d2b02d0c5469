"""The scan planner: manifests, inheritance, pruning and deletes, all on columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
import polars as pl

from bergline.errors import FormatError
from bergline.expressions.bound_filter import BoundFilter
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, bind
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.inheritance import MANIFEST, entries_together, inherit
from bergline.format.manifest.manifest import (
    ROW_FORMATS,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    partition_key,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from bergline.format.schema.schema import Schema
from bergline.format.types.types import StructType, child_fields
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifest_cache import WRITTEN_ENTRIES
from bergline.scan.manifests import each_batch, live_deletes, load_manifest_list, resolved_by_spec, spec_of
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan, check_readable
from bergline.scan.planned_files import FileGroup, PlannedFiles
from bergline.scan.pruning import Pruning
from bergline.scan.restrictions import check_rows_readable

_MOST_WRITTEN = 32
_Result = TypeVar("_Result")
FileChoice = Callable[[FileGroup], pl.Series]
"""Returns a mask that selects which of some matching files a plan has; it may be called in several threads."""


def scan_outline(
    metadata: TableMetadata,
    snapshot_id: int | None,
    *,
    table_schema: Schema,
    columns: Schema,
    row_filter: Predicate | BoundFilter = ALWAYS_TRUE,
) -> ScanPlan:
    """The plan of a scan without its files, and so without the key columns of their deletes."""
    check_rows_readable(metadata)
    mapping = metadata.properties.get(NAME_MAPPING_PROPERTY)
    return ScanPlan(
        snapshot_id=snapshot_id,
        table_schema=table_schema,
        schema=columns,
        filter=bound_on(row_filter, table_schema),
        files=(),
        specs=metadata.specs_by_id,
        name_mapping=None if mapping is None else parse_name_mapping(mapping),
    )


def plan_scan(
    io: FileIO,
    metadata: TableMetadata,
    snapshot_id: int | None,
    *,
    table_schema: Schema,
    columns: Schema,
    row_filter: Predicate | BoundFilter = ALWAYS_TRUE,
    choose: FileChoice | None = None,
) -> ScanPlan:
    """Plan a scan of a snapshot: the files that may hold rows matching the filter; none without a snapshot.

    With `chosen`, only the selected files are ever in memory together, and they have no metrics.
    """
    outline = scan_outline(metadata, snapshot_id, table_schema=table_schema, columns=columns, row_filter=row_filter)
    if snapshot_id is None:
        return outline
    manifests = [m for m in load_manifest_list(io, metadata.snapshot(snapshot_id)) if m.has_live_files]
    kinds = {kind: [m for m in manifests if m.content is kind] for kind in ManifestContent}
    written = _written_entries(io, manifests) if outline.filter == ALWAYS_TRUE and choose is None else None
    groups: list[FileGroup] = []
    if written is None:
        groups = file_groups(io, kinds[ManifestContent.DATA], metadata, Pruning(outline.filter, table_schema), choose)
        check_groups_readable(groups, metadata)
        entries = list(live_deletes(io, kinds[ManifestContent.DELETES], metadata, paths_in(groups)))
    else:
        entries = written[ManifestContent.DELETES]
        for entry in written[ManifestContent.DATA]:
            check_readable(entry.data_file, metadata.location)
    keys = key_columns(metadata, {i for e in entries for i in e.data_file.equality_ids or ()})
    for entry in entries:
        check_readable(entry.data_file, metadata.location)
    index = DeleteIndex(entries, metadata)
    files: Sequence[PlannedFile] = PlannedFiles([with_deletes(group, index) for group in groups])
    if written is not None:
        files = [_planned(entry, index) for entry in written[ManifestContent.DATA]]
    return msgspec.structs.replace(outline, files=files, key_columns=keys)


def plan_appends(
    io: FileIO,
    metadata: TableMetadata,
    snapshots: Sequence[int],
    *,
    table_schema: Schema,
    columns: Schema,
    row_filter: Predicate | BoundFilter = ALWAYS_TRUE,
) -> ScanPlan:
    """Plan a scan of the files that snapshots added (latest first), as they were added: no deletes apply."""
    check_rows_readable(metadata)
    bound = bound_on(row_filter, table_schema)
    manifests = append_manifests(io, metadata, snapshots)
    groups = added_groups(io, manifests, metadata, Pruning(bound, table_schema), snapshots)
    check_groups_readable(groups, metadata)
    files = PlannedFiles(groups)
    mapping = metadata.properties.get(NAME_MAPPING_PROPERTY)
    return ScanPlan(
        snapshot_id=snapshots[0] if snapshots else None,
        table_schema=table_schema,
        schema=columns,
        filter=bound,
        files=files,
        specs=metadata.specs_by_id,
        name_mapping=None if mapping is None else parse_name_mapping(mapping),
    )


def append_manifests(io: FileIO, metadata: TableMetadata, snapshots: Sequence[int]) -> list[ManifestFile]:
    """The manifests in which snapshots added files, without duplicates."""
    manifests = {
        m.manifest_path: m
        for snapshot_id in snapshots
        for m in load_manifest_list(io, metadata.snapshot(snapshot_id))
        if m.content is ManifestContent.DATA and m.added_snapshot_id == snapshot_id
    }
    return list(manifests.values())


def added_groups(
    io: FileIO,
    manifests: Sequence[ManifestFile],
    metadata: TableMetadata,
    pruning: Pruning,
    snapshots: Sequence[int],
) -> list[FileGroup]:
    """The matching files that snapshots added, by partition spec; no deletes apply."""
    groups = file_groups(io, manifests, metadata, pruning)
    added = (pl.col("status") == int(EntryStatus.ADDED)) & pl.col("snapshot_id").is_in(list(snapshots))
    return [FileGroup(g.frame.filter(added), g.spec_id, g.partition) for g in groups]


def bound_on(row_filter: Predicate | BoundFilter, schema: Schema) -> Predicate:
    """Bind a filter to the columns of a schema."""
    return row_filter.on(schema) if isinstance(row_filter, BoundFilter) else bind(row_filter, schema)


def file_groups(
    io: FileIO,
    manifests: Sequence[ManifestFile],
    metadata: TableMetadata,
    pruning: Pruning,
    choose: FileChoice | None = None,
) -> list[FileGroup]:
    """The matching files by partition spec, without their deletes; only these are ever in memory together.

    Files that cannot be read are always included.
    """
    kept = [m for m in manifests if pruning.may_match_manifest(m, spec_of(m, metadata))]

    def matching(frames: Sequence[pl.DataFrame], places: Sequence[int]) -> list[tuple[int, pl.DataFrame]]:
        found = []
        for spec_id, (batch, own) in resolved_by_spec(frames, [kept[p] for p in places], metadata).items():
            files = _matching(batch, spec_id, metadata, pruning)
            numbers = pl.Series(MANIFEST, [places[p] for p in own], pl.UInt32)
            files = files.with_columns(numbers.gather(files[MANIFEST]))
            found.append((spec_id, files if choose is None else _chosen(files, spec_id, metadata, choose)))
        return found

    by_spec: dict[int, list[pl.DataFrame]] = {m.partition_spec_id: [] for m in kept}
    for batch in each_batch(io, kept, matching):
        for spec_id, files in batch:
            by_spec[spec_id].append(files)
    return [_group(frames, spec_id, metadata) for spec_id, frames in by_spec.items()]


def each_live_group(
    io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata, use: Callable[[FileGroup], _Result]
) -> Iterator[_Result]:
    """Apply a function to the live files of a few manifests of one partition spec at a time, in any order.

    It may run in several threads.
    """

    def used(frames: Sequence[pl.DataFrame], places: Sequence[int]) -> list[_Result]:
        by_spec = resolved_by_spec(frames, [manifests[place] for place in places], metadata)
        live = ((frame.filter(pl.col("status") != int(EntryStatus.DELETED)), i) for i, (frame, _) in by_spec.items())
        return [use(_group([frame], spec_id, metadata)) for frame, spec_id in live]

    for batch in each_batch(io, manifests, used):
        yield from batch


def paths_in(groups: Iterable[FileGroup]) -> pl.Series:
    """The paths of the files of groups."""
    return pl.concat([pl.Series("path", [], pl.String), *(g.frame["file_path"].alias("path") for g in groups)])


def check_groups_readable(groups: Iterable[FileGroup], metadata: TableMetadata) -> None:
    """UnsupportedError if a data file cannot be read, before any is opened."""
    for group in groups:
        unreadable = _unreadable(group.frame)
        if unreadable.any():
            (planned,) = group.only(unreadable).planned(0, 1)
            check_readable(planned.file, metadata.location)


def _written_entries(
    io: FileIO, manifests: Sequence[ManifestFile]
) -> dict[ManifestContent, list[ManifestEntry]] | None:
    """The live entries of a few manifests; None if this process has not just written all of them.

    Reading some entries back, and calculating with them in columns, would take several times as long.
    """
    entries: dict[ManifestContent, list[ManifestEntry]] = {kind: [] for kind in ManifestContent}
    for manifest in manifests:
        written = WRITTEN_ENTRIES.find(io, manifest.manifest_path) if len(manifests) <= _MOST_WRITTEN else None
        if written is None:
            return None
        entries[manifest.content] += (entry for entry in inherit(written, manifest) if entry.is_live)
    return entries


def _planned(entry: ManifestEntry, index: DeleteIndex) -> PlannedFile:
    file, number = entry.data_file, entry.sequence_number or 0
    return PlannedFile(file, number, index.deletes_for(file.file_path, partition_key(file), number))


def _unreadable(frame: pl.DataFrame) -> pl.Series:
    unreadable = ~frame["file_format"].is_in(ROW_FORMATS)
    if unreadable.any():  # other writers may use lower case
        unreadable = ~frame["file_format"].str.to_uppercase().is_in(ROW_FORMATS)
    return unreadable | frame["key_metadata"].is_not_null() if "key_metadata" in frame.columns else unreadable


def with_deletes(group: FileGroup, index: DeleteIndex) -> FileGroup:
    """The files with the deletes that apply to each."""
    if not index:
        return group
    files = group.frame
    rows = zip(files["file_path"].to_list(), group.partition_keys, files["sequence_number"].to_list(), strict=True)
    deletes = [index.deletes_for(path, key, number) for path, key, number in rows]
    return FileGroup(files, group.spec_id, group.partition, deletes)


def _group(frames: Sequence[pl.DataFrame], spec_id: int, metadata: TableMetadata) -> FileGroup:
    """The files of several batches, in the order of their manifests."""
    spec = metadata.specs_by_id[spec_id]
    files = frames[0] if len(frames) == 1 else entries_together([f for f in frames if f.height] or frames[:1])
    if not files[MANIFEST].is_sorted():
        files = files.sort(MANIFEST, maintain_order=True)
    return FileGroup(files, spec_id, partition_types(spec, metadata.schema_for(spec)))


def _chosen(files: pl.DataFrame, spec_id: int, metadata: TableMetadata, choose: FileChoice) -> pl.DataFrame:
    """The chosen files; their columns are copied, so that they do not keep those of the others in memory."""
    group = _group([files], spec_id, metadata)
    kept = group.only(choose(group) | _unreadable(group.frame)).without_metrics.frame
    texts = [name for name, type_ in kept.schema.items() if type_ in (pl.String, pl.Binary)]
    return kept.with_columns(pl.Series(name, kept[name].to_list(), kept.schema[name]) for name in texts)


def _matching(batch: pl.DataFrame, spec_id: int, metadata: TableMetadata, pruning: Pruning) -> pl.DataFrame:
    live = batch.filter(pl.col("status") != int(EntryStatus.DELETED))
    if live["content"].fill_null(0).max():
        raise FormatError("expected data files in a data manifest, found delete files")
    return pruning.matching(live, metadata.specs_by_id[spec_id])


def key_columns(metadata: TableMetadata, ids: Iterable[int]) -> tuple[KeyColumn, ...]:
    """The columns with these ids, each from the latest schema that has it."""
    return tuple(_key_column(metadata, field_id) for field_id in sorted(ids))


def _key_column(metadata: TableMetadata, field_id: int) -> KeyColumn:
    schema = next((s for s in (metadata.schema, *reversed(metadata.schemas)) if field_id in s.ids), None)
    if schema is None:
        raise FormatError(f"expected a column with id {field_id} for equality deletes, found none in any schema")
    path = schema.paths.get(field_id)
    if path is None:
        name = schema.names_by_id[field_id]
        raise FormatError(f"expected equality deletes on columns outside lists and maps, found `{name}`")
    column, fields = msgspec.structs.replace(schema.ids[field_id], required=False), schema.fields
    around = []
    for name in path[:-1]:
        around.append(next(f for f in fields if f.name == name))
        fields = child_fields(around[-1].type)
    for struct in reversed(around):
        column = msgspec.structs.replace(struct, required=False, type=StructType((column,)))
    return KeyColumn(field_id, path, column)
