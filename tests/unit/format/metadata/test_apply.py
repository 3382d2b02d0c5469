"""Updates to schemas, partition specs, sort orders, locations and statistics."""

import pytest

from bergline.errors import BerglineError, ConflictError, InvalidInputError, UnsupportedError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.apply import apply_updates, create_from_updates
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveSchemas,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)
from bergline.format.partition.sort_order import SortField, SortOrder
from bergline.format.partition.transforms import IDENTITY

NOW = 1_700_000_100_000


def apply(metadata: TableMetadata, *updates: Update) -> TableMetadata:
    return apply_updates(metadata, updates, base_location=None, now_ms=NOW)


def sorted_by(metadata: TableMetadata) -> SortOrder:
    return SortOrder(55, (SortField(metadata.schema.fields[0].id, IDENTITY, "asc", "nulls-first"),))


def test_location_and_statistics_are_set_replaced_and_removed(metadata: TableMetadata) -> None:
    snapshot_id = metadata.snapshots[0].snapshot_id
    first = StatisticsFile(snapshot_id, "a", 1, 1, ())
    second = StatisticsFile(snapshot_id, "b", 1, 1, ())
    partition = PartitionStatisticsFile(snapshot_id, "c", 1)
    after = apply(
        metadata, SetLocation("s3://x/"), SetStatistics(first), SetStatistics(second), SetPartitionStatistics(partition)
    )
    assert after.location == "s3://x"
    assert [s for s in after.statistics if s.snapshot_id == snapshot_id] == [second]
    assert partition in after.partition_statistics
    gone = apply(after, RemoveStatistics(snapshot_id), RemovePartitionStatistics(snapshot_id))
    assert not [s for s in (*gone.statistics, *gone.partition_statistics) if s.snapshot_id == snapshot_id]


def test_same_uuid_and_same_version_change_nothing(metadata: TableMetadata) -> None:
    after = apply(metadata, AssignUuid(metadata.table_uuid.upper()), UpgradeFormatVersion(2))
    assert (after.table_uuid, after.format_version) == (metadata.table_uuid, 2)


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (AssignUuid("other"), ConflictError, "it never changes"),
        (UpgradeFormatVersion(1), InvalidInputError, "it never goes down"),
        (UpgradeFormatVersion(4), UnsupportedError, "expected a format version of 1 to 3, found 4"),
        (SetCurrentSchema(-1), InvalidInputError, "expected a schema added before"),
        (SetCurrentSchema(1234), InvalidInputError, "found 1234"),
        (SetDefaultSpec(1234), InvalidInputError, "found 1234"),
        (SetDefaultSortOrder(-1), InvalidInputError, "expected a sort order added before"),
    ],
)
def test_wrong_updates_are_refused(
    metadata: TableMetadata, update: Update, error: type[BerglineError], message: str
) -> None:
    with pytest.raises(error, match=message):
        apply(metadata, update)


@pytest.mark.parametrize(
    ("wire", "update"),
    [
        (b'{"action":"assign-uuid","uuid":"u"}', AssignUuid("u")),
        (b'{"action":"upgrade-format-version","format-version":2}', UpgradeFormatVersion(2)),
        (b'{"action":"set-current-schema","schema-id":-1}', SetCurrentSchema(-1)),
        (b'{"action":"set-default-spec","spec-id":-1}', SetDefaultSpec(-1)),
        (b'{"action":"set-default-sort-order","sort-order-id":-1}', SetDefaultSortOrder(-1)),
        (b'{"action":"set-location","location":"x"}', SetLocation("x")),
        (b'{"action":"remove-statistics","snapshot-id":1}', RemoveStatistics(1)),
        (b'{"action":"remove-partition-specs","spec-ids":[1]}', RemovePartitionSpecs((1,))),
        (b'{"action":"remove-schemas","schema-ids":[1]}', RemoveSchemas((1,))),
    ],
)
def test_updates_are_the_words_of_the_rest_protocol(wire: bytes, update: Update) -> None:
    assert encode_json(update) == wire
    assert decode_json(wire, Update, "x") == update  # type: ignore[arg-type]


def whole_table(metadata: TableMetadata) -> list[Update]:
    return [
        AssignUuid("u"),
        AddSchema(metadata.schema),
        SetCurrentSchema(-1),
        AddPartitionSpec(metadata.spec),
        SetDefaultSpec(-1),
        AddSortOrder(sorted_by(metadata)),
        SetDefaultSortOrder(-1),
        SetLocation("memory:/new"),
    ]


def test_table_is_made_by_updates_alone(metadata: TableMetadata) -> None:
    made = create_from_updates([UpgradeFormatVersion(3), *whole_table(metadata)], now_ms=5)
    assert (made.format_version, made.table_uuid, made.location, made.last_updated_ms) == (3, "u", "memory:/new", 5)
    assert (made.schema.schema_id, made.spec.spec_id, made.sort_order.order_id) == (0, 0, 1)
    assert (made.last_column_id, made.last_partition_id) == (3, 1000)
    assert create_from_updates(whole_table(metadata), now_ms=5).format_version == 2


@pytest.mark.parametrize("missing", range(8))
def test_table_made_by_updates_alone_needs_all_its_parts(metadata: TableMetadata, missing: int) -> None:
    updates = whole_table(metadata)
    del updates[missing]
    with pytest.raises(InvalidInputError):
        create_from_updates(updates, now_ms=5)


def test_snapshot_comes_after_schema_spec_and_order(metadata: TableMetadata) -> None:
    with pytest.raises(InvalidInputError, match="a schema, a partition spec and a sort order before a snapshot"):
        create_from_updates([AddSnapshot(metadata.snapshots[0])], now_ms=5)
