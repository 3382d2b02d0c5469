"""What differs between the format versions 1, 2 and 3, in files and in updates."""

import json
from typing import Any

import msgspec
import pytest

from bergline.errors import BerglineError, ConflictError, FormatError, InvalidInputError, UnsupportedError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import EncryptedKey, TableMetadata
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSnapshot,
    AssignUuid,
    RemoveEncryptionKey,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from bergline.format.partition.sort_order import UNSORTED
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, Bucket

BRANCH = SnapshotRefType.BRANCH
NOW = 1_700_000_100_000
KEY = {"key-id": "k1", "encrypted-key-metadata": "AQID", "encrypted-by-id": "k0", "properties": {"a": "b"}}


def parse(document: Any) -> TableMetadata:
    return parse_metadata(json.dumps(document).encode(), "v3.json")


def apply(metadata: TableMetadata, *updates: Update) -> TableMetadata:
    return apply_updates(metadata, updates, base_location=None, now_ms=NOW)


def snapshot(**fields: Any) -> Snapshot:
    return Snapshot(
        **{"snapshot_id": 104, "timestamp_ms": NOW - 10, "manifest_list": "m", "sequence_number": 4} | fields
    )


@pytest.fixture
def v1(document: dict[str, Any]) -> dict[str, Any]:
    """A v1 document as today's Java writes it."""
    fields = document["partition-specs"][0]["fields"]
    legacy = {"format-version": 1, "schema": document["schemas"][0], "partition-spec": fields}
    for entry in document["snapshots"]:
        del entry["sequence-number"]
    del document["last-sequence-number"]
    return document | legacy


@pytest.fixture
def v3(document: dict[str, Any]) -> dict[str, Any]:
    """A v3 document as Java writes it: an upgraded table with one snapshot since."""
    document["snapshots"][2] |= {"first-row-id": 0, "added-rows": 30, "key-id": "k1"}
    return document | {"format-version": 3, "next-row-id": 30, "encryption-keys": [dict(KEY)]}


@pytest.fixture
def oldest(v1: dict[str, Any]) -> dict[str, Any]:
    """A v1 document of the first writers: one schema, one spec, neither with ids, manifests in place."""
    for key in ("table-uuid", "schemas", "current-schema-id", "partition-specs", "default-spec-id"):
        del v1[key]
    for key in ("last-partition-id", "sort-orders", "default-sort-order-id", "refs", "statistics"):
        del v1[key]
    del v1["schema"]["schema-id"]
    del v1["partition-spec"][0]["field-id"]
    v1["partition-spec"].append({"name": "id_bucket", "transform": "bucket[4]", "source-id": 1})
    for entry in v1["snapshots"]:
        del entry["summary"]
        del entry["schema-id"]
        entry["manifests"] = [entry.pop("manifest-list"), "m2.avro"]
    return v1


@pytest.mark.parametrize("version", ["v1", "document", "v3"])
def test_document_of_each_version_comes_back_as_it_was(version: str, request: pytest.FixtureRequest) -> None:
    document = request.getfixturevalue(version)
    assert json.loads(render_metadata(parse(document))) == document


@pytest.mark.parametrize("version", ["v1", "v3"])
def test_keys_are_written_in_the_order_of_java(version: str, request: pytest.FixtureRequest) -> None:
    rendered = json.loads(render_metadata(parse(request.getfixturevalue(version))))
    head = ["format-version", "table-uuid", "location"]
    specs = ["default-spec-id", "partition-specs", "last-partition-id", "default-sort-order-id", "sort-orders"]
    tail = ["refs", "snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"]
    snapshot_keys = ["snapshot-id", "parent-snapshot-id", "timestamp-ms", "summary", "manifest-list", "schema-id"]
    if version == "v1":
        schemas = ["schema", "current-schema-id", "schemas", "partition-spec"]
        middle = ["last-updated-ms", "last-column-id", *schemas, *specs, "properties", "current-snapshot-id"]
    else:
        times = ["last-sequence-number", "last-updated-ms", "last-column-id"]
        rows = ["properties", "current-snapshot-id", "next-row-id", "encryption-keys"]
        middle = [*times, "current-schema-id", "schemas", *specs, *rows]
        snapshot_keys = ["sequence-number", *snapshot_keys, "first-row-id", "added-rows", "key-id"]
    assert list(rendered) == [*head, *middle, *tail]
    assert list(rendered["snapshots"][2]) == snapshot_keys


