"""The row engine of this process, and that operations leave all rows to the engine that they are given."""

import pickle

import pytest

from bergline import Lake, Table
from bergline.errors import FormatError, NotFoundError
from bergline.format.deletes.position_set import position_set
from bergline.io.fileio import FileIO
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import (
    DeletedPositions,
    GroupLayout,
    PositionDeletePlan,
    RewritePlan,
    plan_known_deletes,
    plan_rewrite,
    plan_rewrite_without,
)
from bergline.table.engine.row_engine import FileChanges
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.twin_tables import KINDS, all_rows


class NotedEngine(ArrowRowEngine):
    """Writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def rewrite_groups(self, io: FileIO, plan: RewritePlan) -> list[FileChanges]:
        self.asked.append(("rewrite", sum(len(group.files) for group in plan.groups)))
        return super().rewrite_groups(io, plan)

    def delete_positions(self, io: FileIO, plan: PositionDeletePlan) -> FileChanges:
        self.asked.append(("delete_positions", len(plan.files)))
        return super().delete_positions(io, plan)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_match_are_gone_and_all_others_are_as_they_were(lake: Lake, kind: str) -> None:
    table = KINDS[kind](lake, "db.t")
    before = all_rows(table)
    table.delete("id IN (2, 9, 10, 21, 31)")
    assert all_rows(table) == [row for row in before if row[0] not in {2, 9, 10, 21, 31}]
    rest = all_rows(table)
    table.compact()
    assert all_rows(table) == rest


@pytest.mark.parametrize(("mode", "asked"), [("copy-on-write", "rewrite"), ("merge-on-read", "delete_positions")])
def test_operations_leave_rows_to_the_engine(lake: Lake, mode: str, asked: str) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"write.delete.mode": mode})
    table.append(order_rows(1, 2, 3)).append(order_rows(6, 7, 8, region="us"))
    engine = NotedEngine()
    table.delete("id = 2", engine=engine)
    table.overwrite(order_rows(9), "id = 7", engine=engine)
    table.delete("region = 'us'", engine=engine)  # whole files go by their metadata
    assert ids(table.scan().to_arrow()) == [1, 3, 9]
    assert engine.asked == [(asked, 1), (asked, 1)]
    table.compact(engine=engine)
    assert engine.asked[2:] == [("rewrite", 2)]


def test_nothing_is_committed_where_the_engine_finds_no_row(orders: Table) -> None:
    orders.append(order_rows(1, 3))
    before, engine = orders.metadata_location, NotedEngine()
    assert orders.delete("id = 2", engine=engine).metadata_location == before
    assert engine.asked == [("rewrite", 1)]


def test_a_group_that_fails_takes_the_files_of_the_others_with_it(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    table.append(order_rows(1)).append(order_rows(2, region="us"))
    scanned = table.scan().plan()
    plan = plan_rewrite(table.metadata, scanned, [GroupLayout((planned,)) for planned in scanned.files])
    table.io.delete([plan.groups[-1].files[0].file.file_path])
    before = table.io.list(table.location)
    with pytest.raises(NotFoundError):
        ArrowRowEngine().rewrite(table.io, plan)
    assert table.io.list(table.location) == before


@pytest.mark.parametrize("version", ["2", "3"])
def test_plans_of_known_positions_travel(lake: Lake, version: str) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": version}).append(order_rows(1, 2, 3))
    scanned = table.scan().plan()
    deleted = [DeletedPositions(scanned.files[0], position_set([0, 2]))]
    rewrite = pickle.loads(pickle.dumps(plan_rewrite_without(table.metadata, scanned, deleted)))  # noqa: S301
    deletes = pickle.loads(pickle.dumps(plan_known_deletes(table.metadata, deleted)))  # noqa: S301
    engine = ArrowRowEngine()
    rewritten, marked = engine.rewrite(table.io, rewrite), engine.write_deletes(table.io, deletes)
    assert [f.record_count for f in rewritten.data_files] == [1]
    assert [f.record_count for f in marked.delete_files] == [2]
    assert (rewritten.rewritten, rewritten.deleted_rows) == (marked.deleted_from, marked.deleted_rows)


def test_a_position_beyond_the_end_is_refused(orders: Table) -> None:
    scanned = orders.append(order_rows(1, 2)).scan().plan()
    plan = plan_rewrite_without(orders.metadata, scanned, [DeletedPositions(scanned.files[0], position_set([2]))])
    before = orders.io.list(orders.location)
    with pytest.raises(FormatError, match="expected deletes at positions below 2, found 2"):
        ArrowRowEngine().rewrite(orders.io, plan)
    assert orders.io.list(orders.location) == before


def test_parts_are_computed_in_order_and_an_error_is_raised(orders: Table) -> None:
    engine = ArrowRowEngine()
    assert engine.compute(orders.io, "double", lambda _, part: 2 * part, list(range(40)), "") == list(range(0, 80, 2))
    assert engine.compute(orders.io, "double", lambda _, part: 2 * part, [3], "") == [6]
    assert engine.compute(orders.io, "double", lambda _, part: 2 * part, [], "") == []
    with pytest.raises(ZeroDivisionError):
        engine.compute(orders.io, "divide", lambda _, part: 1 // part, [1, 0], "")


def test_progress_counts_the_bytes_of_rewritten_files(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    total = sum(planned.file.file_size_in_bytes for planned in orders.scan().plan().files)
    calls: list[tuple[int, int]] = []
    orders.compact(engine=ArrowRowEngine(lambda done, of: calls.append((done, of))))
    assert calls == [(total, total)]
