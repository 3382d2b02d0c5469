"""Every way of writing from Spark: where the rows go, which columns they go to, what is replaced."""

import datetime as dt
import re
from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException
from pyspark.errors import IllegalArgumentException as SparkIllegalArgument
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import partitioning
from rows import ORDERS, order_rows
from support_path import ROOT

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from bergline.spark.writes.data_files import write_files

pytestmark = pytest.mark.spark

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=str)


def ids_of(spark: SparkSession, table: str = "db.orders") -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


def frame_of(spark: SparkSession, *ids: int, region: str = "eu") -> DataFrame:
    return spark.createDataFrame(order_rows(*ids, region=region))


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def operation(table: Table, branch: str = "main") -> str | None:
    snapshot = table.refresh().metadata.head(branch)
    assert snapshot
    return snapshot.summary["operation"]


def test_table_is_created_with_its_rows_in_one_commit(spark: SparkSession, lake: Lake) -> None:
    frame = spark.sql("SELECT 1 AS id, 'a' AS s, TIMESTAMP '2026-01-02 03:04:05' AS ts, named_struct('x', 1S) AS who")
    (
        frame.writeTo("db.new")
        .using("iceberg")
        .partitionedBy(partitioning.days("ts"), partitioning.bucket(4, "id"), F.col("s"))
        .tableProperty("format-version", "3")
        .tableProperty("owner", "me")
        .option("snapshot-property.Run", "r1")
        .create()
    )
    table = lake.load_table("db.new")
    assert [f"{f.transform}" for f in table.spec.fields] == ["day", "bucket[4]", "identity"]
    assert (table.metadata.format_version, table.properties["owner"]) == (3, "me")
    assert [str(f.type) for f in table.schema.fields][:3] == ["int", "string", "timestamptz"]
    assert len(table.metadata.snapshots) == 1
    assert table.current_snapshot
    assert table.current_snapshot.summary["Run"] == "r1"
    assert table.metadata_location.rsplit("/", 1)[-1].startswith("00000-")
    assert spark.table("db.new").collect() == frame.collect()
    with pytest.raises(AlreadyExistsError) as caught:
        frame.writeTo("db.new").create()
    assert isinstance(caught.value, AnalysisException)


def test_replaced_table_begins_again_and_keeps_its_history(spark: SparkSession, parts: Table, lake: Lake) -> None:
    spark.range(2).withColumn("word", F.lit("x")).writeTo("db.parts").replace()
    table = lake.load_table("db.parts")
    assert table.schema.names.keys() == {"id", "word"}
    assert len(table.metadata.snapshots) == 3
    assert ids_of(spark, "db.parts") == [0, 1]
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        spark.range(2).writeTo("db.nope").replace()
    spark.table("db.parts").where("id = 1").writeTo("db.parts").createOrReplace()
    assert ids_of(spark, "db.parts") == [1]
    spark.range(1).writeTo("db.fresh").createOrReplace()
    assert ids_of(spark, "db.fresh") == [0]


def test_failed_creation_leaves_no_table_and_no_file(spark: SparkSession, lake: Lake) -> None:
    frame = spark.range(2).withColumn("x", F.expr("1 DIV (id - 1)"))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        frame.writeTo("db.new").create()
    assert lake.list_tables("db") == []


def test_overwrite_replaces_the_rows_of_a_condition(spark: SparkSession, parts: Table) -> None:
    frame_of(spark, 9).writeTo("db.parts").overwrite(F.col("region") == "eu")
    assert query(spark, "SELECT id, region FROM db.parts") == [(3, "us"), (9, "eu")]
    assert operation(parts) == "overwrite"
    # a condition that files match in part
    frame_of(spark, 4, 5, 6).writeTo("db.parts").append()
    frame_of(spark, 7).writeTo("db.parts").overwrite((F.col("id") >= 5) & F.col("region").isin("eu", "us"))
    assert ids_of(spark, "db.parts") == [3, 4, 7]
    frame_of(spark, 8).writeTo("db.parts").overwrite(F.lit(True))
    assert ids_of(spark, "db.parts") == [8]
    frame_of(spark, 10).writeTo("db.parts").overwrite("id > 100 AND id < 50")
    assert ids_of(spark, "db.parts") == [8, 10]
    with pytest.raises(UnsupportedError, match="cannot replace rows by the condition"):
        frame_of(spark, 10).writeTo("db.parts").overwrite(F.length("region") == 2)
    with pytest.raises(AnalysisException, match="regoin"):
        frame_of(spark, 10).writeTo("db.parts").overwrite(F.col("regoin") == "eu")


