"""What Spark's own writer writes, beside the writer of our tasks: the same rows, metrics and refusals."""

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.datafiles.file.footer import read_footer, read_physical_schema
from bergline.datafiles.write.write_spec import write_spec
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.transforms import Bucket
from bergline.format.types.types import STRING
from bergline.spark.writes import data_files
from bergline.spark.writes.spark_writer import why_not

pytestmark = pytest.mark.spark

_ROW_GROUPS, _COLUMNS, _METADATA, _BLOOM_FILTER = 4, 1, 3, 14  # fields of Parquet's footer

EVERY_TYPE = """
SELECT * FROM VALUES
  (true, 1, 2L, float('1.5'), -0.0D, date'2026-01-02', timestamp'2026-01-02 03:04:05.000006',
   timestamp_ntz'2026-01-02 03:04:05.000006', 1.50BD, 123456789012345678.25BD, 'zürich', X'00ff',
   named_struct('x', 1, 'y', named_struct('z', 'a'))),
  (NULL, -2147483648, 9223372036854775807, float('-inf'), 0.0D, date'0001-01-01', timestamp'1000-01-01 00:00:00Z',
   timestamp_ntz'9999-12-31 23:59:59.999999', -1.25BD, -1.00BD, repeat('😀', 500), NULL, NULL),
  (false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', X'', named_struct('x', NULL, 'y', NULL))
AS t(b, i, l, f, d, day, ts, local, n, wide, s, bytes, point)
"""


def files_of(table: Table) -> list[DataFile]:
    return [planned.file for planned in table.refresh().scan().plan().files]


@pytest.fixture(autouse=True)
def no_rows_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are not written in this process here."""
    monkeypatch.setattr(data_files, "has_local_rows", lambda _: False)


def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let our own tasks write, whatever the rows are."""
    monkeypatch.setattr(data_files, "why_not", lambda *_: "they are compared")


def is_by_spark(table: Table) -> bool:
    """Whether all files of a table are by Spark's writer."""
    created = {pq.read_metadata(file.file_path.removeprefix("file://")).created_by for file in files_of(table)}
    return bool(created) and all("parquet-mr" in text for text in created)


def stored(table: Table) -> list[str]:
    """All files below a table's data directory, and the directories that have none."""
    return [str(path) for path in Path(table.location.removeprefix("file://"), "data").rglob("*")]


def described(file: DataFile) -> dict[str, Any]:
    """What a manifest says of the rows of a file."""
    own = {"file_path", "file_size_in_bytes", "column_sizes", "split_offsets", "nan_value_counts"}
    return {name: value for name, value in msgspec.structs.asdict(file).items() if name not in own}