def test_oldest_tables_are_understood(oldest: dict[str, Any]) -> None:
    metadata = parse(oldest)
    assert (metadata.table_uuid, metadata.last_sequence_number) == (None, 0)
    assert (metadata.current_schema_id, metadata.schema.schema_id) == (0, 0)
    assert metadata.partition_specs == (
        PartitionSpec(
            0, (PartitionField(2, 1000, "region", IDENTITY), PartitionField(1, 1001, "id_bucket", Bucket(4)))
        ),
    )
    assert (metadata.default_spec_id, metadata.last_partition_id) == (0, 1001)
    assert (metadata.sort_orders, metadata.default_sort_order_id) == ((UNSORTED,), 0)
    assert metadata.refs == {"main": SnapshotRef(103, BRANCH)}
    assert metadata.snapshots[0].manifest_list is None
    assert metadata.snapshots[0].manifests == ("memory:/lake/orders/metadata/snap-101.avro", "m2.avro")
    assert metadata.snapshots[0].summary == {}


def test_oldest_tables_are_written_in_todays_form(oldest: dict[str, Any]) -> None:
    rendered = json.loads(render_metadata(parse(oldest)))
    assert parse(rendered) == parse(oldest)
    assert rendered["table-uuid"] is None
    assert rendered["schema"] == rendered["schemas"][0] == oldest["schema"] | {"schema-id": 0}
    assert [f["field-id"] for f in rendered["partition-spec"]] == [1000, 1001]
    assert rendered["snapshots"] == oldest["snapshots"]


def test_unpartitioned_v1_table_has_999_as_its_last_partition_id(oldest: dict[str, Any]) -> None:
    oldest["partition-spec"] = []
    assert parse(oldest).last_partition_id == 999
    assert parse(oldest | {"last-partition-id": None}).last_partition_id == 999


def test_keys_of_later_versions_are_ignored(v1: dict[str, Any]) -> None:
    assert parse(v1 | {"last-sequence-number": 7, "next-row-id": 5}) == parse(v1)
    assert parse(v1 | {"format-version": 2, "last-sequence-number": 7, "next-row-id": 5}).next_row_id == 0


@pytest.mark.parametrize("key", ["schema", "partition-spec"])
def test_v1_without_lists_needs_the_old_keys(oldest: dict[str, Any], key: str) -> None:
    del oldest[key]
    with pytest.raises(FormatError, match=rf"missing required field `{key}` at \$ in v3\.json"):
        parse(oldest)


@pytest.mark.parametrize("needed", ["current-schema-id", "default-spec-id", "default-sort-order-id"])
def test_v1_with_lists_needs_their_ids(v1: dict[str, Any], needed: str) -> None:
    del v1[needed]
    with pytest.raises(FormatError, match=rf"`{needed}` at \$"):
        parse(v1)


@pytest.mark.parametrize("key", ["next-row-id", "table-uuid", "last-sequence-number", "schemas", "sort-orders"])
def test_v3_needs_its_keys(v3: dict[str, Any], key: str) -> None:
    del v3[key]
    with pytest.raises(FormatError, match=rf"`{key}` at \$ in v3\.json"):
        parse(v3)


def test_v3_table_without_snapshots_is_written_with_null(v3: dict[str, Any]) -> None:
    v3 |= {"current-snapshot-id": -1, "refs": {}, "snapshots": [], "snapshot-log": []}
    rendered = json.loads(render_metadata(parse(v3)))
    assert "current-snapshot-id" in rendered
    assert rendered["current-snapshot-id"] is None


