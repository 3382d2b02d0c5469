"""The sweep deletes what is still an orphan, and nothing else."""

import datetime as dt

from bergline import Lake, Table
from bergline.table.orphans.plan import OrphanPlan
from bergline.table.orphans.sweep import SweepResult, sweep_orphans
from support.fixtures.data_files import written_files
from support.fixtures.rows import ids, order_rows


def plan(table: Table) -> OrphanPlan:
    return table.plan_orphans(older_than=dt.datetime(2200, 1, 1, tzinfo=dt.UTC), allow_recent=True)


def test_file_that_was_committed_since_the_plan_is_spared(lake: Lake, orders: Table) -> None:
    stray = f"{orders.append(order_rows(1)).location}/data/stray.parquet"
    orders.io.create(stray, b"stray")
    new = written_files(orders, order_rows(2))
    planned, calls = plan(orders), []
    orders.append_files(new)
    result = sweep_orphans(lake.catalog, planned, threads=1, progress=lambda done, of: calls.append((done, of)))
    assert (len(result.deleted), len(result.spared), result.failed, result.deleted_bytes) == (1, 1, (), 5)
    assert calls == [(2, 2)]
    assert not orders.io.exists(stray)
    assert ids(orders.scan().to_arrow()) == [1, 2]


def test_plan_without_files_sweeps_nothing(lake: Lake, orders: Table) -> None:
    assert sweep_orphans(lake.catalog, plan(orders.append(order_rows(1))), threads=1) == SweepResult()
