"""Changes of a table that add no snapshot, of every kind that a client sends, and a table for all of them."""

from collections.abc import Callable

from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.table_metadata import (
    EncryptedKey,
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
)
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)
from bergline.format.partition.sort_order import SortField, SortOrder
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, Bucket
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.testing.catalog_suite import new_snapshot, now_ms, table_metadata

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG
Updates = tuple[Update, ...]


def busy_table(location: str, **properties: str) -> TableMetadata:
    """A table with three snapshots, a branch, a tag, and more than one of everything else."""
    metadata = table_metadata(location, a="0", **properties)
    for _ in range(3):
        snapshot = new_snapshot(metadata)
        metadata = _after(metadata, AddSnapshot(snapshot), SetSnapshotRef("main", snapshot.snapshot_id, BRANCH))
    return _after(
        metadata,
        SetSnapshotRef("dev", _snapshot(metadata, 1), BRANCH),
        SetSnapshotRef("v1", _snapshot(metadata, 1), TAG),
        _add_schema(metadata, "b"),
        AddPartitionSpec(PartitionSpec(1, (PartitionField(1, 1000, "part", IDENTITY),))),
        AddSortOrder(_order(1, "asc")),
        _statistics(metadata, "old"),
        _partition_statistics(metadata, "old"),
        AddEncryptionKey(EncryptedKey("k1", b"1")),
    )


def _after(metadata: TableMetadata, *updates: Update) -> TableMetadata:
    return apply_updates(metadata, updates, base_location=None, now_ms=now_ms())


def _snapshot(metadata: TableMetadata, number: int) -> int:
    return sorted(metadata.snapshots, key=lambda s: s.sequence_number)[number].snapshot_id


def _head(metadata: TableMetadata) -> int:
    return metadata.refs["main"].snapshot_id


def _add_schema(metadata: TableMetadata, name: str) -> AddSchema:
    new = metadata.last_column_id + 1
    fields = (*metadata.schema.fields, NestedField(new, name, required=False, type=LONG))
    return AddSchema(Schema(fields, len(metadata.schemas)), new)


def _add_spec(metadata: TableMetadata, buckets: int) -> AddPartitionSpec:
    field = PartitionField(1, metadata.last_partition_id + 1, f"bucket_{buckets}", Bucket(buckets))
    return AddPartitionSpec(PartitionSpec(max(metadata.specs_by_id) + 1, (field,)))


def _order(number: int, direction: str) -> SortOrder:
    return SortOrder(number, (SortField(1, IDENTITY, direction, "nulls-first"),))


def _statistics(metadata: TableMetadata, name: str) -> SetStatistics:
    return SetStatistics(StatisticsFile(_head(metadata), f"{metadata.location}/{name}.puffin", 9, 3, ()))


def _partition_statistics(metadata: TableMetadata, name: str) -> SetPartitionStatistics:
    file = PartitionStatisticsFile(_head(metadata), f"{metadata.location}/{name}.parquet", 9)
    return SetPartitionStatistics(file)


def _main(metadata: TableMetadata, snapshot_id: int, age_ms: int | None = None) -> SetSnapshotRef:
    kept = metadata.refs["main"].max_ref_age_ms if age_ms is None else age_ms
    return SetSnapshotRef("main", snapshot_id, BRANCH, max_ref_age_ms=kept)


def _other(known: list[int], current: int) -> int:
    return [number for number in known if number != current][0]  # noqa: RUF015  (IndexError if there is none)


