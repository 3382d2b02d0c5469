"""Position delete files joined beside other writers."""

from collections.abc import Callable

import pytest

from bergline import Lake, Table
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.competing_writers import files, overtaken
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

ALL = {"rewrite_all": True}


def new_table(lake: Lake, **properties: str) -> Table:
    """Two delete files in each of two partitions."""
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    for order, region in ((0, "eu"), (10, "us")):
        table.append(order_rows(*range(order, order + 10), region=region))
        for position in (1, 2):
            add_deletes(table, position_deletes(table, {path(table, order + 5): [position]}))
    return table


def path(table: Table, order: int) -> str:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned.file.file_path


def found(table: Table) -> list[int]:
    return ids(table.refresh().scan().to_arrow())


def rewritten(lake: Lake, *rivals: Callable[[], object], **options: object) -> tuple[int, int]:
    table = overtaken(lake, *rivals).load_table("db.t")
    done = table.rewrite_position_deletes(options=ALL | options)
    return done.rewritten_delete_files, done.added_delete_files


def test_appends_and_further_deletes_do_not_disturb(lake: Lake) -> None:
    table = new_table(lake)

    def delete_more() -> None:
        rival = lake.load_table("db.t")
        add_deletes(rival, position_deletes(rival, {path(rival, 5): [7]}))

    assert rewritten(lake, lambda: lake.load_table("db.t").append(order_rows(50)), delete_more) == (4, 2)
    assert found(table) == [*(i for i in range(20) if i % 10 not in {1, 2} and i != 7), 50]
    assert len(list(table.inspect("delete_files").to_pylist())) == 3


def test_delete_files_that_were_replaced_meanwhile_are_planned_again(lake: Lake) -> None:
    table = new_table(lake, **{"write.delete.mode": "merge-on-read"})
    before = files(table, "*.parquet")
    assert rewritten(lake, lambda: lake.load_table("db.t").delete("id = 7")) == (3, 2)
    assert found(table) == [i for i in range(20) if i % 10 not in {1, 2} and i != 7]
    live = {f["file_path"].rpartition("/")[2] for f in table.inspect("delete_files").to_pylist()}
    new = files(table, "*.parquet") - before
    assert len(new) == 1 + 2  # that of the other writer, and two: the first attempt left none
    assert live <= new


def test_partial_progress_commits_partitions_one_by_one(lake: Lake) -> None:
    table = new_table(lake)
    assert rewritten(lake, partial_progress_enabled=True) == (4, 2)
    assert [str(s.operation) for s in table.refresh().metadata.snapshots][-2:] == ["replace", "replace"]
    assert found(table) == [i for i in range(20) if i % 10 not in {1, 2}]


def test_vectors_that_come_meanwhile_are_kept(lake: Lake) -> None:
    table = new_table(lake, **{"write.delete.granularity": "partition"}).upgrade_format(3)

    def add_vector() -> None:
        rival = lake.load_table("db.t")
        add_deletes(rival, *deletion_vectors(rival, {path(rival, 5): [1, 2, 3]}))

    assert rewritten(lake, add_vector) == (4, 1)
    assert found(table) == [i for i in range(20) if i % 10 not in {1, 2} and i != 3]
    assert len(table.inspect("delete_files").to_pylist()) == 2


def test_nothing_is_done_in_a_table_without_rows(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS)
    assert table.rewrite_position_deletes(options=ALL).rewritten_delete_files == 0
    assert table.metadata.snapshots == ()