@pytest.mark.parametrize("key", ["snapshot-log", "metadata-log", "current-snapshot-id", "last-partition-id"])
def test_null_is_taken_where_java_takes_it(v1: dict[str, Any], key: str) -> None:
    changes = {key: None} | ({"refs": {}} if key == "current-snapshot-id" else {})
    assert parse(v1 | changes).last_partition_id == 1000


@pytest.mark.parametrize(
    "key",
    ["refs", "snapshots", "properties", "statistics", "partition-statistics", "encryption-keys", "schemas", "location"],
)
def test_null_is_refused_where_java_refuses_it(v3: dict[str, Any], key: str) -> None:
    with pytest.raises(FormatError, match=rf"at \$\.{key} in v3\.json"):
        parse(v3 | {key: None})


@pytest.mark.parametrize("key", ["schema-id", "first-row-id", "added-rows", "key-id"])
def test_null_in_a_snapshot_is_taken_where_java_takes_it(document: dict[str, Any], key: str) -> None:
    document["snapshots"][0][key] = None
    assert parse(document).snapshots[0].first_row_id is None


def test_summary_without_operation_is_written_as_overwrite_first(document: dict[str, Any]) -> None:
    document["snapshots"][0]["summary"] = {"added-records": "1"}
    document["snapshots"][1]["summary"] = {}
    first, second, third = json.loads(render_metadata(parse(document)))["snapshots"]
    assert list(first["summary"].items()) == [("operation", "overwrite"), ("added-records", "1")]
    assert "summary" not in second
    assert third == document["snapshots"][2] | {"sequence-number": 3}


def test_manifest_list_counts_where_a_snapshot_names_manifests_too(v1: dict[str, Any]) -> None:
    v1["snapshots"][0]["manifests"] = ["m.avro"]
    assert parse(v1).snapshots[0].manifests is None


def test_added_rows_without_first_row_id_mean_nothing(v3: dict[str, Any]) -> None:
    v3["snapshots"][0]["added-rows"] = 5
    assert parse(v3).snapshots[0].added_rows is None


BY_NOTHING = {"transform": "identity", "source-id": 9, "direction": "asc", "null-order": "nulls-first"}
VOID_FIELD = {"name": "a", "transform": "void", "source-id": 1}
UNSORTED_TWICE = [{"order-id": n, "fields": []} for n in (0, 4)]
BROKEN: dict[str, tuple[str, list[Any], Any, str]] = {
    "first row id below 0": ("v3", ["snapshots", 2, "first-row-id"], -1, "first-row-id of 0 or more, found -1"),
    "added rows below 0": ("v3", ["snapshots", 2, "added-rows"], -1, "added-rows of 0 or more, found -1"),
    "added rows missing": ("v3", ["snapshots", 2, "added-rows"], None, "added-rows of 0 or more, found None"),
    "no manifests": (
        "v1",
        ["snapshots", 1, "manifest-list"],
        None,
        "manifest-list, found none for snapshot 102",
    ),
    "number in v1": ("v1", ["snapshots", 1, "sequence-number"], 1, "numbers up to 0, found 1 for snapshot 102"),
    "two keys of one id": ("v3", ["encryption-keys"], [KEY, KEY], "each key-id once, found k1 twice"),
    "key that is no base64": ("v3", ["encryption-keys", 0, "encrypted-key-metadata"], "?", "encryption-keys"),
    "empty location": ("v1", ["location"], "", "expected a location"),
    "spec without column": (
        "v1",
        ["partition-specs", 0, "fields", 0, "source-id"],
        9,
        "column with id 9",
    ),
    "spec with the name of a column": (
        "v3",
        ["partition-specs", 0, "fields", 0, "name"],
        "id",
        "free name for a field of partition spec 0, found the column `id`",
    ),
    "sorted order with id 0": (
        "v3",
        ["sort-orders", 0, "fields"],
        [BY_NOTHING],
        "order-id 0 for the unsorted order and for no other, found 1 fields in order 0",
    ),
    "unsorted order twice": ("v3", ["sort-orders"], UNSORTED_TWICE, "0 fields in order 4"),
    "unsorted order with an id": ("v3", ["sort-orders", 0, "order-id"], 4, "default-sort-order-id"),
    "some field ids": (
        "v1",
        ["partition-specs", 0, "fields"],
        [VOID_FIELD, VOID_FIELD | {"name": "b", "field-id": 5}],
        "for all fields of partition spec 0 or for none, found 1 of 2 without one",
    ),
}


