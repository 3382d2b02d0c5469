"""Graphs as `git log --graph` draws them."""

import pytest

from bergline import Table
from bergline.cli.output.graph import draw_graph
from bergline.reports.history import HistoryEdge, HistoryEntry, TableHistory, table_history
from support.fixtures.rows import order_rows


def entry(row: int, lane: int, forks: tuple[int, ...] = ()) -> HistoryEntry:
    return HistoryEntry(
        row, lane, row, None, 0, 0, "append", *[None] * 9, refs=(), wap_id=None, source_id=None, on_ref=True,
        parent_expired=False, forks=forks,
    )  # fmt: skip


def drawn(entries: list[HistoryEntry], edges: list[tuple[int, int, int, int]]) -> list[str]:
    lanes = max(e.lane for e in entries) + 1
    history = TableHistory(tuple(entries), tuple(HistoryEdge(*edge, on_ref=True) for edge in edges), lanes)
    return [line for line, _ in draw_graph(history)]


def test_two_branches_leave_a_third() -> None:
    entries = [entry(0, 0), entry(1, 1), entry(2, 2), entry(3, 0, (1, 2))]
    edges = [(0, 0, 3, 0), (1, 1, 3, 0), (2, 2, 3, 0)]
    assert drawn(entries, edges) == ["*", "| *", "| | *", "|_|/", "|/", "*"]


def test_a_lane_passes_below_others() -> None:
    entries = [entry(0, 0), entry(1, 1), entry(2, 2), entry(3, 0, (2,)), entry(4, 0, (1,))]
    edges = [(0, 0, 3, 0), (1, 1, 4, 0), (2, 2, 3, 0), (3, 0, 4, 0)]
    assert drawn(entries, edges) == ["*", "| *", "| | *", "|_|/", "* |", "|/", "*"]


def test_a_lane_bends_to_the_right() -> None:
    entries = [entry(0, 0), entry(1, 2), entry(2, 1), entry(3, 2, (0,)), entry(4, 2)]
    edges = [(0, 0, 3, 2), (1, 2, 3, 2), (3, 2, 4, 2)]
    assert drawn(entries, edges)[-3:] == [" \\__|", "    *", "    *"]


@pytest.mark.parametrize("branches", [0, 3])
def test_every_snapshot_of_a_table_has_one_star(orders: Table, branches: int) -> None:
    orders.append(order_rows(0))
    for number in range(branches):
        orders.append(order_rows(number), branch=f"b{number}")
        orders.append(order_rows(number))
    lines = list(draw_graph(table_history(orders.metadata)))
    rows = [row for line, row in lines if "*" in line]
    assert rows == list(range(len(orders.metadata.snapshots)))
    assert all(row is None for line, row in lines if "*" not in line)
