"""Iceberg's partition transforms as functions in queries."""

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from bergline import Table
from bergline.format.partition.transforms import Bucket, TimeTransform, Truncate
from bergline.format.types.types import BINARY, DATE, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, DecimalType, IcebergType
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark

TEXTS = ["", "a", "ab", "abc", "abcd", "ünïcödé", "日本語", "x" * 17, "y" * 22, None]
NUMBERS = [0, 1, -1, 34, 127, 128, -128, -129, 10**17, -(10**17)]
MOMENTS = ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2017-11-16 22:31:08", "1582-10-04 00:00:01"]
TYPES: dict[str, IcebergType] = {
    "s": STRING,
    "b": BINARY,
    "n": LONG,
    "x": DecimalType(18, 2),
    "d": DATE,
    "tz": TIMESTAMPTZ,
    "ntz": TIMESTAMP,
}


def test_functions_are_the_transforms_of_partitions(spark: SparkSession) -> None:
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (a time without a zone)
    rows = []
    for i, (text, number) in enumerate(zip(TEXTS, NUMBERS, strict=True)):
        moment = dt.datetime.fromisoformat(MOMENTS[i % len(MOMENTS)])
        rows.append((text, None if text is None else text.encode(), number, Decimal(number).scaleb(-2), moment))
    frame = spark.createDataFrame(rows, "s string, b binary, n bigint, x decimal(18, 2), ntz timestamp_ntz")
    frame.selectExpr("*", "cast(ntz AS date) AS d", "cast(ntz AS timestamp) AS tz").createOrReplaceTempView("kinds")
    calls = [(c, Bucket(1000), f"system.bucket(1000, {c})") for c in TYPES]
    calls += [(c, Truncate(3), f"system.truncate(3, {c})") for c in ("s", "b", "n", "x")]
    calls += [
        (c, TimeTransform(unit), f"system.{unit}s({c})")
        for unit in ("year", "month", "day", "hour")
        for c in ("d", "tz", "ntz")
        if (unit, c) != ("hour", "d")
    ]
    found = spark.sql(f"SELECT *, {', '.join(text for _, _, text in calls)} FROM kinds").collect()
    assert len(found) == len(rows)
    for row in found:
        micros = (row["ntz"] - epoch) // dt.timedelta(microseconds=1)
        plain = {
            **row.asDict(),
            "b": None if row["b"] is None else bytes(row["b"]),
            "d": (row["d"] - epoch.date()).days,
            "tz": micros,
            "ntz": micros,
        }
        for place, (column, transform, text) in enumerate(calls, len(TYPES)):
            value = plain[column]
            expected = None if value is None else transform.apply(TYPES[column], value)
            if isinstance(row[place], dt.date):
                expected = epoch.date() + dt.timedelta(days=expected)
            assert row[place] == expected, (text, value)


def test_functions_stand_wherever_expressions_do(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))

    def found(text: str, **arguments: object) -> list[tuple]:
        return [tuple(row) for row in spark.sql(text, **arguments).collect()]

    by_bucket = found(
        "SELECT lake.system.bucket(4, id) b, count(*) FROM db.orders GROUP BY system.bucket(4, id) ORDER BY 1"
    )
    assert sum(count for _, count in by_bucket) == 3
    chosen = found("SELECT id FROM db.orders WHERE System.bucket(:n, id) = system.bucket(:n, 2)", args={"n": 1000})
    assert chosen == [(2,)]
    spark.sql("CREATE VIEW db.v AS SELECT system.truncate(2, id) AS t FROM db.orders")
    assert sorted(found("SELECT t FROM db.v WHERE t > 0")) == [(2,), (2,)]
    spark.sql(
        "UPDATE db.orders SET amount = system.truncate(2, id) WHERE system.bucket(1000, id) = system.bucket(1000, 3)"
    )
    spark.sql("DELETE FROM db.orders.branch_main WHERE system.truncate(10, id) = 0 AND id = 1")
    spark.sql(
        "MERGE INTO db.orders t USING (SELECT 2 AS id) s "
        "ON system.bucket(9, t.id) = system.bucket(9, s.id) AND t.id = s.id "
        "WHEN MATCHED AND system.truncate(2, s.id) = 2 THEN UPDATE SET region = 'm'"
    )
    assert found("SELECT region FROM db.orders WHERE id = 2") == [("m",)]
    assert found("SELECT amount FROM db.orders WHERE id = 3") == [(2.0,)]
    assert spark.sql("SELECT system.bucket(4, id), system.days(current_date()) FROM db.orders").columns == [
        "bucket(4, id)",
        "days(current_date())",
    ]
    assert found("SELECT system.bucket(16, 34), system.iceberg_version() LIKE 'bergline %'") == [(3, True)]
    for wrong in ("bucket(id)", "bucket('a', id)", "bucket(4, amount)", "hours(current_date())", "years(region)"):
        with pytest.raises(AnalysisException, match=r"expected .*, found .* in `system\."):
            spark.sql(f"SELECT system.{wrong} FROM db.orders")
