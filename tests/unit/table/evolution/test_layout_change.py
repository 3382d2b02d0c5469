"""Every change of a layout says what must still hold of the base, in the words of the REST protocol."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import bergline
from bergline import Table
from bergline.format.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertTableUuid,
    Requirement,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.operation import Change, CommitStamp, Operation


@pytest.fixture
def table() -> Iterator[Table]:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
        yield lake.create_table("db.t", schema, partition_by=["region"])


def asked_for(table: Table, act: Callable[[Table], object]) -> list[Change]:
    """The changes that a call commits."""
    found: list[Change] = []
    commit = table._handle.commit

    def note(operation: Operation) -> TableMetadata:
        found.append(operation.attempt(table.metadata, CommitStamp(1, 0)))
        return commit(operation)

    table._handle.commit = note  # type: ignore[method-assign]
    act(table)
    return found


def add_column(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("x", "int")


def remove_field(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("region")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (add_column, (AssertLastAssignedFieldId(2), AssertCurrentSchemaId(0))),
        (remove_field, (AssertLastAssignedPartitionId(1000), AssertDefaultSpecId(0))),
        (lambda t: t.replace_sort_order(["id"]), (AssertDefaultSortOrderId(0),)),
        (lambda t: t.set_properties({"a": "b"}), ()),
        (lambda t: t.set_location("memory://elsewhere"), ()),
        (lambda t: t.upgrade_format(3), ()),
    ],
)
def test_changes_build_on_what_they_change_and_on_nothing_else(
    table: Table, act: Callable[[Table], object], expected: tuple[Requirement, ...]
) -> None:
    assert table.metadata.table_uuid is not None
    (change,) = asked_for(table, act)
    assert change.requirements == (AssertTableUuid(table.metadata.table_uuid), *expected)


def test_spec_that_is_known_is_chosen_and_not_added(table: Table) -> None:
    def back_and_forth(table: Table) -> None:
        remove_field(table)
        with table.update_spec() as spec:
            spec.add_field("region")

    assert table.metadata.table_uuid is not None
    last = asked_for(table, back_and_forth)[-1]
    assert last.requirements == (AssertTableUuid(table.metadata.table_uuid), AssertDefaultSpecId(1))
    assert table.metadata.default_spec_id == 0
