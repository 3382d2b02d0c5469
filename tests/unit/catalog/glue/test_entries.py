"""Tables as entries of AWS Glue."""

import time
import types
from collections.abc import Callable, Iterator

import pytest

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.settings import glue_settings
from bergline.catalog.identifiers import TableName
from bergline.errors import AlreadyExistsError, RefusedError, StorageError
from support.servers.glue_server import NEVER_ARRIVES, GlueProxy, refused

ORDERS = TableName(("db",), "orders")


MOVED = TableName(("db",), "moved")
ENDS: list[Callable[[GluePointerStore], bool]] = [lambda s: s.drop(ORDERS, "a"), lambda s: s.rename(ORDERS, MOVED)]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def store(glue: GlueProxy, waits: list[float]) -> Iterator[GluePointerStore]:
    opened = GluePointerStore(glue_settings("glue://", glue.properties), sleep=waits.append)
    opened.create_namespace(("db",), {})
    yield opened
    opened.close()


@pytest.fixture
def orders(store: GluePointerStore) -> TableName:
    store.create(ORDERS, "a")
    return ORDERS


def set_parameters(glue: GlueProxy, name: str = "orders", **parameters: str) -> None:
    """As another tool would: it reads, and writes everything back."""
    table = glue.table("db", name)
    kept = {k: table[k] for k in ("Name", "TableType", "StorageDescriptor") if k in table}
    glue.ask("UpdateTable", DatabaseName="db", TableInput={**kept, "Parameters": table["Parameters"] | parameters})


def test_everything_else_that_others_keep_in_the_table_stays(glue: GlueProxy, store: GluePointerStore) -> None:
    columns = [{"Name": "id", "Type": "bigint", "Comment": "the key"}]
    theirs = {
        "Name": "orders",
        "Description": "all orders",
        "Owner": "sales",
        "Retention": 7,
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [],
        "StorageDescriptor": {"Columns": columns, "Location": "s3://b/orders", "SerdeInfo": {"Name": "x"}},
        "Parameters": {"table_type": "iceberg", "metadata_location": "a", "team": "blue"},
    }
    glue.ask("CreateTable", DatabaseName="db", TableInput=theirs)
    assert store.swap(ORDERS, "a", "b")
    table = glue.table("db", "orders")
    assert {k: table[k] for k in theirs if k != "Parameters"} == {k: v for k, v in theirs.items() if k != "Parameters"}
    assert table["Parameters"]["team"] == "blue"


def test_tables_that_are_not_iceberg_are_neither_listed_nor_touched(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    for name, parameters in {"hive": {}, "delta": {"table_type": "DELTA"}, "half": {"table_type": "ICEBERG"}}.items():
        glue.ask("CreateTable", DatabaseName="db", TableInput={"Name": name, "Parameters": parameters})
        other = TableName(("db",), name)
        assert store.read(other) is None
        assert not store.swap(other, "a", "b")
        assert not store.drop(other)
        assert not store.rename(other, MOVED)
        with pytest.raises(AlreadyExistsError, match=rf"`db\.{name}` already, not an Iceberg table"):
            store.create(other, "a")
        with pytest.raises(AlreadyExistsError, match="not an Iceberg table"):
            store.rename(orders, other)
    assert store.list_names(("db",)) == [orders]
    assert not store.drop_namespace(("db",))


@pytest.mark.parametrize("end", [lambda s: s.drop(ORDERS, "a"), lambda s: s.rename(ORDERS, MOVED)])
def test_deletion_that_meets_another_change_is_sent_again(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, end: Callable[[GluePointerStore], bool]
) -> None:
    glue.fail("DeleteTable", *[refused("ConcurrentModificationException")] * 3)
    assert end(store)
    assert store.create(orders, "x")


@pytest.mark.parametrize("end", ENDS)
def test_what_is_left_when_deleting_never_arrives_is_no_table_and_says_what_it_is(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, end: Callable[[GluePointerStore], bool]
) -> None:
    glue.fail("DeleteTable", NEVER_ARRIVES)
    assert end(store)
    assert store.read(orders) is None
    assert orders not in store.list_names(("db",))
    with pytest.raises(AlreadyExistsError, match="left of a table that was dropped or renamed"):
        store.create(orders, "x")


@pytest.mark.parametrize("end", ENDS)
def test_table_that_may_not_be_deleted_stays_as_it_was(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, end: Callable[[GluePointerStore], bool]
) -> None:
    before = glue.table("db", "orders")["Parameters"]
    glue.fail("DeleteTable", refused("AccessDeniedException"), refused("AccessDeniedException"))
    with pytest.raises(RefusedError, match="AccessDeniedException"):
        end(store)
    assert glue.table("db", "orders")["Parameters"] == before
    assert store.list_names(("db",)) == [orders]


def test_table_that_could_neither_be_deleted_nor_restored_leaves_the_outcome_in_doubt(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    def refuse_from_here_on() -> None:
        glue.fail("UpdateTable", refused("AccessDeniedException"))

    glue.before("DeleteTable", refuse_from_here_on)
    glue.fail("DeleteTable", refused("AccessDeniedException"))
    with pytest.raises(StorageError, match="could neither be deleted"):
        store.drop(orders, "a")


def test_what_was_left_long_ago_is_in_nobodys_way(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    glue.fail("DeleteTable", NEVER_ARRIVES)
    assert store.drop(orders, "a")
    assert not store.drop_namespace(("db",))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert store.create(orders, "x")
    assert store.read(orders) == "x"
    glue.fail("DeleteTable", NEVER_ARRIVES)
    assert store.drop(orders, "x")
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert store.drop_namespace(("db",))


def test_old_name_given_to_another_table_does_not_hide_the_new_one(glue: GlueProxy, orders: TableName) -> None:
    uuids = {"a": "one", "x": "two"}
    store = GluePointerStore(
        glue_settings("glue://", glue.properties),
        load=lambda pointer: types.SimpleNamespace(table_uuid=uuids[pointer]),  # type: ignore[arg-type,return-value]
    )
    assert store.rename(orders, MOVED)
    set_parameters(glue, "moved", **{"bergline.renamed-from": "db.orders"})
    glue.ask(
        "CreateTable",
        DatabaseName="db",
        TableInput={"Name": "orders", "Parameters": {"table_type": "ICEBERG", "metadata_location": "x"}},
    )
    assert store.list_names(("db",)) == [MOVED, orders]
    store.close()
