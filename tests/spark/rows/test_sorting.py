"""Rows sorted and moved to other partitions on executors: the same rows as before, in order, and nothing else left."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.table.engine.row_engine import RowEngine
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.twin_tables import KINDS, all_rows

pytestmark = pytest.mark.spark

ALL = {"rewrite_all": True}


@pytest.fixture
def engine(spark: SparkSession) -> RowEngine:
    return bergline.spark.row_engine(spark)


def in_files(table: Table) -> list[list[int]]:
    """The ids of each file in the order of its rows."""
    paths = [planned.file.file_path.removeprefix("file://") for planned in table.refresh().scan().plan().files]
    return sorted(pq.read_table(path, columns=["id"]).column("id").to_pylist() for path in paths)


@pytest.mark.kinds(2)
@pytest.mark.parametrize("kind", ["v1", "v2 copy, evolved", "v2 copy, equality deletes", "v3 vectors, evolved"])
def test_sorted_rows_are_the_same_rows(lake: Lake, engine: RowEngine, kind: str) -> None:
    table = KINDS[kind](lake, "db.t")
    before = all_rows(table)
    for order in ("id desc", "zorder(amount, id)"):
        table.rewrite_data_files(sort_order=order, options=ALL, engine=engine)
        assert all_rows(table) == before, order
        if order == "id desc":
            assert all(ids == sorted(ids, reverse=True) for ids in in_files(table))
    specs = {planned.file.spec_id for planned in table.scan().plan().files}
    assert specs == {table.spec.spec_id}


def test_files_are_ranges_of_the_order(lake: Lake, engine: RowEngine) -> None:
    table = lake.create_table("db.t", ORDERS)
    for first in range(0, 2000, 500):
        table.append(order_rows(*range(first, 2000, 4)))
    size = sum(planned.file.file_size_in_bytes for planned in table.scan().plan().files)
    options = ALL | {"target_file_size_bytes": size // 3, "max_file_size_bytes": size}
    done = table.rewrite_data_files(sort_order=["id"], options=options, engine=engine)
    files = in_files(table)
    assert done.added_data_files == len(files) > 1
    ids = [i for file in files for i in file]
    assert ids == sorted(ids)


def test_groups_run_side_by_side_and_say_what_they_do(
    lake: Lake, engine: RowEngine, caplog: pytest.LogCaptureFixture
) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    for region in ("eu", "us", "as"):
        table.append(order_rows(3, 1, region=region)).append(order_rows(2, region=region))
    with caplog.at_level("INFO", logger="bergline.spark"):
        table.compact(sort_order="id", options={"max_concurrent_file_group_rewrites": 2}, engine=engine)
        table.append(order_rows(9)).append(order_rows(8)).compact(
            options={"max_concurrent_file_group_rewrites": 2}, engine=engine
        )
    assert in_files(table)[:2] == [[1, 2, 3], [1, 2, 3]]
    said = [record.getMessage() for record in caplog.records]
    assert [text for text in said if "(sort, group 3/3)" in text]
    assert [text for text in said if "rewrite 3 data files" in text]


def test_call_runs_on_executors_on_a_branch(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "3"})
    for order in range(6):
        table.append(order_rows(order))
    table.refs.create_branch("dev", at="main")
    before = all_rows(table)
    (row,) = spark.sql(
        "CALL system.rewrite_data_files('db.t.branch_dev', sort_order => 'zorder(id, amount)', "
        "where => 'id BETWEEN 1 AND 4', options => map('min-input-files', '2'))"
    ).collect()
    assert (row.rewritten_data_files_count, row.added_data_files_count) == (4, 1)
    assert len(list(table.refresh().scan(ref="dev").plan().files)) == 3
    assert all_rows(table) == before
    with pytest.raises(BerglineError, match="cannot pick rows by the condition"):
        spark.sql("CALL system.rewrite_data_files('db.t', where => 'length(region) = 2')")


def test_position_delete_files_are_joined_by_tasks(spark: SparkSession, lake: Lake) -> None:
    table = KINDS["v2 positions"](lake, "db.t")
    before = all_rows(table)
    (row,) = spark.sql(
        "CALL system.rewrite_position_delete_files('db.t', options => map('rewrite-all', 'true'))"
    ).collect()
    assert (row.rewritten_delete_files_count, row.added_delete_files_count) == (2, 2)
    assert all_rows(table.refresh()) == before


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"sort_order": "nope"}, NotFoundError, "no column `nope`"),
        ({"sort_order": "zorder(t)"}, UnsupportedError, "cannot use column `t` of type `time`"),
        ({"sort_order": "id"}, UnsupportedError, "cannot sort rows on Spark, which would cut the nanosec"),
        ({"options": {"rewrite_all": "maybe"}}, InvalidInputError, "expected true or false"),
    ],
)
def test_what_cannot_be_sorted_is_refused_and_leaves_nothing(
    lake: Lake, engine: RowEngine, wanted: Any, error: type[Exception], message: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("t", pa.time64("us")), ("n", pa.timestamp("ns"))])
    table = lake.create_table("db.t", schema, properties={"format-version": "3"})
    table.append(pa.table({"id": [2]})).append(pa.table({"id": [1]}))
    before, written = table.metadata_location, set(table.io.list(table.location))
    with pytest.raises(error, match=message):
        table.compact(engine=engine, **wanted)
    assert table.refresh().metadata_location == before
    assert set(table.io.list(table.location)) == written


def test_a_broken_file_leaves_nothing(lake: Lake, engine: RowEngine) -> None:
    table = KINDS["v3 vectors"](lake, "db.t")
    path = table.scan("id = 22").plan().files[0].file.file_path
    Path(path.removeprefix("file://")).write_bytes(b"broken")
    before, written = table.metadata_location, set(table.io.list(table.location))
    with pytest.raises(Exception, match=path.rpartition("/")[2]):
        table.compact(sort_order="id", engine=engine)
    assert table.refresh().metadata_location == before
    assert set(table.io.list(table.location)) == written
