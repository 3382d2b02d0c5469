"""Partition values as Spark columns: equal where Iceberg's are."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline.format.partition.transforms import Bucket, TimeTransform, Transform, Truncate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
)
from bergline.spark.writes.keys import key_column

pytestmark = pytest.mark.spark

VALUES: list[tuple[IcebergType, str, list[Any]]] = [
    (INT, "int", [0, 34, -7, 2**31 - 1]),
    (LONG, "bigint", [0, 34, -7, 2**63 - 1]),
    (DATE, "date", [dt.date(2017, 11, 16), dt.date(1969, 12, 31), dt.date(1600, 2, 29)]),
    (STRING, "string", ["", "iceberg", "ünï", "🦀🦀🦀🦀🦀"]),
    (BINARY, "binary", [b"", b"\x00\x01\x02\x03\x04"]),
    (DecimalType(9, 2), "decimal(9,2)", [Decimal("14.20"), Decimal("-0.01")]),
]
TIMES = [dt.datetime(2017, 11, 16, 22, 31, 8), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]  # noqa: DTZ001


def test_spark_finds_the_same_buckets_and_groups_as_iceberg(spark: SparkSession) -> None:
    for type_, name, values in VALUES:
        assert keys_of(spark, Bucket(16), type_, name, values) == [apply(Bucket(16), type_, v) for v in values]
        if type_ != DATE:
            assert groups(spark, Truncate(3), type_, name, values)
        else:
            assert all(groups(spark, TimeTransform(unit), type_, name, values) for unit in ("year", "month", "day"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for type_, name in ((TIMESTAMPTZ, "timestamp"), (TIMESTAMP, "timestamp_ntz")):
            texts = [f"{v}Z" if type_ == TIMESTAMPTZ else f"{v}" for v in TIMES]
            found = keys_of(spark, Bucket(16), type_, name, texts)
            assert found == [apply(Bucket(16), type_, v) for v in TIMES]
            for unit in ("year", "month", "day", "hour"):
                assert groups(spark, TimeTransform(unit), type_, name, texts, TIMES)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def apply(transform: Transform, type_: IcebergType, value: Any) -> Any:
    if isinstance(value, dt.datetime):
        value = (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    elif isinstance(value, dt.date):
        value = (value - dt.date(1970, 1, 1)).days
    return transform.apply(type_, value)


def keys_of(spark: SparkSession, transform: Transform, type_: IcebergType, name: str, values: list[Any]) -> list[Any]:
    schema = Schema(fields=(NestedField(1, "a.b", False, type_),))
    rows = [(i, v) for i, v in enumerate(values)]
    source = "string" if name.startswith("timestamp") else name
    frame = spark.createDataFrame(rows, f"i int, `a.b` {source}").withColumn("a.b", F.col("`a.b`").cast(name))
    key = key_column(1, transform, schema, lambda: None)
    assert key is not None
    return [row.key for row in frame.select("i", key.alias("key")).orderBy("i").collect()]


def groups(
    spark: SparkSession,
    transform: Transform,
    type_: IcebergType,
    name: str,
    values: list[Any],
    plain: list[Any] | None = None,
) -> bool:
    """Whether keys are equal where partitions are."""
    keys = keys_of(spark, transform, type_, name, values)
    expected = [apply(transform, type_, v) for v in plain or values]
    return all(
        (a == b) == (x == y) for a, x in zip(keys, expected, strict=True) for b, y in zip(keys, expected, strict=True)
    )