def test_default_order_must_fit_the_schema_and_others_need_not(v3: dict[str, Any]) -> None:
    v3["sort-orders"].append({"order-id": 5, "fields": [BY_NOTHING]})
    assert len(parse(v3).sort_orders) == 2
    with pytest.raises(FormatError, match="column with id 9 for sort order 5, found none in the current schema in v3"):
        parse(v3 | {"default-sort-order-id": 5})


@pytest.mark.parametrize(("version", "path", "value", "message"), BROKEN.values(), ids=list(BROKEN))
def test_broken_document_is_refused(
    version: str, path: list[Any], value: Any, message: str, request: pytest.FixtureRequest
) -> None:
    document = target = request.getfixturevalue(version)
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(FormatError, match=rf"{message}.* in v3\.json"):
        parse(document)


def test_later_version_is_named_even_where_it_breaks_our_expectations() -> None:
    with pytest.raises(UnsupportedError, match=r"format version of 1 to 3, found 4 in v3\.json"):
        parse({"format-version": 4, "location": None})


def test_upgrades_go_one_way_and_change_only_the_number(v1: dict[str, Any]) -> None:
    old = parse(v1)
    two = apply(old, UpgradeFormatVersion(2))
    three = apply(two, SetProperties({"format-version": "3", "uuid": "x", "a": "b"}))
    assert msgspec.structs.replace(two, format_version=1, last_updated_ms=old.last_updated_ms) == old
    assert (three.format_version, three.next_row_id, three.last_sequence_number) == (3, 0, 0)
    assert three.properties == {"owner": "ann", "a": "b"}
    assert two.next_sequence_number == 1
    with pytest.raises(InvalidInputError, match="it never goes down"):
        apply(three, SetProperties({"format-version": "2"}))


def test_table_without_uuid_gets_one_and_needs_it_from_v2_on(oldest: dict[str, Any]) -> None:
    old = parse(oldest)
    assert apply(old, AssignUuid("u"), UpgradeFormatVersion(2)).table_uuid == "u"
    with pytest.raises(InvalidInputError, match="expected a table-uuid in format version 2, found none"):
        apply(old, UpgradeFormatVersion(2))


def test_v1_tables_do_not_count_their_snapshots(v1: dict[str, Any]) -> None:
    old = parse(v1)
    assert old.next_sequence_number == 0
    after = apply(old, AddSnapshot(snapshot(sequence_number=0)), SetSnapshotRef("main", 104, BRANCH))
    assert (after.last_sequence_number, after.current_snapshot_id) == (0, 104)
    with pytest.raises(InvalidInputError, match="sequence number 0 in format version 1, found 4"):
        apply(old, AddSnapshot(snapshot()))


def test_first_commit_after_the_upgrade_counts_from_1(v1: dict[str, Any]) -> None:
    two = apply(parse(v1), UpgradeFormatVersion(2))
    assert apply(two, AddSnapshot(snapshot(sequence_number=1))).last_sequence_number == 1


