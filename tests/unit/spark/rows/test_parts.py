"""How a plan is cut into parts for tasks."""

import pytest

from bergline import Lake, Table
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.deletes.position_set import position_set
from bergline.format.manifest.manifest import DataFile
from bergline.scan.plan import PlannedFile
from bergline.spark.rows.parts import split_deleted, split_files, split_groups
from bergline.table.engine.plans import (
    DeletedPositions,
    GroupLayout,
    RewritePlan,
    plan_copy_on_write,
    plan_rewrite,
    plan_rewrite_without,
)

MB = 1024 * 1024


def planned(*sizes: int, partition: tuple[object, ...] = ()) -> tuple[PlannedFile, ...]:
    return tuple(
        PlannedFile(DataFile(f"{partition}-{i}", "PARQUET", partition, 1, size), 1) for i, size in enumerate(sizes)
    )


def compaction(table: Table, *sizes: int) -> RewritePlan:
    return plan_rewrite(table.metadata, table.scan().plan(), [GroupLayout(planned(*sizes), 140, 100)])


@pytest.mark.parametrize(
    ("sizes", "cores", "counts"),
    [
        ([1] * 8, 4, [2, 2, 2, 2]),
        ([1], 4, [1]),
        ([1] * 3, 1000, [1, 1, 1]),
        ([200 * MB] * 3, 1, [1, 1, 1]),
        ([60 * MB] * 4, 1, [2, 2]),
    ],
)
def test_deletes_have_a_part_for_each_core_and_none_is_large(sizes: list[int], cores: int, counts: list[int]) -> None:
    assert [len(part) for part in split_files(planned(*sizes), cores)] == counts


def test_files_of_a_partition_come_together() -> None:
    eu, us = planned(1, 1, partition=("eu",)), planned(1, 1, partition=("us",))
    mixed = (eu[0], us[0], eu[1], us[1])
    assert split_files(mixed, 2) == [eu, us]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([10, 10], [2]), ([60, 60, 10], [2, 1]), ([60, 10, 60, 20], [3, 1]), ([90, 74], [1, 1]), ([300], [1])],
)
def test_compaction_has_parts_of_what_a_task_reads(orders: Table, sizes: list[int], expected: list[int]) -> None:
    groups = [group for _, group in split_groups(compaction(orders, *sizes), cores=8)]
    assert sorted(len(group.files) for group in groups) == sorted(expected)
    assert {group.write.target_file_size for group in groups} == {140}


def test_groups_stay_apart(lake: Lake, orders: Table) -> None:
    plan = plan_rewrite(
        orders.metadata, orders.scan().plan(), [GroupLayout(planned(1, 1)), GroupLayout(planned(1, partition=("x",)))]
    )
    assert [(number, len(group.files)) for number, group in split_groups(plan, cores=1)] == [(0, 2), (1, 1)]
    without = plan_copy_on_write(orders.metadata, orders.scan().plan(), planned(1, 1, 1, 1))
    assert without.delete_where == ALWAYS_TRUE
    assert [(number, len(group.files)) for number, group in split_groups(without, cores=2)] == [(0, 2), (0, 2)]


def test_known_positions_go_with_their_data_files(orders: Table) -> None:
    deleted = [DeletedPositions(p, position_set([i])) for i, p in enumerate(planned(1, 1, 1))]
    parts = split_deleted(deleted, 1000)
    assert parts == [(d,) for d in deleted]
    groups = split_groups(plan_rewrite_without(orders.metadata, orders.scan().plan(), deleted), 1000)
    assert [(group.files, group.without) for _, group in groups] == [
        ((d.planned,), {d.planned.file.file_path: d.positions}) for d in deleted
    ]
