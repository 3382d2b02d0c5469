"""What must still hold when a commit is applied."""

from typing import Any

import msgspec
import pytest

from bergline.errors import AlreadyExistsError, BerglineError, ConflictError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefRetention,
    AssertRefSnapshotId,
    AssertTableUuid,
    Requirement,
    check_requirements,
    same_retention,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveSnapshotRef, RemoveSnapshots, SetProperties, set_ref

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.mark.parametrize(
    "requirement",
    [
        AssertTableUuid(UUID),
        AssertTableUuid(UUID.upper()),
        AssertRefSnapshotId("main", 103),
        AssertRefSnapshotId("v1", 101),
        AssertRefSnapshotId("new", None),
        AssertRefRetention("main"),
    ],
)
def test_requirement_that_holds_passes(metadata: TableMetadata, requirement: Requirement) -> None:
    assert check_requirements(metadata, (requirement,), "db.t") is None


@pytest.mark.parametrize(
    ("requirement", "kind", "message"),
    [
        (AssertCreate(), AlreadyExistsError, "table `db.t` exists already"),
        (AssertTableUuid("other"), ConflictError, f"uuid other, found {UUID}"),
        (AssertRefSnapshotId("main", 102), ConflictError, "at snapshot 102, found it at snapshot 103"),
        (AssertRefSnapshotId("main", None), ConflictError, "at no snapshot, found it at snapshot 103"),
        (AssertRefSnapshotId("gone", 102), ConflictError, "at snapshot 102, found it at no snapshot"),
        (AssertRefRetention("main", 1, 2, 3), ConflictError, "min-snapshots-to-keep 1, max-snapshot-age-ms 2, max-ref"),
        (AssertRefRetention("gone"), ConflictError, "with no retention of its own, found no such ref"),
    ],
)
def test_requirement_that_no_longer_holds(
    metadata: TableMetadata, requirement: Requirement, kind: type[BerglineError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        check_requirements(metadata, (AssertTableUuid(UUID), requirement), "db.t")


def test_table_that_does_not_exist_can_only_be_created() -> None:
    assert check_requirements(None, (AssertCreate(), AssertRefSnapshotId("main", None)), "db.t") is None
    with pytest.raises(ConflictError, match="found None"):
        check_requirements(None, (AssertTableUuid(UUID),), "db.t")
    with pytest.raises(ConflictError, match="found it at no snapshot"):
        check_requirements(None, (AssertRefSnapshotId("main", 5),), "db.t")


@pytest.mark.parametrize(
    ("requirement", "wire"),
    [
        (AssertCreate(), {"type": "assert-create"}),
        (AssertTableUuid("u"), {"type": "assert-table-uuid", "uuid": "u"}),
        (
            AssertRefSnapshotId("main", None),
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        ),
        (
            AssertRefRetention("main", max_ref_age_ms=5),
            {"type": "bergline.assert-ref-retention", "ref": "main", "max-ref-age-ms": 5},
        ),
    ],
)
def test_requirements_have_the_words_of_the_rest_protocol(requirement: Requirement, wire: dict[str, Any]) -> None:
    assert msgspec.json.decode(encode_json(requirement)) == wire
    assert decode_json(encode_json(requirement), Requirement, "x") == requirement


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (AssertLastAssignedFieldId, "last_column_id"),
        (AssertCurrentSchemaId, "current_schema_id"),
        (AssertLastAssignedPartitionId, "last_partition_id"),
        (AssertDefaultSpecId, "default_spec_id"),
        (AssertDefaultSortOrderId, "default_sort_order_id"),
    ],
)
def test_numbers_must_still_be_those_of_the_base(metadata: TableMetadata, make: type, field: str) -> None:
    found = getattr(metadata, field)
    check_requirements(metadata, (make(found),), "db.t")
    with pytest.raises(ConflictError, match=f"to be {found + 1}, found {found}: it changed meanwhile"):
        check_requirements(metadata, (make(found + 1),), "db.t")
    with pytest.raises(ConflictError, match="found None"):
        check_requirements(None, (make(found),), "db.t")


def test_retention_of_refs_that_are_moved_or_decide_what_goes_is_required(metadata: TableMetadata) -> None:
    moved = set_ref("v1", metadata.refs["v1"])
    assert same_retention(metadata, (moved, moved)) == (AssertRefRetention("v1", *metadata.refs["v1"].retention),)
    assert same_retention(metadata, (set_ref("new", metadata.refs["v1"]), SetProperties({"a": "1"}))) == ()
    assert [r.ref for r in same_retention(metadata, (RemoveSnapshotRef("v1"),))] == ["v1"]
    assert {r.ref for r in same_retention(metadata, (RemoveSnapshots((101,)),))} == set(metadata.refs)
