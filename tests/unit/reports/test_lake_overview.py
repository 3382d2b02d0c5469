"""Lists of tables."""

from pathlib import Path

from bergline import Lake, Table
from bergline.reports.lake_overview import lake_overview
from support.fixtures.rows import ORDERS, order_rows


def test_tables_are_listed_with_their_figures(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    orders.refs.create_branch("dev")
    orders.refs.create_tag("v1")
    lake.create_namespace("raw")
    lake.create_table("raw.empty", ORDERS)
    overview = lake_overview(lake)
    assert (overview.namespaces, overview.matching, overview.problems) == ((("db",), ("raw",)), 2, ())
    first, second = overview.tables
    assert (str(first.name), first.totals.rows, first.branches, first.tags) == ("db.orders", 3, 2, 1)
    assert (first.snapshots, first.last_updated_ms) == (1, orders.metadata.last_updated_ms)
    assert (str(second.name), second.totals.rows, second.branches) == ("raw.empty", 0, 0)


def test_a_search_takes_all_words_in_any_case_and_pages_are_cut_from_what_matches(lake: Lake) -> None:
    for name in ("orders", "Orders_Daily", "items"):
        lake.create_table(f"db.{name}", ORDERS)
    found = lake_overview(lake, search="ORD daily")
    assert [str(t.name) for t in found.tables] == ["db.Orders_Daily"]
    page = lake_overview(lake, offset=1, limit=1)
    assert ([str(t.name) for t in page.tables], page.matching) == (["db.items"], 3)
    assert lake_overview(lake, namespace=("db",), search="nothing").tables == ()


def test_a_broken_table_is_listed_with_what_is_wrong(lake: Lake, reopened: Lake, orders: Table) -> None:
    lake.create_table("db.whole", ORDERS)
    Path(orders.metadata_location.removeprefix("file://")).unlink()
    broken, whole = lake_overview(reopened).tables
    assert broken.problem is not None
    assert "metadata.json" in broken.problem.message
    assert (whole.problem, whole.totals.rows) == (None, 0)


def test_a_namespace_that_is_not_there_is_a_problem_and_no_failure(lake: Lake) -> None:
    overview = lake_overview(lake, namespace=("gone",))
    assert overview.tables == ()
    assert "gone" in overview.problems[0].what


def test_pages_of_a_search_come_from_the_database(lake: Lake) -> None:
    lake.create_namespace("other")
    for number in range(5):
        lake.create_table(f"db.t{number}", ORDERS)
    lake.create_table("other.T9", ORDERS)
    lake.create_view("db.v", "SELECT 1", ORDERS)
    pages = [lake_overview(lake, search="T", offset=offset, limit=2) for offset in (0, 2, 4, 6)]
    assert [[str(t.name) for t in page.tables] for page in pages] == [
        ["db.t0", "db.t1"],
        ["db.t2", "db.t3"],
        ["db.t4", "other.T9"],
        [],
    ]
    assert {page.matching for page in pages} == {6}
    assert [str(name) for name in lake_overview(lake, namespace=("db",)).views] == ["db.v"]
    assert lake_overview(lake, namespace=("other",)).views == ()