METADATA_CHANGES: dict[str, Callable[[TableMetadata], Updates]] = {
    "roll main back": lambda m: (_main(m, _snapshot(m, 1)),),
    "roll main further back": lambda m: (_main(m, _snapshot(m, 0)),),
    "move main forward": lambda m: (_main(m, _snapshot(m, -1)),),
    "retain main": lambda m: (_main(m, _head(m), 5),),
    "retain main for longer": lambda m: (_main(m, _head(m), 6),),
    "move a branch back": lambda m: (SetSnapshotRef("dev", _snapshot(m, 0), BRANCH),),
    "move a branch forward": lambda m: (SetSnapshotRef("dev", _snapshot(m, 1), BRANCH),),
    "publish a branch": lambda m: (_main(m, m.refs["dev"].snapshot_id), RemoveSnapshotRef("dev")),
    "drop a branch": lambda _: (RemoveSnapshotRef("dev"),),
    "create a tag": lambda m: (SetSnapshotRef("v2", _head(m), TAG),),
    "drop that tag": lambda _: (RemoveSnapshotRef("v2"),),
    "move a tag": lambda m: (SetSnapshotRef("v1", _head(m), TAG),),
    "drop a tag": lambda _: (RemoveSnapshotRef("v1"),),
    "drop a tag and create it": lambda m: (RemoveSnapshotRef("v1"), SetSnapshotRef("v1", _snapshot(m, 0), TAG)),
    "make it a branch": lambda m: (RemoveSnapshotRef("v1"), SetSnapshotRef("v1", _snapshot(m, 1), BRANCH)),
    "expire a snapshot": lambda m: (RemoveSnapshots((_snapshot(m, 0),)),),
    "set a property": lambda _: (SetProperties({"a": "1"}),),
    "set it to something else": lambda _: (SetProperties({"a": "2"}),),
    "remove a property": lambda _: (RemoveProperties(("a",)),),
    "add a column": lambda m: (_add_schema(m, "c"), SetCurrentSchema(-1)),
    "add another column": lambda m: (_add_schema(m, "d"), SetCurrentSchema(-1)),
    "use another schema": lambda m: (
        SetCurrentSchema(_other([s.schema_id or 0 for s in m.schemas], m.current_schema_id)),
    ),
    "remove a schema": lambda m: (
        RemoveSchemas((_other([s.schema_id or 0 for s in m.schemas], m.current_schema_id),)),
    ),
    "partition anew": lambda m: (_add_spec(m, 4), SetDefaultSpec(-1)),
    "partition otherwise": lambda m: (_add_spec(m, 8), SetDefaultSpec(-1)),
    "use another spec": lambda m: (SetDefaultSpec(_other([*m.specs_by_id], m.default_spec_id)),),
    "remove a spec": lambda m: (RemovePartitionSpecs((_other([*m.specs_by_id], m.default_spec_id),)),),
    "sort anew": lambda m: (AddSortOrder(_order(len(m.sort_orders), "desc")), SetDefaultSortOrder(-1)),
    "use another order": lambda m: (
        SetDefaultSortOrder(_other([o.order_id for o in m.sort_orders], m.default_sort_order_id)),
    ),
    "move": lambda m: (SetLocation(f"{m.location}/moved"),),
    "set statistics": lambda m: (_statistics(m, "new"),),
    "set other statistics": lambda m: (_statistics(m, "newer"),),
    "remove statistics": lambda m: (RemoveStatistics(_head(m)),),
    "set partition statistics": lambda m: (_partition_statistics(m, "new"),),
    "remove partition statistics": lambda m: (RemovePartitionStatistics(_head(m)),),
    "upgrade": lambda _: (UpgradeFormatVersion(3),),
    "add a key": lambda _: (AddEncryptionKey(EncryptedKey("k2", b"2")),),
    "remove a key": lambda _: (RemoveEncryptionKey("k1"),),
}
"""By name, what each is for a table in some state; one that is impossible there is refused, or raises LookupError."""

RELATED = (
    ("roll main back", "roll main further back", "move main forward", "retain main", "retain main for longer"),
    ("move a branch back", "move a branch forward", "publish a branch", "drop a branch", "roll main back"),
    ("create a tag", "drop that tag"),
    ("move a tag", "drop a tag", "drop a tag and create it", "make it a branch"),
    ("set a property", "set it to something else", "remove a property"),
    ("add a column", "add another column", "use another schema", "remove a schema"),
    ("partition anew", "partition otherwise", "use another spec", "remove a spec"),
    ("sort anew", "use another order"),
    ("set statistics", "set other statistics", "remove statistics"),
    ("set partition statistics", "remove partition statistics"),
)
"""Changes that undo or hide one another."""

UNDONE_BY = {
    "roll main back": "move main forward",
    "move a branch back": "move a branch forward",
    "create a tag": "drop that tag",
    "use another spec": "use another spec",
    "use another order": "use another order",
}
"""Changes after which, once another is made, everything that they require is as it was."""
