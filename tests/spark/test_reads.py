"""Reads by options, of metadata columns, of types that Spark lacks, and of what is not there."""

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rows import ORDERS, order_rows

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError

pytestmark = pytest.mark.spark


def ids(frame: DataFrame) -> list[int]:
    return sorted(r.id for r in frame.collect())


def test_load_reads_tables_versions_and_metadata_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.append(order_rows(2), branch="dev").append(order_rows(3))
    first = orders.refs["v1"].snapshot_id
    reader = spark.read.format("iceberg")
    assert ids(reader.load("db.orders")) == [1, 3]
    assert ids(spark.read.load("lake.db.orders", format="iceberg", branch="dev")) == [1, 2]
    assert ids(spark.read.format("iceberg").option("path", "db.orders.tag_v1").load()) == [1]
    assert ids(spark.read.format("ICEBERG").option("versionAsOf", first).load("db.orders")) == [1]
    assert ids(spark.read.format("iceberg").option("snapshot-id", first).table("db.orders")) == [1]
    assert {r.name for r in reader.load("db.orders.refs").collect()} == {"main", "v1", "dev"}
    files = spark.read.format("iceberg").option("branch", "dev").load("db.orders.files")
    assert files.count() == 2
    with pytest.raises(AnalysisException, match=r"no table `nowhere\.orders`"):
        reader.load("nowhere.orders")
    with pytest.raises(UnsupportedError, match="found the path"):
        reader.load("/tmp/orders")  # noqa: S108
    with pytest.raises(UnsupportedError, match="a table has its own"):
        spark.read.format("iceberg").schema("id long").load("db.orders")
    with pytest.raises(InvalidInputError, match="found None"):
        reader.load()


def test_incremental_reads_give_what_appends_brought(spark: SparkSession, orders: Table) -> None:
    snapshots = []
    for n in (1, 2, 3):
        orders.append(order_rows(n))
        snapshots.append(orders.metadata.current_snapshot_id)
    orders.delete("id = 2")
    orders.append(order_rows(4))
    reader = spark.read.format("iceberg").option("start-snapshot-id", snapshots[0])
    assert ids(reader.load("db.orders")) == [2, 3, 4]
    assert ids(reader.load("db.orders").filter("id > 2")) == [3, 4]
    both = spark.read.option("start-snapshot-id", snapshots[0]).option("end-snapshot-id", snapshots[1])
    assert ids(both.table("db.orders")) == [2]
    assert orders.scan_appends(snapshots[2]).to_arrow().column("id").to_pylist() == [4]
    with pytest.raises(IllegalArgumentException, match="expected `start-snapshot-id`"):
        spark.read.option("end-snapshot-id", snapshots[1]).table("db.orders")
    with pytest.raises(InvalidInputError, match="to start from, found 5"):
        spark.read.option("start-snapshot-id", 5).table("db.orders")
    with pytest.raises(InvalidInputError, match="one version"):
        spark.read.option("start-snapshot-id", 5).option("branch", "main").table("db.orders")


def test_metadata_columns_in_sql(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"]).append(order_rows(1, 2))
    (planned,) = table.scan().plan().files
    path = planned.file.file_path
    found = spark.sql(
        "SELECT _file, id, _pos, _spec_id, _partition.region, _deleted FROM db.parts ORDER BY id"
    ).collect()
    assert [tuple(r) for r in found] == [(path, 1, 0, 0, "eu", False), (path, 2, 1, 0, "eu", False)]
    assert spark.sql("SELECT * FROM db.parts WHERE _pos = 1").collect() == [(2, 20.0, "eu")]
    assert spark.sql("SELECT p.*, p._pos FROM db.parts p JOIN db.parts q ON p._pos = q._pos").columns == [
        *ORDERS.names,
        "_pos",
    ]
    assert spark.sql("SELECT * EXCEPT (amount), _pos FROM db.parts").columns == ["id", "region", "_pos"]
    assert spark.sql("SELECT count(*) AS n, max(_pos) AS m FROM db.parts").collect() == [(2, 1)]
    assert spark.sql("WITH q AS (SELECT _pos AS p, * FROM db.parts) SELECT * FROM q").columns == ["p", *ORDERS.names]
    nested = "SELECT * FROM db.parts a WHERE EXISTS (SELECT * FROM db.parts b WHERE b._pos = a._pos + 1)"
    assert [r.id for r in spark.sql(nested).collect()] == [1]
    add_deletes(table, position_deletes(table, {path: [0]}))
    assert [tuple(r) for r in spark.sql("SELECT id, _pos FROM db.parts").collect()] == [(2, 1)]
    assert sorted(spark.sql("SELECT id, _deleted FROM db.parts").collect()) == [(1, True), (2, False)]
    with pytest.raises(AnalysisException, match=r"_row_id.*cannot be resolved"):
        spark.sql("SELECT _row_id FROM db.parts")


def test_metadata_columns_of_frames_are_hidden_until_asked_for(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("db.v3", ORDERS, properties={"format-version": "3"}).append(order_rows(1, 2))
    frame = spark.table("db.v3")
    assert frame.columns == ORDERS.names
    assert frame.select("*", "_row_id").columns == [*ORDERS.names, "_row_id"]
    assert sorted(map(tuple, frame.select("id", F.col("_row_id") + 1, frame["_pos"]).collect())) == [
        (1, 1, 0),
        (2, 2, 1),
    ]
    assert [tuple(r) for r in frame.filter("_pos = 1").collect()] == [(2, 20.0, "eu")]
    assert [
        tuple(r) for r in frame.where(frame._pos == 1).select(frame.id, "_last_updated_sequence_number").collect()
    ] == [(2, 1)]
    assert frame.selectExpr("_pos + 10 AS p").collect()[0].p in {10, 11}
    assert [tuple(r) for r in spark.sql("SELECT _row_id, id FROM db.v3 WHERE _row_id = 1").collect()] == [(1, 2)]


def test_columns_that_spark_has_no_type_for_fail_only_when_asked_for(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.time64("us")), ("u", pa.uuid())])
    rows: list[dict[str, Any]] = [{"id": 1, "at": 5, "u": uuid.UUID(int=7).bytes}, {"id": 2, "at": None, "u": None}]
    lake.create_table("db.t", schema).append(pa.Table.from_pylist(rows, schema))
    assert sorted(map(tuple, spark.sql("SELECT id, u FROM db.t").collect())) == [(1, str(uuid.UUID(int=7))), (2, None)]
    assert spark.table("db.t").where("id > 1").select("id").collect() == [(2,)]
    for ask in (spark.sql("SELECT * FROM db.t"), spark.table("db.t").select("at")):
        with pytest.raises(PySparkException, match="expected a type that Spark has, found `time` in column `at`"):
            ask.collect()


