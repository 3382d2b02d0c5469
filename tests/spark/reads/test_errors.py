"""Files that are gone when a frame runs."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import (
    PySparkException,
)
from pyspark.sql import SparkSession

from bergline import Table
from bergline.errors import (
    NotFoundError,
)
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def test_missing_data_file_names_the_file(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    path = orders.scan().plan().files[0].file.file_path
    Path(path.removeprefix("file://")).unlink()
    with pytest.raises(Exception, match=path.rsplit("/", 1)[-1]):
        spark.sql("SELECT * FROM db.orders").collect()
    with pytest.raises(NotFoundError, match="no file"):
        orders.scan().to_arrow()


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


@pytest.mark.parametrize("renamed", [False, True])
def test_a_frame_whose_snapshot_has_expired_says_so(spark: SparkSession, orders: Table, *, renamed: bool) -> None:
    orders.append(order_rows(1))
    if renamed:  # then it is not Spark's own reader that misses the file
        with orders.update_schema() as update:
            update.rename_column("amount", "price")
    number = orders.refresh().metadata.current_snapshot_id
    reader = spark.read.option("snapshot-id", number)
    frames = [
        spark.sql(f"SELECT * FROM db.orders VERSION AS OF {number}"),
        reader.table("db.orders"),
        reader.table("db.orders").where("id < 9"),
    ]
    stale = orders.scan()
    orders.delete("id = 1")
    orders.expire(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(days=1), retain_last=1)
    for read in (*(frame.collect for frame in frames), stale.to_arrow):
        with pytest.raises(NotFoundError) as caught:
            read()
        assert str(caught.value) == f"no snapshot {number} any more, which this read was planned on: it has expired"
        assert caught.value.hints