def test_conditions_on_times_are_in_the_sessions_zone(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.times (id BIGINT, ts TIMESTAMP) USING iceberg")
    spark.sql(
        "INSERT INTO db.times VALUES (1, TIMESTAMP '2026-01-01 00:30:00Z'), (2, TIMESTAMP '2026-01-01 02:30:00Z')"
    )
    spark.conf.set("spark.sql.session.timeZone", "+01:00")
    try:
        spark.sql(
            "INSERT INTO db.times REPLACE WHERE ts < '2026-01-01 02:00:00' SELECT 3, TIMESTAMP '2026-01-01 00:00:00'"
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert query(spark, "SELECT id, ts FROM db.times WHERE id = 3")[0][1] == dt.datetime(2025, 12, 31, 23)  # noqa: DTZ001
    assert ids_of(spark, "db.times") == [2, 3]


def test_overwritten_partitions_are_those_of_the_rows(spark: SparkSession, parts: Table) -> None:
    frame_of(spark, 9, region="us").writeTo("db.parts").overwritePartitions()
    assert ids_of(spark, "db.parts") == [1, 2, 9]
    before = parts.refresh().metadata_location
    frame_of(spark, 9).where("false").writeTo("db.parts").overwritePartitions()
    assert parts.refresh().metadata_location == before


@pytest.mark.parametrize("way", ["append", "overwritePartitions", "insertInto", "saveAsTable", "save", "sql", "name"])
def test_branch_is_honoured_by_every_way_of_writing(spark: SparkSession, orders: Table, way: str) -> None:
    orders.append(order_rows(1))
    frame = frame_of(spark, 2)
    match way:
        case "append" | "overwritePartitions":
            getattr(frame.writeTo("db.orders").option("branch", "dev"), way)()
        case "insertInto":
            frame.write.option("Branch", "dev").insertInto("db.orders")
        case "saveAsTable":
            frame.write.mode("append").saveAsTable("db.orders", branch="dev")
        case "save":
            frame.write.format("iceberg").mode("append").option("branch", "dev").save("db.orders")
        case "sql":
            spark.sql("INSERT INTO db.orders WITH (branch = 'dev') VALUES (2, 1.0, 'eu')")
        case "name":
            orders.refs.create_branch("dev")
            frame.write.insertInto("db.orders.branch_dev")
    assert ids_of(spark) == [1]
    assert ids_of(spark, "db.orders.branch_dev")[-1] == 2


def test_insert_in_all_its_forms(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("INSERT INTO db.orders BY NAME SELECT 'us' AS region, 2 AS ID")
    spark.sql("INSERT INTO db.orders TABLE db.orders")
    assert ids_of(spark) == [1, 1, 2, 2]
    spark.sql("WITH q AS (SELECT 3 AS id) INSERT OVERWRITE db.orders (region, id) SELECT 'eu', id FROM q")
    assert query(spark, "SELECT * FROM db.orders") == [(3, None, "eu")]
    spark.sql("INSERT INTO db.orders REPLACE WHERE id = 3 SELECT id + 1, amount, region FROM db.orders")
    assert ids_of(spark) == [4]
    spark.sql("INSERT INTO db.orders FROM db.orders SELECT id + 1, amount, region")
    assert ids_of(spark) == [4, 5]
    spark.sql("INSERT INTO db.orders SELECT :id, 1.0, 'eu'", args={"id": 6})
    assert ids_of(spark) == [4, 5, 6]


def test_insert_takes_arguments_and_keeps_braces_and_comments(spark: SparkSession, orders: Table) -> None:
    spark.sql("INSERT INTO db.orders VALUES (:id, :amount, '{x}') -- {y}", args={"id": 1, "amount": 2.5})
    spark.sql("INSERT INTO `db`.`orders` /* {z} */ SELECT ?, ?, region FROM db.orders", args=[2, 0.5])
    spark.sql("CREATE TABLE db.copy AS SELECT id + :n AS id FROM db.orders WHERE id > :low", args={"n": 10, "low": 1})
    assert sorted(map(tuple, spark.table("db.orders").collect())) == [(1, 2.5, "{x}"), (2, 0.5, "{x}")]
    assert [row.id for row in spark.table("db.copy").collect()] == [12]


def test_static_partition_values_go_to_their_columns_and_bound_the_overwrite(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.p (id BIGINT, day DATE, region STRING, n INT) USING iceberg PARTITIONED BY (day, region, n)"
    )
    spark.sql("INSERT INTO db.p PARTITION (region = 'eu', n = '7') SELECT 1, DATE '2026-01-01'")
    spark.sql("INSERT INTO db.p PARTITION (day = '2026-01-02', region, n) VALUES (2, 'us', 7), (3, 'eu', 8)")
    spark.sql("INSERT INTO db.p PARTITION (region = null) (id) VALUES (4)")
    assert query(spark, "SELECT id, cast(day AS string), region, n FROM db.p") == [
        (1, "2026-01-01", "eu", 7),
        (2, "2026-01-02", "us", 7),
        (3, "2026-01-02", "eu", 8),
        (4, None, None, None),
    ]
    spark.sql("INSERT OVERWRITE db.p PARTITION (region = 'eu', day, n) VALUES (5, DATE '2026-03-01', 1)")
    assert ids_of(spark, "db.p") == [2, 4, 5]
    spark.sql("INSERT OVERWRITE db.p PARTITION (region = null) VALUES (6, null, null)")
    assert ids_of(spark, "db.p") == [2, 5, 6]
    spark.conf.set(DYNAMIC, "dynamic")
    try:
        spark.sql("INSERT OVERWRITE db.p PARTITION (region = 'eu') VALUES (7, DATE '2026-03-02', 1)")
    finally:
        spark.conf.unset(DYNAMIC)
    assert ids_of(spark, "db.p") == [2, 5, 6, 7]


def test_structs_go_by_name_in_frames_and_by_position_in_insert(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.n (id BIGINT, who STRUCT<name: STRING, age: BIGINT>, list ARRAY<STRUCT<a: INT, b: INT>>, "
        "m MAP<STRING, STRUCT<a: INT, b: INT>>) USING iceberg"
    )
    spark.sql(
        "SELECT map('k', named_struct('b', 1, 'a', 2)) AS m, array(named_struct('b', 3, 'a', 4)) AS list, "
        "named_struct('AGE', 5, 'name', 'x') AS who, 1 AS id"
    ).writeTo("db.n").append()
    spark.sql("SELECT named_struct('age', 6) AS who, 2 AS id").writeTo("db.n").append()
    spark.sql("INSERT INTO db.n (id, who) VALUES (3, struct('y', 7))")
    rows = {row.id: row.asDict(recursive=True) for row in spark.table("db.n").collect()}
    assert rows[1] == {
        "id": 1,
        "who": {"name": "x", "age": 5},
        "list": [{"a": 4, "b": 3}],
        "m": {"k": {"a": 2, "b": 1}},
    }
    assert rows[2]["who"] == {"name": None, "age": 6}
    assert rows[3]["who"] == {"name": "y", "age": 7}
    with pytest.raises(InvalidInputError, match=r"expected `bigint`, found `string` for column `who\.age`"):
        spark.sql("INSERT INTO db.n (who) SELECT struct('y', 'old')")
    with pytest.raises(InvalidInputError, match=r"expected fields `name`, `age`, found `nmae` for column `who`"):
        spark.sql("SELECT named_struct('nmae', 'x') AS who").writeTo("db.n").append()
    with pytest.raises(InvalidInputError, match=r"expected 2 fields .* for column `list.element`"):
        spark.sql("INSERT INTO db.n (list) SELECT array(struct(1))")


def test_columns_that_are_not_given_have_their_default(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.d", ORDERS, properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("state", "string", default="new")
    spark.sql("INSERT INTO db.d (id) VALUES (1)")
    spark.createDataFrame([(2,)], "id long").writeTo("db.d").append()
    spark.sql("INSERT INTO db.d VALUES (3, DEFAULT, 'eu', DEFAULT)")
    assert query(spark, "SELECT id, amount, state FROM db.d") == [(1, None, "new"), (2, None, "new"), (3, None, "new")]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("INSERT INTO db.parts BY NAME SELECT 1 AS id, 'x' AS regoin", NotFoundError, "no column `regoin`"),
        ("INSERT INTO db.parts BY NAME SELECT 1 AS id, 2 AS ID", InvalidInputError, "column `id` once"),
        ("INSERT INTO db.parts PARTITION (id = 1) VALUES (1.0, 'x')", InvalidInputError, r"as they are \(`region`\)"),
        ("INSERT INTO db.parts PARTITION (nope = 1) VALUES (1)", NotFoundError, "no column `nope`"),
        ("INSERT INTO db.parts PARTITION (region = 'x') VALUES (1)", InvalidInputError, "expected 2 columns"),
        ("INSERT INTO db.parts PARTITION (region = 'x', region) VALUES (1)", InvalidInputError, "found it twice"),
        ("INSERT INTO db.parts PARTITION (region = 'x') (id, region) VALUES (1, 'y')", InvalidInputError, "PARTITION"),
        ("INSERT INTO db.parts (id, ID) VALUES (1, 2)", InvalidInputError, "each column once"),
        ("INSERT OVERWRITE db.parts PARTITION (region = 'x') IF NOT EXISTS VALUES (1, 2)", UnsupportedError, "IF NOT"),
        ("INSERT INTO db.parts WITH (brnch = 'x') VALUES (1, 1, 'x')", UnsupportedError, "found `brnch`"),
        ("INSERT INTO db.parts WITH (`snapshot-property.wap.id` = 'x') VALUES (1, 1, '')", InvalidInputError, "wap.id"),
        ("INSERT INTO db.parts WITH (`distribution-mode` = 'x') VALUES (1, 1, 'x')", InvalidInputError, "none or hash"),
        ("INSERT INTO db.parts REPLACE WHERE id > rand() VALUES (1, 1, 'x')", UnsupportedError, "by the condition"),
        ("INSERT INTO db.parts VALUES (null, 1, 'x')", InvalidInputError, "required column `id`, found 1 null$"),
        ("INSERT INTO db.parts VALUES (true, 1, 'x')", InvalidInputError, "expected `bigint`, found `boolean`"),
    ],
)
def test_inserts_that_do_not_fit_say_which_column_and_write_nothing(
    spark: SparkSession, parts: Table, statement: str, error: type[Exception], message: str
) -> None:
    before, files = parts.metadata_location, parts.io.list(parts.location)
    with pytest.raises(error, match=message):
        spark.sql(statement)
    assert parts.refresh().metadata_location == before
    assert parts.io.list(parts.location) == files


def test_near_names_are_offered(spark: SparkSession, parts: Table) -> None:
    with pytest.raises(NotFoundError) as caught:
        spark.sql("SELECT 1 AS id, 'x' AS regoin").writeTo("db.parts").append()
    assert caught.value.near == ("region",)


def test_wap_branch_takes_no_other_branch_and_no_id_beside_it(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    spark.conf.set("spark.wap.branch", "audit")
    for write in (
        lambda: spark.sql("INSERT INTO db.orders.branch_dev VALUES (2, 1.0, 'eu')"),
        lambda: frame_of(spark, 2).writeTo("db.orders").option("branch", "main").append(),
    ):
        with pytest.raises(InvalidInputError, match=r"found `\w+` and `audit` in spark.wap.branch"):
            write()
    spark.conf.set("spark.wap.id", "w1")
    try:
        with pytest.raises(SparkIllegalArgument, match="found both: `audit` and `w1`"):
            spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    finally:
        spark.conf.unset("spark.wap.id")
    frame_of(spark, 2).writeTo("db.orders").option("branch", "audit").append()
    assert set(orders.refresh().refs) == {"main", "dev", "audit"}


def test_wap_id_stages_a_snapshot_that_no_ref_names(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.conf.set("spark.wap.id", "w1")
    try:
        frame_of(spark, 2).writeTo("db.orders").append()
        spark.sql("INSERT OVERWRITE db.orders VALUES (3, 1.0, 'eu')")
        frame_of(spark, 4).writeTo("db.orders").overwrite("id = 1")
        orders.refresh().set_properties({"write.wap.enabled": "false"})
        frame_of(spark, 5).writeTo("db.orders").append()
    finally:
        spark.conf.unset("spark.wap.id")
    assert ids_of(spark) == [1, 5]
    staged = [s for s in orders.refresh().metadata.snapshots if s.summary.get("wap.id") == "w1"]
    assert [s.summary["operation"] for s in staged] == ["append", "overwrite", "overwrite"]
    assert [ids_of(spark, f"db.orders VERSION AS OF {s.snapshot_id}") for s in staged] == [[1, 2], [3], [4]]


def test_table_is_not_replaced_while_writes_go_to_a_branch(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    frame = frame_of(spark, 2)
    with pytest.raises(RefusedError, match=r"cannot replace `db\.orders` on branch `dev`: .* `main` would be empty"):
        frame.writeTo("db.orders").option("branch", "dev").createOrReplace()
    with pytest.raises(RefusedError, match="on branch `dev`"):
        frame.write.mode("overwrite").option("branch", "dev").saveAsTable("db.orders")
    for key, value, place in (("branch", "dev", "on branch `dev`"), ("id", "w1", "under WAP id `w1`")):
        spark.conf.set(f"spark.wap.{key}", value)
        try:
            for text in ("REPLACE TABLE db.orders (id BIGINT)", "CREATE OR REPLACE TABLE db.orders AS SELECT 2 AS id"):
                with pytest.raises(RefusedError, match=place):
                    spark.sql(text)
            frame.writeTo(f"db.new_{key}").createOrReplace()  # there is nothing to replace
        finally:
            spark.conf.unset(f"spark.wap.{key}")
    table = orders.refresh()
    assert [table.scan(ref=ref).to_arrow().num_rows for ref in ("main", "dev")] == [1, 1]
    assert len(table.metadata.snapshots) == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda rows: rows.write.mode("overwrite").saveAsTable("db.orders.branch_b"),
        lambda rows: rows.writeTo("db.orders.branch_b").createOrReplace(),
        lambda rows: rows.sparkSession.sql("CREATE OR REPLACE TABLE db.orders.snapshots (id BIGINT) USING iceberg"),
        lambda rows: rows.sparkSession.sql("CREATE TABLE db.orders.branch_c USING iceberg AS SELECT 1 AS id"),
    ],
)
def test_branches_and_metadata_tables_are_not_made_as_tables(
    spark: SparkSession, lake: Lake, orders: Table, write: Callable[[DataFrame], object]
) -> None:
    orders.append(order_rows(1)).refs.create_branch("b")
    before = lake.load_table("db.orders").metadata_location
    with pytest.raises(RefusedError, match=r"cannot make or replace `db\.orders\..*`: it is no table"):
        write(spark.range(1))
    assert lake.load_table("db.orders").metadata_location == before
    assert lake.list_tables("db") == ["db.orders"]


def test_tag_in_wap_branch_refuses_writes(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    spark.conf.set("spark.wap.branch", "v1")
    with pytest.raises(RefusedError, match="it is a tag"):
        frame_of(spark, 2).write.insertInto("db.orders")
    assert ids_of(spark) == [1]


def test_branch_that_is_dropped_before_the_commit_is_not_made_again(
    spark: SparkSession, orders: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(order_rows(1))
    data = f"{orders.location}/data"
    files = orders.io.list(data)

    def write_files_and_drop(*args: object) -> object:
        written = write_files(*args)
        lake.load_table("db.orders").refs.drop_branch("dev")
        return written

    monkeypatch.setattr("bergline.spark.writes.rows.write_files", write_files_and_drop)
    for way in ("append", "overwritePartitions", "overwrite"):
        orders.refresh().refs.create_branch("dev")
        writer = frame_of(spark, 2).writeTo("db.orders.branch_dev")
        with pytest.raises(NotFoundError, match="no branch `dev`"):
            writer.overwrite("id = 1") if way == "overwrite" else getattr(writer, way)()
        assert set(orders.refresh().refs) == {"main"}
        assert orders.io.list(data) == files


def test_guide_to_writing_runs(spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "guides" / "writing.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {"spark": spark})  # noqa: S102  (our own page)
    assert capsys.readouterr().out == "8 13\n"