def test_row_ids_move_on_with_every_snapshot(v3: dict[str, Any]) -> None:
    base = parse(v3)
    one = apply(base, AddSnapshot(snapshot(first_row_id=30, added_rows=12)))
    assert one.next_row_id == 42
    none = apply(one, AddSnapshot(snapshot(snapshot_id=105, sequence_number=5, first_row_id=42, added_rows=0)))
    assert none.next_row_id == 42
    gap = apply(base, AddSnapshot(snapshot(first_row_id=100, added_rows=5)))
    assert gap.next_row_id == 105


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({}, InvalidInputError, "expected first-row-id and added-rows in format version 3, found None and None"),
        ({"first_row_id": 30}, InvalidInputError, "found 30 and None for snapshot 104"),
        ({"first_row_id": 30, "added_rows": -1}, InvalidInputError, "found 30 and -1"),
        ({"first_row_id": 29, "added_rows": 5}, ConflictError, "first-row-id of 30 or more, found 29: another commit"),
        ({"first_row_id": 2**63 - 1, "added_rows": 1}, InvalidInputError, "row ids of 64 bits"),
        ({"first_row_id": 30, "added_rows": 2**48 + 1}, InvalidInputError, "others would have none left"),
        ({"first_row_id": 2**48 + 30, "added_rows": 1}, InvalidInputError, "others would have none left"),
    ],
)
def test_row_ids_that_are_missing_or_taken(
    v3: dict[str, Any], fields: dict[str, int], kind: type[BerglineError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        apply(parse(v3), AddSnapshot(snapshot(**fields)))


def test_older_versions_ask_for_no_row_ids(metadata: TableMetadata) -> None:
    assert apply(metadata, AddSnapshot(snapshot(first_row_id=9, added_rows=9))).next_row_id == 0


def test_encryption_keys_are_added_once_and_removed(metadata: TableMetadata) -> None:
    key = EncryptedKey("k1", b"\1\2\3", "k0")
    once = apply(metadata, AddEncryptionKey(key), AddEncryptionKey(EncryptedKey("k1", b"")))
    assert once.encryption_keys == (key,)
    assert parse_metadata(render_metadata(once), "x") == once
    assert apply(once, RemoveEncryptionKey("other")).encryption_keys == (key,)
    assert apply(once, RemoveEncryptionKey("k1")).encryption_keys == ()


def test_without_main_there_is_no_current_snapshot_and_the_log_stays(metadata: TableMetadata) -> None:
    replaced = apply(metadata, RemoveSnapshotRef("main"))
    assert (replaced.current_snapshot_id, set(replaced.refs)) == (None, {"audit", "v1"})
    assert replaced.snapshot_log == metadata.snapshot_log
    again = apply(replaced, AddSnapshot(snapshot()), SetSnapshotRef("main", 104, BRANCH))
    assert [e.snapshot_id for e in again.snapshot_log] == [101, 102, 103, 104]


def test_changed_retention_of_main_is_logged_as_in_java(metadata: TableMetadata) -> None:
    after = apply(metadata, SetSnapshotRef("main", 103, BRANCH, min_snapshots_to_keep=5))
    assert [e.snapshot_id for e in after.snapshot_log] == [101, 102, 103, 103]
    assert after.snapshot_log[-1].timestamp_ms == NOW


def test_entry_of_a_snapshot_gone_before_cuts_the_log_only_when_snapshots_are_removed(metadata: TableMetadata) -> None:
    gone = msgspec.structs.replace(metadata, snapshots=metadata.snapshots[1:], refs={"main": metadata.refs["main"]})
    assert apply(gone, SetProperties({"a": "b"})).snapshot_log == metadata.snapshot_log
    assert [e.snapshot_id for e in apply(gone, RemoveSnapshots((102,))).snapshot_log] == [103]


def test_v1_specs_have_sequential_ids(v1: dict[str, Any]) -> None:
    gap = PartitionSpec(1, (PartitionField(1, 1001, "b", Bucket(2)),))
    with pytest.raises(InvalidInputError, match=r"1000, 1001, … in format version 1, found \[1001\]"):
        apply(parse(v1), AddPartitionSpec(gap))


def test_log_time_that_runs_backwards_is_refused(metadata: TableMetadata) -> None:
    early = snapshot(timestamp_ms=metadata.last_updated_ms - 70_000)
    with pytest.raises(InvalidInputError, match="expected times in order"):
        apply(metadata, AddSnapshot(early), SetSnapshotRef("main", 104, BRANCH))


def test_text_that_utf_8_cannot_hold_is_refused(metadata: TableMetadata) -> None:
    with pytest.raises(InvalidInputError, match="without lone surrogates"):
        render_metadata(apply(metadata, SetProperties({"a": "\ud800"})))
