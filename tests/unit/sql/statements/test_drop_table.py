"""DROP TABLE; REFRESH and UNCACHE TABLE."""

import pytest
from rows import order_rows
from sql_statements import Session, check_unreadable, meaning, rows_of

from bergline import Lake, Table
from bergline.errors import NotFoundError
from bergline.sql.statements.drop_table import DropTable, ForgetCached

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP TABLE IF EXISTS db.t", DropTable(T, if_exists=True)),
        ("DROP TABLE db.t PURGE", DropTable(T, purge=True)),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
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


def test_nothing_of_a_lakes_table_is_cached(run: Session, orders: Table) -> None:
    assert meaning("REFRESH TABLE db.orders") == ForgetCached(("db", "orders"))
    assert meaning("UNCACHE TABLE IF EXISTS db.nope") == ForgetCached(("db", "nope"), if_exists=True)
    assert run("REFRESH TABLE db.orders") == run("UNCACHE TABLE IF EXISTS db.nope") == []
    assert run("REFRESH TABLE elsewhere.orders") is None
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        run("REFRESH TABLE db.nope")