@pytest.mark.parametrize("renamed", [False, True])
def test_a_missing_file_is_named_with_its_snapshot(
    spark: SparkSession, orders: Table, tmp_path: Path, *, renamed: bool
) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    if renamed:  # then it is not Spark's own reader that misses the file
        with orders.update_schema() as update:
            update.rename_column("amount", "price")
    before, late = spark.sql("SELECT * FROM db.orders WHERE id < 9"), spark.table("db.orders").where("id < 9")
    assert late.count() == 2
    path = orders.scan().plan().files[0].file.file_path
    Path(path.removeprefix("file://")).unlink()
    actions: list[Callable[[], Any]] = [
        lambda: spark.sql("SELECT * FROM db.orders").collect(),
        before.collect,
        late.toArrow,
        lambda: before.groupBy("region").count().show(),
        lambda: late.select("id").write.parquet(str(tmp_path / "copy")),
        lambda: late.writeTo("db.orders").append(),
    ]
    for action in actions:
        with pytest.raises(NotFoundError) as caught:
            action()
        needed = f"no data file {path}, which snapshot {orders.metadata.current_snapshot_id} needs"
        assert str(caught.value) == needed
        assert isinstance(caught.value, PySparkException)
        assert (caught.value.kind, caught.value.name) == ("file", path)
    assert lost_nothing(orders)


def lost_nothing(table: Table) -> bool:
    """Nothing was committed since."""
    known = table.metadata.current_snapshot_id
    return table.refresh().metadata.current_snapshot_id == known


@pytest.mark.parametrize("kind", ["positions", "keys", "vector"])
def test_a_missing_delete_file_is_named_with_its_snapshot(spark: SparkSession, lake: Lake, kind: str) -> None:
    properties = {"format-version": "3" if kind == "vector" else "2"}
    table = lake.create_table("db.t", ORDERS, properties=properties).append(order_rows(1, 2))
    data = table.scan().plan().files[0].file.file_path
    match kind:
        case "positions":
            add_deletes(table, position_deletes(table, {data: [0]}))
        case "keys":
            add_deletes(table, equality_deletes(table, pa.table({"id": [1]}), [1]))
        case _:
            add_deletes(table, *deletion_vectors(table, {data: [0]}))
    assert [r.id for r in spark.table("db.t").collect()] == [2]
    (delete,) = table.scan().plan().files[0].deletes
    Path(delete.file_path.removeprefix("file://")).unlink()
    needed = f"no delete file {delete.file_path}, which snapshot {table.metadata.current_snapshot_id} needs"
    for columns in (["id"], ["_partition"]):  # the second is not for Spark's own reader
        with pytest.raises(NotFoundError, match=re.escape(needed)):
            spark.table("db.t").select(*columns).collect()


def test_errors_of_other_frames_stay_sparks(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    assert spark.table("db.orders").count() == 1
    path = tmp_path / "other.parquet"
    pq.write_table(order_rows(1), path)
    frame = spark.read.parquet(str(path))
    path.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as caught:
        frame.collect()
    assert not isinstance(caught.value, NotFoundError)
