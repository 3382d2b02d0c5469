"""Positions of rows by Spark's bitmaps: the same whatever they are, and however the bitmaps reach the driver."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from bergline.format.deletes.position_set import position_set
from bergline.spark.rows.found_positions import MOST_BITMAPS, STRETCH, find_positions, find_twice

pytestmark = pytest.mark.spark
EDGES = [0, 1, 7, 8, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH - 1, 2 * STRETCH, (1 << 32) - 1, 1 << 32, 1 << 40]


def frame(spark: SparkSession, *rows: tuple[int, str | None, int | None]) -> DataFrame:
    return spark.createDataFrame(rows, "a int, `f.1` string, p bigint").repartition(3)


@pytest.mark.parametrize("bitmaps", [1, MOST_BITMAPS + 1])
def test_positions_are_found_by_action_and_file(spark: SparkSession, bitmaps: int) -> None:
    dense = range(40_000, 120_000)
    rows = [*((1, "a", at) for at in EDGES), *((1, "b", at) for at in dense), (5, "a", 3), (0, "a", 4), (2, None, None)]
    found = find_positions(frame(spark, *rows), bitmaps)
    assert found.positions == {
        1: {"a": position_set(EDGES), "b": position_set(dense)},
        5: {"a": position_set([3])},
        0: {"a": position_set([4])},
    }
    assert found.of(1) == {"a": position_set([*EDGES, 3]), "b": position_set(dense)}
    assert found.counts == {1: len(EDGES) + len(dense), 5: 1, 0: 1, 2: 1}
    assert find_positions(frame(spark, (1, "a", 1)).where("a = 2"), bitmaps).of(1) == {}


@pytest.mark.parametrize("bitmaps", [1, MOST_BITMAPS + 1])
@pytest.mark.parametrize("again", [(1, "b", 70_000), (0, "b", 70_000)])
def test_a_row_that_comes_twice_is_told(spark: SparkSession, bitmaps: int, again: tuple[int, str, int]) -> None:
    rows = [(1, "a", 70_000), (1, "b", 70_000), (1, "b", 3), (2, None, None)]
    assert not find_positions(frame(spark, *rows), bitmaps).has_twice
    changes = frame(spark, *rows, again)
    assert find_positions(changes, bitmaps).has_twice
    assert find_twice(changes) == ("b", 70_000)
