"""Operations that write no files."""

import logging

import msgspec
import pytest

from bergline import Table
from bergline.catalog.identifiers import TableName
from bergline.errors import ConflictError, StorageError
from bergline.format.metadata.requirements import AssertTableUuid
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetProperties
from bergline.table.commits.operation import Change, CommitStamp, MetadataOperation, cleaning_up

STAMP = CommitStamp(1, 1_700_000_000_000)


def set_a(value: str) -> Change:
    return Change((SetProperties({"a": value}),))


def with_a(base: TableMetadata, value: str) -> TableMetadata:
    return msgspec.structs.replace(base, properties={**base.properties, "a": value})


def test_change_requires_the_same_table(orders: Table) -> None:
    change = MetadataOperation(lambda _: set_a("1")).attempt(orders.metadata, STAMP)
    assert change.updates == set_a("1").updates
    assert [type(r) for r in change.requirements] == [AssertTableUuid]


def test_change_that_changes_nothing_is_none(orders: Table) -> None:
    operation = MetadataOperation(lambda _: set_a("1"))
    assert operation.attempt(with_a(orders.metadata, "1"), STAMP) == Change()
    assert MetadataOperation(lambda _: Change()).attempt(orders.metadata, STAMP) == Change()


def test_what_is_overwritten_must_stay_the_same_between_attempts(orders: Table) -> None:
    operation = MetadataOperation(lambda _: set_a("3"), overwrites=lambda base: base.properties.get("a"))
    operation.attempt(with_a(orders.metadata, "1"), STAMP)
    operation.attempt(with_a(orders.metadata, "1"), STAMP)
    with pytest.raises(ConflictError, match="another commit changed the same thing meanwhile"):
        operation.attempt(with_a(orders.metadata, "2"), STAMP)


def test_errors_while_cleaning_up_are_logged_and_others_are_not_hidden(caplog: pytest.LogCaptureFixture) -> None:
    name = TableName(("db",), "t")
    with caplog.at_level(logging.WARNING), cleaning_up(name):
        raise StorageError("disk full")
    assert "could not remove leftover files of `db.t`: disk full" in caplog.text
    with pytest.raises(KeyError), cleaning_up(name):
        raise KeyError("a fault of ours")
