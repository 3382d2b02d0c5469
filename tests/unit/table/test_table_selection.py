"""Which tables a change to several is about."""

import pytest

from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.table.table_selection import find_tables, named_tables, selected_tables, tables_with_ref
from support.fixtures.rows import ORDERS, order_rows

ORDERS_NAME, ITEMS_NAME = TableName(("db",), "orders"), TableName(("db",), "items")


@pytest.fixture
def two(lake: Lake) -> Lake:
    for name in ("db.items", "db.orders"):
        lake.create_table(name, ORDERS).append(order_rows(1))
    lake.load_table("db.items").refs.create_tag("v1")
    return lake


def test_named_tables_are_each_given_once() -> None:
    assert named_tables(["db.orders", ITEMS_NAME]) == (ORDERS_NAME, ITEMS_NAME)
    with pytest.raises(InvalidInputError, match=r"expected each table once, found `db\.orders` twice"):
        named_tables(["db.orders", ORDERS_NAME])


@pytest.mark.parametrize("given", ["db.orders", 7, []])
def test_one_name_or_none_is_no_list_of_tables(given: object) -> None:
    with pytest.raises(InvalidInputError, match=r"expected (a list of tables|at least one table)"):
        named_tables(given)  # type: ignore[arg-type]


def test_tables_are_selected_by_name_or_by_namespace(two: Lake) -> None:
    assert selected_tables(two.catalog, ["db.orders"], None) == (ORDERS_NAME,)
    assert set(selected_tables(two.catalog, None, "db")) == {ORDERS_NAME, ITEMS_NAME}
    for tables, namespace, found in ((None, None, "neither"), (["db.orders"], "db", "both")):
        with pytest.raises(InvalidInputError, match=f"either tables or a namespace, found {found}"):
            selected_tables(two.catalog, tables, namespace)
    two.create_namespace("empty")
    with pytest.raises(NotFoundError, match="no table in namespace `empty`"):
        selected_tables(two.catalog, None, "empty")


def test_tables_with_a_ref_are_found_and_all_refs_are_collected(two: Lake) -> None:
    known: set[str] = set()
    assert tables_with_ref(two.catalog, "v1", None, None, known) == (ITEMS_NAME,)
    assert known == {"main", "v1"}
    assert list(find_tables(two.catalog, "v2", "db")) == []
