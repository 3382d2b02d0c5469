"""A table at a glance."""

from pathlib import Path

import pyarrow as pa

from bergline import Lake, Table
from bergline.reports.table_overview import ref_lines, table_overview
from support.fixtures.rows import order_rows


def test_refs_are_counted_from_main(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    orders.refs.create_tag("v1")
    orders.append(order_rows(2)).append(order_rows(3))
    orders.append(order_rows(4), branch="dev")
    lines = ref_lines(orders.metadata)
    assert [(line.name, line.ahead, line.behind) for line in lines] == [("main", 0, 0), ("dev", 1, 2), ("v1", 0, 2)]
    assert [line.totals.rows for line in lines] == [3, 2, 1]


def test_a_ref_without_an_ancestor_in_common_has_no_distance(orders: Table) -> None:
    orders.refs.create_branch("dev")
    orders.append(order_rows(1))
    assert [(line.name, line.ahead, line.behind) for line in ref_lines(orders.metadata)] == [
        ("main", 0, 0),
        ("dev", None, None),
    ]


def test_partitions_and_order_are_terms(lake: Lake, orders: Table) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("region", pa.string())])
    table = lake.create_table("db.parts", schema, partition_by=["day(at)", "bucket(16, id)", "region"])
    table.replace_sort_order(["id desc", "truncate(4, region)"])
    overview = table_overview(table)
    assert overview.partitioned_by == ("day(at)", "bucket(16, id)", "region")
    assert overview.sorted_by == ("id desc nulls last", "truncate(4, region) asc nulls first")
    assert (overview.refs, overview.history.entries, overview.problems) == ((), (), ())


def test_a_head_whose_manifest_list_is_gone_is_a_problem(reopened: Lake, orders: Table) -> None:
    head = orders.append(order_rows(1)).current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    Path(head.manifest_list.removeprefix("file://")).unlink()
    overview = table_overview(reopened.load_table("db.orders"))
    assert (overview.totals.rows, len(overview.history.entries)) == (1, 1)
    assert overview.problems[0].what == "the files of `main`"
    assert head.manifest_list in overview.problems[0].message
