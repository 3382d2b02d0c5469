"""Table metadata as a value: lookups and invariants."""

from typing import Any

import msgspec
import pytest

from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.invariants import check_invariants
from bergline.format.metadata import (
    MetadataLogEntry,
    SnapshotLogEntry,
    TableMetadata,
    new_metadata,
    positive_property,
)
from bergline.format.partition import parse_partition_by
from bergline.format.refs import SnapshotRef, SnapshotRefType
from bergline.format.schema import Schema
from bergline.format.types import LONG, STRING, NestedField, StructType

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


def changed(metadata: TableMetadata, **fields: Any) -> TableMetadata:
    return msgspec.structs.replace(metadata, **fields)


def test_heads_and_ancestors(metadata: TableMetadata) -> None:
    head = metadata.head("audit")
    assert head is not None
    assert [s.snapshot_id for s in metadata.ancestors(103)] == [103, 102, 101]
    assert (head.snapshot_id, metadata.head("nothing")) == (102, None)
    assert metadata.current_snapshot is metadata.snapshot(103)


@pytest.mark.parametrize(("ancestor", "of", "expected"), [(101, 103, True), (103, 103, True), (103, 101, False)])
def test_is_ancestor(metadata: TableMetadata, ancestor: int, of: int, expected: bool) -> None:
    assert metadata.is_ancestor(ancestor, of=of) is expected


def test_expired_parent_ends_the_history(metadata: TableMetadata) -> None:
    without = changed(metadata, snapshots=metadata.snapshots[2:])
    assert [s.snapshot_id for s in without.ancestors(103)] == [103]


def test_loop_of_parents_ends(metadata: TableMetadata) -> None:
    first = msgspec.structs.replace(metadata.snapshots[0], parent_snapshot_id=103)
    looped = changed(metadata, snapshots=(first, *metadata.snapshots[1:]))
    assert [s.snapshot_id for s in looped.ancestors(103)] == [103, 102, 101]


def test_unknown_names_are_not_found(metadata: TableMetadata) -> None:
    with pytest.raises(NotFoundError, match="snapshot with id 5"):
        metadata.snapshot(5)
    with pytest.raises(NotFoundError, match="schema with id 5"):
        metadata.schema_by_id(5)
    with pytest.raises(NotFoundError, match="`maim`") as caught:
        metadata.ref("maim")
    assert caught.value.near == ("main",)


def test_new_table_has_fresh_ids_in_schema_and_spec() -> None:
    schema = Schema(
        fields=(
            NestedField(50, "place", False, StructType((NestedField(60, "city", False, STRING),))),
            NestedField(70, "id", True, LONG),
        )
    )
    metadata = new_metadata(
        schema=schema,
        spec=parse_partition_by(["place.city", "bucket(4, id)"], schema),
        location="memory:/t/",
        properties={"a": "b"},
        table_uuid="u",
        now_ms=5,
    )
    assert [f.source_id for f in metadata.spec.fields] == [3, 2]
    assert (metadata.last_column_id, metadata.last_partition_id) == (3, 1001)
    assert (metadata.location, metadata.refs, metadata.current_snapshot) == ("memory:/t", {}, None)
    assert check_invariants(metadata) is metadata


def test_consistent_metadata_passes(metadata: TableMetadata) -> None:
    assert check_invariants(metadata) is metadata


INCONSISTENT: dict[str, tuple[Any, str]] = {
    "two schemas of one id": (lambda m: {"schemas": m.schemas * 2}, "each schema-id once, found 0 twice"),
    "two specs of one id": (lambda m: {"partition_specs": m.partition_specs * 2}, "each spec-id once"),
    "two orders of one id": (lambda m: {"sort_orders": m.sort_orders * 2}, "each order-id once"),
    "two snapshots of one id": (
        lambda m: {"snapshots": (*m.snapshots, m.snapshots[0])},
        "each snapshot-id once, found 101 twice",
    ),
    "unknown schema": (lambda _: {"current_schema_id": 8}, r"current-schema-id to be one of \[0\], found 8"),
    "unknown spec": (lambda _: {"default_spec_id": 8}, "default-spec-id"),
    "unknown order": (lambda _: {"default_sort_order_id": 8}, "default-sort-order-id"),
    "number above the last": (lambda _: {"last_sequence_number": 2}, "up to 2, found 3 for snapshot 103"),
    "dangling ref": (
        lambda m: {"refs": m.refs | {"x": SnapshotRef(5, TAG)}},
        "known snapshot for ref `x`, found 5",
    ),
    "main elsewhere": (lambda m: {"refs": m.refs | {"main": SnapshotRef(102, BRANCH)}}, "`main` to be the current"),
    "main missing": (lambda _: {"refs": {}}, "current snapshot 103, found None"),
    "main without current": (lambda _: {"current_snapshot_id": None}, "`main` to be the current"),
    "main a tag": (lambda m: {"refs": m.refs | {"main": SnapshotRef(103, TAG)}}, "`main` to be a branch"),
    "snapshot log out of order": (
        lambda m: {"snapshot_log": (SnapshotLogEntry(m.last_updated_ms, 103), SnapshotLogEntry(1, 103))},
        "in the snapshot-log",
    ),
    "metadata log after the update": (
        lambda m: {"metadata_log": (MetadataLogEntry(m.last_updated_ms + 60_001, "f"),)},
        "in the metadata-log",
    ),
}


@pytest.mark.parametrize(("change", "message"), INCONSISTENT.values(), ids=list(INCONSISTENT))
def test_contradiction_is_refused(metadata: TableMetadata, change: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        check_invariants(changed(metadata, **change(metadata)))


def test_clocks_may_differ_by_a_minute(metadata: TableMetadata) -> None:
    log = (MetadataLogEntry(metadata.last_updated_ms + 60_000, "f"),)
    assert check_invariants(changed(metadata, metadata_log=log)).metadata_log == log


@pytest.mark.parametrize(("text", "expected"), [("0", 0), (" 12 ", 12), (None, 7)])
def test_property_is_a_whole_number_or_its_default(metadata: TableMetadata, text: str | None, expected: int) -> None:
    properties = {} if text is None else {"p": text}
    assert positive_property(changed(metadata, properties=properties), "p", 7) == expected


@pytest.mark.parametrize("text", ["-1", "--5", "1.5", "", "many", "\u00b2", "1_000"])
def test_property_that_is_no_whole_number_is_refused(metadata: TableMetadata, text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"for property `p`, found `{text}`"):
        positive_property(changed(metadata, properties={"p": text}), "p", 7)