def test_rows_of_every_type_are_as_tasks_write_them(
    spark: SparkSession, lake: Lake, pyiceberg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.sql(EVERY_TYPE).repartition(1)
    for name in ("db.mine", "db.other"):
        rows.limit(0).writeTo(name).create()
    rows.writeTo("db.mine").append()
    by_tasks(monkeypatch)
    rows.writeTo("db.other").append()
    mine, other = lake.load_table("db.mine"), lake.load_table("db.other")
    assert is_by_spark(mine)
    assert not is_by_spark(other)
    assert str(sorted(map(str, mine.scan().to_arrow().to_pylist()))) == str(
        sorted(map(str, other.scan().to_arrow().to_pylist()))
    )
    assert [described(f) for f in files_of(mine)] == [described(f) for f in files_of(other)]
    for file in files_of(mine):
        assert read_physical_schema(mine.io, file.file_path) == file.physical_schema
        assert file.column_sizes
        assert file.split_offsets == (4,)
    read = pyiceberg.load_table("db.mine").scan().to_arrow()
    assert read.num_rows == 3
    assert sorted(map(str, read.select(["i", "s", "point", "n", "wide", "day"]).to_pylist())) == sorted(
        map(str, mine.scan().to_arrow().select(["i", "s", "point", "n", "wide", "day"]).to_pylist())
    )


def test_numbers_that_are_none_leave_no_wrong_bounds(spark: SparkSession, lake: Lake) -> None:
    rows = spark.sql("SELECT * FROM VALUES (double('NaN'), -0.0D), (1.0D, 0.0D) AS t(x, zero)").repartition(1)
    rows.writeTo("db.t").create()
    table = lake.load_table("db.t")
    (file,) = files_of(table)
    assert is_by_spark(table)
    assert file.lower_bounds == {2: bytes(7) + b"\x80"}
    assert file.upper_bounds == {2: bytes(8)}
    assert not file.nan_value_counts
    assert spark.sql("SELECT count(*) FROM db.t WHERE isnan(x) OR x > 5").collect()[0][0] == 1
    assert spark.sql("SELECT count(*) FROM db.t WHERE zero = 0").collect()[0][0] == 2


def test_rows_stand_in_the_tables_order(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id bigint, region string) USING iceberg")
    spark.sql("ALTER TABLE db.t WRITE LOCALLY ORDERED BY bucket(3, region), id DESC")
    rows = spark.range(0, 2000, 1, 4).selectExpr("(id * 7919) % 2000 AS id", "concat('r', id % 3) AS region")
    rows.writeTo("db.t").append()
    table = lake.load_table("db.t")
    assert is_by_spark(table)
    assert {f.sort_order_id for f in files_of(table)} == {table.metadata.default_sort_order_id}
    for file in files_of(table):
        found = pq.read_table(file.file_path.removeprefix("file://")).to_pylist()
        buckets = [(Bucket(3).apply(STRING, row["region"]), -row["id"]) for row in found]
        assert buckets == sorted(buckets)
    assert spark.table("db.t").count() == 2000


def test_partitions_that_a_table_has_no_longer_are_null(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.t (id bigint, p int) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ('format-version'='1')"
    )
    spark.sql("ALTER TABLE db.t DROP PARTITION FIELD p")
    spark.range(0, 1000, 1, 2).selectExpr("id", "CAST(id % 5 AS INT) AS p").writeTo("db.t").append()
    table = lake.load_table("db.t")
    assert is_by_spark(table)
    assert [f.partition for f in files_of(table)] == [(None,)] * 2
    assert spark.table("db.t").selectExpr("sum(id)").collect()[0][0] == 499_500


def many(spark: SparkSession, rows: int = 400, tasks: int = 4) -> DataFrame:
    return spark.range(0, rows, 1, tasks).select(
        "id", F.col("id").cast("double").alias("amount"), F.concat(F.lit("r"), F.col("id") % 4).alias("region")
    )


def test_refusals_are_those_of_tasks(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.sql("CREATE TABLE db.t (id bigint NOT NULL, s string, st struct<x: string>) USING iceberg")
    table = lake.load_table("db.t")
    good = "named_struct('x', 'a') AS st"
    wrong = [
        spark.range(300).selectExpr("nullif(id, 299) AS id", "'a' AS s", good).repartition(1),
        spark.range(300).selectExpr("id", "CAST(X'ff41' AS STRING) AS s", good),
        spark.range(300).selectExpr("id", "'a' AS s", "named_struct('x', CAST(X'c3' AS STRING)) AS st"),
    ]

    def refusals() -> list[tuple[str, str]]:
        found = []
        for rows in wrong:
            with pytest.raises(InvalidInputError) as caught:
                rows.writeTo("db.t").append()
            found.append((type(caught.value).__name__, str(caught.value).partition(": Column")[0].partition(": ")[0]))
            assert stored(table) == []
        return found

    mine = refusals()
    by_tasks(monkeypatch)
    assert mine == refusals()
    assert "required column `id`, found 1 null" in mine[0][1]
    assert "column `s`" in mine[1][1]
    assert table.refresh().metadata.current_snapshot_id is None


def test_error_in_a_row_is_what_it_is_without_a_writer(spark: SparkSession, orders: Table) -> None:
    frame = many(spark).withColumn("amount", F.expr("id / (id - 399)"))
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        frame.writeTo("db.orders").append()
    assert stored(orders) == []


def test_nothing_is_left_but_the_files_of_the_table(spark: SparkSession, orders: Table) -> None:
    many(spark).writeTo("db.orders").append()
    many(spark).where("id < 0").writeTo("db.orders").append()
    assert is_by_spark(orders)
    assert sorted(stored(orders)) == sorted(f.file_path.removeprefix("file://") for f in files_of(orders))
    assert len(files_of(orders)) == 4


def test_files_have_the_layout_that_the_table_asks_for(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.t (id bigint, x double) USING iceberg TBLPROPERTIES ("
        "'write.parquet.compression-codec'='snappy', 'write.target-file-size-bytes'='16000',"
        "'write.parquet.row-group-size-bytes'='4000', 'write.metadata.metrics.column.x'='none')"
    )
    spark.range(0, 4000, 1, 1).selectExpr("id", "id * 0.5D AS x").writeTo("db.t").append()
    table = lake.load_table("db.t")
    assert is_by_spark(table)
    files = files_of(table)
    assert len(files) == 4
    for file in files:
        footer = pq.read_metadata(file.file_path.removeprefix("file://"))
        assert footer.row_group(0).column(0).compression == "SNAPPY"
        assert footer.num_rows == file.record_count == 1000
        assert len(file.split_offsets or ()) == footer.num_row_groups > 1
        assert file.file_size_in_bytes < 32_000
        assert (file.value_counts or {}).keys() == {1}


def test_columns_have_bloom_filters_if_the_table_asks_for_them(spark: SparkSession, lake: Lake) -> None:
    prefix = "write.parquet.bloom-filter"
    spark.sql(
        "CREATE TABLE db.t (id bigint, s struct<code: string>) USING iceberg TBLPROPERTIES ("
        f"'{prefix}-enabled.column.s.code'='true', '{prefix}-max-bytes'='4096')"
    )
    spark.range(0, 1000, 2, 1).selectExpr("id", "named_struct('code', concat('c', id)) AS s").writeTo("db.t").append()
    table = lake.load_table("db.t")
    (file,) = files_of(table)
    assert is_by_spark(table)
    with table.io.open_input(file.file_path) as stream:
        footer = read_footer(stream)
    assert [_BLOOM_FILTER in column[_METADATA] for column in footer[_ROW_GROUPS][0][_COLUMNS]] == [False, True]
    assert file.file_size_in_bytes < 20_000
    assert spark.sql("SELECT id FROM db.t WHERE s.code = 'c501'").collect() == []
    assert [row.id for row in spark.sql("SELECT id FROM db.t WHERE s.code = 'c500'").collect()] == [500]


def test_settings_of_the_session_change_nothing_and_stay(spark: SparkSession, lake: Lake) -> None:
    mine = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.compression.codec": "gzip",
        "spark.sql.files.maxRecordsPerFile": "1",
        "spark.sql.ansi.enabled": "false",
        "parquet.enable.dictionary": "false",
        "parquet.crypto.factory.class": "no.such.Factory",
    }
    for name, value in mine.items():
        spark.conf.set(name, value)
    try:
        rows = spark.range(3).selectExpr("timestamp'1000-01-01 00:00:00Z' AS ts", "1.5BD AS n", "CAST('x' AS INT) AS i")
        rows.repartition(1).writeTo("db.t").create()
        assert {name: spark.conf.get(name) for name in mine} == mine
    finally:
        for name in mine:
            spark.conf.unset(name)
    table = lake.load_table("db.t")
    (file,) = files_of(table)
    assert is_by_spark(table)
    footer = pq.read_metadata(file.file_path.removeprefix("file://"))
    assert [footer.row_group(0).column(place).physical_type for place in range(3)] == ["INT64", "INT32", "INT32"]
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert "PLAIN_DICTIONARY" in footer.row_group(0).column(0).encodings
    assert table.scan().to_arrow().to_pylist()[0] == {
        "ts": dt.datetime(1000, 1, 1, tzinfo=dt.UTC),
        "n": table.scan().to_arrow().to_pylist()[0]["n"],
        "i": None,
    }


@pytest.mark.parametrize(
    ("columns", "by", "reason"),
    [
        ("a bigint, b struct<x: string>", "", None),
        ("a array<int>", "", "`a` of type `list<int>`"),
        ("a struct<x: map<int, int>>", "", "`a` of type"),
        ("a struct<x: int NOT NULL>", "", "`a` of type"),
        ("a int", "a", "longer for each file"),
    ],
)
@pytest.mark.kinds(5)
def test_spark_writes_what_it_writes_as_iceberg_needs_it(
    spark: SparkSession, lake: Lake, columns: str, by: str, reason: str | None
) -> None:
    spark.sql(f"CREATE TABLE db.t ({columns}) USING iceberg {f'PARTITIONED BY ({by})' if by else ''}")
    table = lake.load_table("db.t")
    found = why_not(spark.table("db.t"), write_spec(table.metadata))
    assert (found is None) if reason is None else (reason in str(found))
