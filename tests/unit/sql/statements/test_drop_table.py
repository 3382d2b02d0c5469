"""DROP TABLE and UNDROP TABLE; REFRESH and UNCACHE TABLE."""

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.records import sql_store_of
from bergline.errors import NotFoundError
from bergline.sql.statements.drop_table import DropTable, ForgetCached, UndropTable
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import Session, check_unreadable, meaning, rows_of

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP TABLE IF EXISTS db.t", DropTable(T, if_exists=True)),
        ("DROP TABLE db.t PURGE", DropTable(T, purge=True)),
        ("UNDROP TABLE db.t", UndropTable(T)),
        ("UNDROP TABLE db.t TO db.old", UndropTable(T, ("db", "old"))),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UNDROP TABLE db.t AS db.u", "expected `TO`, the end of the statement, found `AS`"),
        ("DROP TABLE db.t NOW", "expected `PURGE`, the end of the statement, found `NOW`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_purge_deletes_the_files(run: Session, orders: Table) -> None:
    orders.append(order_rows(1))
    run("DROP TABLE db.orders PURGE")
    assert not orders.io.list(orders.location)
    run("DROP TABLE IF EXISTS db.orders PURGE")


def test_create_and_drop_table(lake: Lake) -> None:
    rows_of(lake, "CREATE TABLE db.t (id BIGINT) PARTITIONED BY (bucket(4, id))")
    assert str(lake.load_table("db.t").spec.fields[0].transform) == "bucket[4]"
    rows_of(lake, "DROP TABLE lake.db.t")
    rows_of(lake, "DROP TABLE IF EXISTS db.t")
    assert lake.list_tables("db") == []


def test_nothing_is_cached_without_an_engine(run: Session, orders: Table) -> None:
    assert meaning("REFRESH TABLE db.orders") == ForgetCached(("db", "orders"))
    assert meaning("UNCACHE TABLE IF EXISTS db.nope") == ForgetCached(("db", "nope"), if_exists=True, is_for_good=True)
    assert run("REFRESH TABLE db.orders") == run("UNCACHE TABLE IF EXISTS db.nope") == []
    assert run("REFRESH TABLE elsewhere.orders") is None
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        run("REFRESH TABLE db.nope")


def dropped(lake: Lake, orders: Table) -> None:
    """Drop a table into the trash, as a server does."""
    store = sql_store_of(lake.catalog)
    kept = DroppedTable(TableName(("db",), "orders"), orders.metadata_location, 1, 2, "ann", purges_files=True)
    lake.drop_table("db.orders")
    with store.database.changing() as connection:
        store.table_trash.add(connection, kept)


def test_undrop_brings_a_table_back(run: Session, orders: Table, lake: Lake) -> None:
    orders.append(order_rows(1))
    dropped(lake, orders)
    run("UNDROP TABLE db.orders")
    assert lake.load_table("db.orders").scan().to_arrow().num_rows == 1


def test_undrop_gives_another_name(run: Session, orders: Table, lake: Lake) -> None:
    dropped(lake, orders)
    run("UNDROP TABLE db.orders TO old_orders")
    assert lake.list_tables() == ["db.old_orders"]


def test_undrop_of_a_table_that_was_not_dropped_names_those_that_were(run: Session, orders: Table, lake: Lake) -> None:
    dropped(lake, orders)
    with pytest.raises(NotFoundError, match=r"no dropped table `db\.order`") as caught:
        run("UNDROP TABLE db.order")
    assert "db.orders" in caught.value.near
