"""An overwrite that reads what it replaces: rows that others committed since the read are never lost."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import bergline.spark
from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError
from bergline.spark.writes import rows as write_rows
from bergline.spark.writes.data_files import write_files
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.spark

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def ids_now(lake: Lake, ref: str = "main") -> list[int]:
    return ids(lake.load_table("db.parts").scan(ref=ref).to_arrow())


def by_view(text: str) -> Callable[[DataFrame], None]:
    """A statement on the frame, which is the view `seen`."""

    def run(frame: DataFrame) -> None:
        frame.createOrReplaceTempView("seen")
        frame.sparkSession.sql(text)

    return run


def dynamically(write: Callable[[DataFrame], None]) -> Callable[[DataFrame], None]:
    def run(frame: DataFrame) -> None:
        frame.sparkSession.conf.set(DYNAMIC, "dynamic")
        try:
            write(frame)
        finally:
            frame.sparkSession.conf.unset(DYNAMIC)

    return run


OVERWRITES: dict[str, Callable[[DataFrame], None]] = {
    "writeTo overwrite": lambda f: f.writeTo("db.parts").overwrite(F.lit(True)),
    "writeTo overwrite of a region": lambda f: f.writeTo("db.parts").overwrite("region = 'eu'"),
    "writeTo overwritePartitions": lambda f: f.writeTo("db.parts").overwritePartitions(),
    "insertInto": lambda f: f.write.insertInto("db.parts", overwrite=True),
    "insertInto, dynamic": dynamically(lambda f: f.write.mode("overwrite").insertInto("db.parts")),
    "save": lambda f: f.write.format("iceberg").mode("overwrite").save("db.parts"),
    "save, dynamic": lambda f: (
        f.write.format("iceberg").option("overwrite-mode", "dynamic").mode("overwrite").save("db.parts")
    ),
    "INSERT OVERWRITE": by_view("INSERT OVERWRITE db.parts SELECT * FROM seen"),
    "INSERT OVERWRITE, dynamic": dynamically(by_view("INSERT OVERWRITE db.parts SELECT * FROM seen")),
    "INSERT OVERWRITE of a partition": by_view(
        "INSERT OVERWRITE db.parts PARTITION (region = 'eu') SELECT id, amount FROM seen WHERE region = 'eu'"
    ),
    "REPLACE WHERE": by_view("INSERT INTO db.parts REPLACE WHERE region = 'eu' SELECT * FROM seen"),
}
REPLACEMENTS: dict[str, Callable[[DataFrame], None]] = {
    "saveAsTable": lambda f: f.write.mode("overwrite").saveAsTable("db.parts"),
    "replace": lambda f: f.writeTo("db.parts").replace(),
    "createOrReplace": lambda f: f.writeTo("db.parts").createOrReplace(),
    "REPLACE TABLE AS": by_view("REPLACE TABLE db.parts USING iceberg AS SELECT * FROM seen"),
    "CREATE OR REPLACE TABLE AS": by_view("CREATE OR REPLACE TABLE db.parts USING iceberg AS SELECT * FROM seen"),
}
ALL = OVERWRITES | REPLACEMENTS
OPERATIONS = ["insertInto", "writeTo overwrite of a region", "writeTo overwritePartitions", "createOrReplace"]
"""Ways that end in different operations of the table."""
RACING = [ALL[way] for way in ("insertInto", "writeTo overwritePartitions", "saveAsTable")]


@pytest.mark.parametrize("way", ALL)
def test_rows_appended_after_the_frame_was_made_are_not_replaced(
    spark: SparkSession, parts: Table, lake: Lake, way: str
) -> None:
    seen = spark.table("db.parts").where("id < 100")
    parts.append(order_rows(4))
    with pytest.raises(ConflictError, match="came first and added"):
        ALL[way](seen)
    assert ids_now(lake) == [1, 2, 3, 4]
    ALL[way](spark.table("db.parts"))  # looked at again, it goes through
    assert set(ids_now(lake)) == {1, 2, 3, 4}


@pytest.mark.parametrize("way", OPERATIONS)
def test_rows_deleted_after_the_frame_was_made_do_not_come_back(
    spark: SparkSession, parts: Table, lake: Lake, way: str
) -> None:
    seen = spark.table("db.parts").where("id < 100")
    parts.delete("id = 1")
    with pytest.raises(ConflictError):
        ALL[way](seen)
    assert ids_now(lake) == [2, 3]


@pytest.mark.parametrize("way", OPERATIONS)
def test_a_frame_that_read_nothing_of_the_table_replaces_what_is_there(
    spark: SparkSession, parts: Table, lake: Lake, way: str
) -> None:
    fresh = spark.createDataFrame(order_rows(9))
    parts.append(order_rows(4))
    ALL[way](fresh)
    assert 9 in ids_now(lake)
    assert 4 not in ids_now(lake)


STATEMENTS = [
    "INSERT OVERWRITE db.parts SELECT p.id, p.amount + n.amount, p.region FROM db.parts p JOIN news n ON p.id = n.id",
    "INSERT OVERWRITE db.parts PARTITION (region = 'eu') SELECT id, amount FROM db.parts WHERE region = 'eu'",
    "INSERT INTO db.parts REPLACE WHERE region = 'eu' SELECT id, 0.0, region FROM db.parts WHERE region = 'eu'",
    "INSERT OVERWRITE db.parts SELECT * FROM news WHERE id IN (SELECT id FROM db.parts)",
    "WITH p AS (SELECT * FROM db.parts) INSERT OVERWRITE db.parts SELECT * FROM p",
    "CREATE OR REPLACE TABLE db.parts USING iceberg AS SELECT * FROM db.parts WHERE id > 1",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_rows_appended_while_a_statement_writes_are_not_replaced(
    spark: SparkSession, parts: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    spark.createDataFrame(order_rows(1, 2, 3)).createOrReplaceTempView("news")

    def write_and_be_late(*args: Any) -> Any:
        files = write_files(*args)
        lake.load_table("db.parts").append(order_rows(4))
        return files

    monkeypatch.setattr(write_rows, "write_files", write_and_be_late)
    with pytest.raises(ConflictError, match="came first and added"):
        spark.sql(text)
    assert ids_now(lake) == [1, 2, 3, 4]


def _cached(frame: DataFrame) -> DataFrame:
    frame.cache().count()
    return frame


def _in_sql(text: str) -> Callable[[SparkSession, DataFrame], DataFrame]:
    def run(spark: SparkSession, frame: DataFrame) -> DataFrame:
        frame.createOrReplaceTempView("seen")
        return spark.sql(text)

    return run


SHAPES: dict[str, Callable[[SparkSession, DataFrame], DataFrame]] = {
    "join": lambda s, f: s.createDataFrame(order_rows(1)).join(f.select("id"), "id"),
    "union": lambda s, f: s.createDataFrame(order_rows(9)).union(f),
    "cache": lambda _, f: _cached(f).where("id > 0"),
    "distinct and sorted": lambda _, f: f.distinct().orderBy("id").limit(10),
    "aggregate": lambda _, f: f.groupBy("region").agg(F.max("id").alias("id"), F.sum("amount").alias("amount")),
    "renamed columns": lambda _, f: f.toDF("a", "b", "c").toDF(*f.columns),
    "function": lambda _, f: f.mapInPandas(lambda parts: parts, f.schema),
    "scalar subquery": _in_sql("SELECT 9 AS id, (SELECT max(amount) FROM seen) AS amount, 'eu' AS region"),
    "semi-join": lambda s, f: s.createDataFrame(order_rows(1)).join(f, "id", "left_semi"),
    "view on a view": _in_sql("WITH x AS (SELECT * FROM seen) SELECT * FROM (SELECT * FROM x) y WHERE y.id > 0"),
    "frames by name": lambda s, f: s.sql("SELECT * FROM {f} WHERE id > 0", f=f),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_read_is_known_through_every_shape(spark: SparkSession, parts: Table, lake: Lake, shape: str) -> None:
    seen = SHAPES[shape](spark, spark.table("db.parts")).select("id", "amount", "region")
    parts.append(order_rows(4))
    with pytest.raises(ConflictError):
        seen.write.insertInto("db.parts", overwrite=True)
    assert ids_now(lake) == [1, 2, 3, 4]


@pytest.mark.parametrize("length", ["0", "100"])
def test_what_was_read_is_known_where_plans_are_cut(spark: SparkSession, parts: Table, lake: Lake, length: str) -> None:
    spark.table("db.parts").createOrReplaceTempView("seen")
    texts = "SELECT id, amount, 'eu' FROM (SELECT * FROM seen)", "SELECT (SELECT max(id) FROM seen), 1.0, 'eu'"
    frames = [spark.sql(text) for text in texts]
    parts.append(order_rows(4))
    spark.conf.set("spark.sql.maxPlanStringLength", length)
    try:
        for seen in frames:
            with pytest.raises(ConflictError):
                seen.write.insertInto("db.parts", overwrite=True)
    finally:
        spark.conf.unset("spark.sql.maxPlanStringLength")
    assert ids_now(lake) == [1, 2, 3, 4]


SOURCES: dict[str, Callable[[SparkSession, Table], DataFrame]] = {
    "spark.sql": lambda s, _: s.sql("SELECT * FROM db.parts"),
    "spark.read.table": lambda s, _: s.read.table("db.parts"),
    "branch as option": lambda s, _: s.read.option("branch", "main").table("db.parts"),
    "branch as a version": lambda s, _: s.sql("SELECT * FROM db.parts VERSION AS OF 'main'"),
    "bergline.spark.read": lambda s, t: bergline.spark.read(t.scan(), s),
    "temporary view in SQL": lambda s, _: (
        s.sql("CREATE OR REPLACE TEMP VIEW kept AS SELECT * FROM db.parts") and s.table("kept")
    ),
    "incremental read": lambda s, t: (
        s.read.format("iceberg").option("start-snapshot-id", t.metadata.snapshots[0].snapshot_id).load("db.parts")
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_what_was_read_is_known_from_every_source(spark: SparkSession, parts: Table, lake: Lake, source: str) -> None:
    seen = SOURCES[source](spark, parts)
    parts.append(order_rows(4))
    with pytest.raises(ConflictError):
        seen.write.insertInto("db.parts", overwrite=True)
    assert ids_now(lake) == [1, 2, 3, 4]


def test_fixed_versions_and_other_branches_are_no_read_of_the_branch(
    spark: SparkSession, parts: Table, lake: Lake
) -> None:
    head = parts.current_snapshot.snapshot_id  # type: ignore[union-attr]
    parts.refs.create_tag("good", at=head)
    parts.refs.create_branch("dev")
    frames = [
        spark.sql(f"SELECT * FROM db.parts VERSION AS OF {head}"),
        spark.read.option("tag", "good").table("db.parts"),
        spark.table("db.parts.branch_dev"),
    ]
    for frame in frames:
        parts.refresh().append(order_rows(4))
        frame.write.insertInto("db.parts", overwrite=True)  # as it was, which is what restoring means
        assert ids_now(lake) == [1, 2, 3]


def test_a_branch_is_validated_from_what_was_read_of_it(spark: SparkSession, parts: Table, lake: Lake) -> None:
    parts.refs.create_branch("dev")
    seen = spark.table("db.parts.branch_dev")
    parts.append(order_rows(4))  # to `main`: no concern of the branch
    seen.writeTo("db.parts.branch_dev").overwrite(F.lit(True))
    seen = spark.table("db.parts.branch_dev")
    parts.append(order_rows(5), branch="dev")
    with pytest.raises(ConflictError):
        seen.writeTo("db.parts.branch_dev").overwrite(F.lit(True))
    assert ids_now(lake, "dev") == [1, 2, 3, 5]
    # a branch that the write makes begins at `main`
    seen = spark.table("db.parts")
    parts.append(order_rows(6))
    with pytest.raises(ConflictError):
        seen.writeTo("db.parts").option("branch", "new").overwrite(F.lit(True))
    assert "new" not in parts.refresh().refs


def test_the_sessions_branch_is_validated_too(spark: SparkSession, parts: Table, lake: Lake) -> None:
    parts.refs.create_branch("audit")
    spark.conf.set("spark.wap.branch", "audit")
    try:
        seen = spark.table("db.parts")
        parts.append(order_rows(4), branch="audit")
        with pytest.raises(ConflictError):
            seen.write.insertInto("db.parts", overwrite=True)
    finally:
        spark.conf.unset("spark.wap.branch")
    assert ids_now(lake, "audit") == [1, 2, 3, 4]


def test_an_empty_table_counts_as_read(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS)
    frames = [spark.table("db.parts"), spark.sql("SELECT * FROM db.parts")]
    table.append(order_rows(4))
    for seen in frames:
        with pytest.raises(ConflictError):
            seen.union(spark.createDataFrame(order_rows(9))).write.insertInto("db.parts", overwrite=True)
        assert ids_now(lake) == [4]


def test_of_two_reads_the_older_one_counts(spark: SparkSession, parts: Table, lake: Lake) -> None:
    old = spark.table("db.parts")
    parts.append(order_rows(4))
    new = spark.table("db.parts")
    for both in (old.union(new.where("id = 4")), new.where("id = 4").union(old)):
        with pytest.raises(ConflictError):
            both.write.insertInto("db.parts", overwrite=True)
    new.where("id = 4").union(new).write.insertInto("db.parts", overwrite=True)
    assert ids_now(lake) == [1, 2, 3, 4, 4]


def test_rows_of_other_partitions_stay_and_are_no_conflict(spark: SparkSession, parts: Table, lake: Lake) -> None:
    seen = spark.table("db.parts").where("region = 'eu'").withColumn("amount", F.lit(0.0))
    parts.append(order_rows(4, region="us"))
    seen.writeTo("db.parts").overwritePartitions()
    seen = spark.table("db.parts").where("region = 'eu'")
    parts.refresh().append(order_rows(5, region="us"))
    seen.writeTo("db.parts").overwrite("region = 'eu'")
    assert ids_now(lake) == [1, 2, 3, 4, 5]


def test_options_of_the_user_come_first(spark: SparkSession, parts: Table, lake: Lake) -> None:
    start = parts.current_snapshot.snapshot_id  # type: ignore[union-attr]
    fresh, seen = spark.createDataFrame(order_rows(9)), spark.table("db.parts")
    now = parts.append(order_rows(4)).current_snapshot.snapshot_id  # type: ignore[union-attr]
    # rows that left Spark's plans carry no mark: the caller says what was read
    for write in (
        fresh.writeTo("db.parts").option("validate-from-snapshot-id", start),
        fresh.writeTo("db.parts").options(**{"Validate-From-Snapshot-Id": start, "isolation-level": "serializable"}),
    ):
        with pytest.raises(ConflictError):
            write.overwrite(F.lit(True))
        with pytest.raises(ConflictError):
            write.overwrite("region = 'eu'")
        with pytest.raises(ConflictError):
            write.overwritePartitions()
        with pytest.raises(ConflictError):
            write.createOrReplace()
    with pytest.raises(ConflictError):
        spark.sql(f"INSERT OVERWRITE db.parts WITH (`validate-from-snapshot-id` = '{start}') VALUES (9, 9.0, 'eu')")
    assert ids_now(lake) == [1, 2, 3, 4]
    seen.writeTo("db.parts").option("validate-from-snapshot-id", now).overwritePartitions()
    assert ids_now(lake) == [1, 2, 3, 4]  # what it read is what there is now
    for level, id_ in (("snapshot", 5), ("none", 6)):
        seen = spark.table("db.parts")
        lake.load_table("db.parts").append(order_rows(id_))
        seen.write.option("isolation-level", level).insertInto("db.parts", overwrite=True)
        assert ids_now(lake) == list(range(1, id_ + 1))


def test_options_that_cannot_be_are_refused(spark: SparkSession, parts: Table) -> None:
    fresh = spark.createDataFrame(order_rows(9))
    with pytest.raises(InvalidInputError, match="expected the id of a snapshot"):
        fresh.writeTo("db.parts").option("validate-from-snapshot-id", "main")
    with pytest.raises(InvalidInputError, match="found `none` beside a snapshot"):
        fresh.write.options(**{"validate-from-snapshot-id": 1, "isolation-level": "none"}).insertInto(
            "db.parts", overwrite=True
        )
    with pytest.raises(ConflictError, match="is not in its history"):
        fresh.write.option("validate-from-snapshot-id", 1).insertInto("db.parts", overwrite=True)


def test_failed_overwrite_leaves_no_file(spark: SparkSession, parts: Table, lake: Lake) -> None:
    seen = spark.table("db.parts")
    parts.append(order_rows(4))
    before = set(parts.inspect("all_files")["file_path"].to_pylist())
    for write in (OVERWRITES["insertInto"], REPLACEMENTS["createOrReplace"], OVERWRITES["writeTo overwrite"]):
        with pytest.raises(ConflictError):
            write(seen)
    found = set(lake.catalog.io.list(f"{parts.location}/data"))
    assert found == before


def test_no_acknowledged_row_is_lost_beside_writers_that_race(spark: SparkSession, parts: Table, lake: Lake) -> None:
    """The race of tests/stateful, with Spark as the one that reads and overwrites."""
    acknowledged = [1, 2, 3]

    def append(first: int) -> None:
        for order in range(first, first + 5):
            lake.load_table("db.parts").append(order_rows(order, region="eu" if order % 3 else "us"))
            acknowledged.append(order)

    def overwrite() -> None:
        for write in RACING:
            while True:
                try:
                    write(spark.table("db.parts").withColumn("amount", F.col("amount") + 1))
                except ConflictError:
                    continue
                break

    run_at_once(overwrite, lambda: append(100), lambda: append(200))
    assert ids_now(lake) == sorted(acknowledged)
