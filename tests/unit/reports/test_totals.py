"""Totals from summaries."""

import msgspec

from bergline import Table
from bergline.reports.totals import Totals, summary_number, totals_of
from support.fixtures.rows import order_rows


def test_totals_are_those_of_the_snapshot(orders: Table) -> None:
    assert totals_of(orders.current_snapshot) == Totals(0, 0, 0, 0, 0, 0)
    orders.append(order_rows(1, 2)).append(order_rows(3))
    totals = totals_of(orders.current_snapshot)
    assert (totals.rows, totals.data_files, totals.delete_files) == (3, 2, 0)
    assert totals.bytes == sum(orders.inspect("files").column("file_size_in_bytes").to_pylist())


def test_what_a_writer_did_not_say_is_unknown(orders: Table) -> None:
    orders.append(order_rows(1))
    assert orders.current_snapshot is not None
    silent = msgspec.structs.replace(orders.current_snapshot, summary={"total-records": "many"})
    assert totals_of(silent) == Totals()
    assert summary_number({"n": "9" * 30}, "n") is None
