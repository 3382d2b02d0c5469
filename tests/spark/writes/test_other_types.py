"""Columns of types that Spark has not: times of day are text, fixed is binary, nanoseconds are cut to microseconds."""

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError, UnsupportedError
from support.fixtures.chosen_readers import native_refusal

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.time64("us")),
        ("f", pa.binary(3)),
        ("n", pa.timestamp("ns")),
        ("z", pa.timestamp("ns", tz="UTC")),
        ("s", pa.struct([("at", pa.time64("us")), ("n", pa.timestamp("ns"))])),
    ]
)
SECOND = 1_000_000_000


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("db.t", SCHEMA, partition_by=["day(n)"], properties={"format-version": "3"})


def ids(spark: SparkSession, condition: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM db.t WHERE {condition}").collect())


def test_rows_are_written_from_what_is_read(spark: SparkSession, table: Table) -> None:
    spark.sql(
        "INSERT INTO db.t VALUES (1, '10:20:30.5', X'010203', TIMESTAMP_NTZ '2026-01-02 03:04:05.123456', "
        "TIMESTAMP '1960-01-02 03:04:05.123456Z', named_struct('at', '00:00:00', 'n', TIMESTAMP_NTZ '2026-01-02')), "
        "(2, NULL, NULL, NULL, NULL, NULL)"
    )
    found = spark.table("db.t").where("id = 1").drop("z")
    texts = found.selectExpr("at", "hex(f)", "CAST(n AS STRING)", "s.at").collect()
    assert [tuple(row) for row in texts] == [("10:20:30.5", "010203", "2026-01-02 03:04:05.123456", "00:00:00")]
    found.selectExpr("id + 2 AS id", "at", "f", "n", "s").writeTo("db.t").append()
    rows = table.refresh().scan().to_arrow().sort_by("id")
    assert rows.column("at").to_pylist() == [dt.time(10, 20, 30, 500_000), None, dt.time(10, 20, 30, 500_000)]
    micros = 1_767_323_045_123_456
    assert rows.column("n").cast(pa.int64()).to_pylist() == [micros * 1000, None, micros * 1000]
    assert rows.column("z").cast(pa.int64())[0].as_py() % SECOND == 123_456_000
    assert ids(spark, "at = '10:20:30.5'") == ids(spark, "at > '10:20:30'") == ids(spark, "s.at < '01'") == [1, 3]
    assert ids(spark, "at = '10:20:30.50'") == []
    for values, message in [
        ("(9, '10', NULL, NULL, NULL, NULL)", "expected a time like 22:31:08, found `10` in column `at`"),
        ("(9, NULL, X'01', NULL, NULL, NULL)", r"expected 3 bytes, found 1 \(01\) in column `f`"),
        ("(9, NULL, NULL, TIMESTAMP_NTZ '9999-01-01', NULL, NULL)", "expected values that fit `timestamp_ns`"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            spark.sql(f"INSERT INTO db.t VALUES {values}")
    described = [(row.col_name, row.data_type) for row in spark.sql("DESCRIBE db.t").collect()][1:5]
    assert described == [("at", "string"), ("f", "binary"), ("n", "timestamp_ntz"), ("z", "timestamp")]


def test_nanoseconds_are_compared_as_they_are_read_and_never_lost(spark: SparkSession, table: Table) -> None:
    nanos = [-1, 0, 1, 999, 1000, 1001]  # -1, 0, 0, 0, 1 and 1 microseconds
    columns = {"id": list(range(6)), "n": pa.array(nanos, pa.timestamp("ns"))}
    table.append(pa.table(columns))
    read = [row.n for row in spark.sql("SELECT n FROM db.t ORDER BY id").collect()]
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (of no zone)
    assert [(value - epoch) // dt.timedelta(microseconds=1) for value in read] == [-1, 0, 0, 0, 1, 1]
    zero = "TIMESTAMP_NTZ '1970-01-01'"
    expected = {"=": [1, 2, 3], "<": [0], "<=": [0, 1, 2, 3], ">": [4, 5], ">=": [1, 2, 3, 4, 5], "<>": [0, 4, 5]}
    assert {op: ids(spark, f"n {op} {zero}") for op in expected} == expected
    assert ids(spark, f"n IN ({zero}, TIMESTAMP_NTZ '2000-01-01')") == ids(spark, f"n <=> {zero}") == [1, 2, 3]
    engine = bergline.spark.row_engine(spark)
    for change in (
        lambda: spark.sql("UPDATE db.t SET at = '01:00:00' WHERE id = 1"),
        lambda: spark.sql("MERGE INTO db.t USING (SELECT 1 AS x) q ON t.id = q.x WHEN MATCHED THEN UPDATE SET id = 7"),
        lambda: table.compact(sort_order="id", options={"rewrite-all": "true"}, engine=engine),
    ):
        with pytest.raises(UnsupportedError, match="would cut the nanoseconds of column `n`"):
            change()
    spark.sql(f"DELETE FROM db.t WHERE n = {zero}")
    table.refresh().compact(options={"rewrite-all": "true"}, engine=engine)
    assert table.refresh().scan().to_arrow().sort_by("id").column("n").cast(pa.int64()).to_pylist() == [-1, 1000, 1001]


def test_shapes_are_well_known_binary(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.g (id BIGINT, g GEOMETRY(4326), l ARRAY<GEOGRAPHY(4326)>) "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    point, other = (f"X'0101000000{x}0000000000000040'" for x in ("000000000000F03F", "0000000000001440"))
    spark.sql(f"INSERT INTO db.g VALUES (1, {point}, array({point}, NULL)), (2, NULL, NULL), (3, {other}, NULL)")
    with pytest.raises(InvalidInputError, match=r"expected well-known binary, found 0101 \(.*in column `g`"):
        spark.sql("INSERT INTO db.g VALUES (3, X'0101', NULL)")
    spark.sql(f"UPDATE db.g SET g = {other} WHERE g = {point}")
    table = lake.load_table("db.g")
    assert native_refusal(table.scan()) is None
    # row ids are not for Spark's own reader
    for more in ("", ", _row_id"):
        found = spark.sql(f"SELECT id, hex(g), hex(l[0]){more} FROM db.g ORDER BY id").collect()
        assert [row[1] for row in found] == [other[2:-1], None, other[2:-1]]
        assert found[0][2] == point[2:-1]
    assert [str(field.type) for field in table.schema.fields][1] == "geometry(OGC:CRS84)"
