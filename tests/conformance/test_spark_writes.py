"""The same writes through the official runtime and through bergline: equal rows, equal metadata, read by each other."""

from collections import Counter
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import ConflictError, RefusedError
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.store_assignment import AssignmentRules, find_misfit
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.spark

HEAD = """
from pyspark.sql import functions as F
from pyspark.sql.functions import partitioning

def dynamic(text):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql(text)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

def frame(*ids, region="eu"):
    return spark.createDataFrame([(i, i * 10.0, region) for i in ids], "id bigint, amount double, region string")
"""
ROWS = """
result = sorted([repr(v) for v in row] for row in spark.sql(f"SELECT * FROM {table}").collect())
"""
SCRIPTS = {
    "insert": """
        spark.sql(f"INSERT INTO {t} VALUES (1, 1.5, 'eu'), (2, 2.5, 'us'), (3, null, null)")
        spark.sql(f"INSERT INTO {t} (region, id) SELECT 'eu', 4")
        spark.sql(f"INSERT INTO {t} BY NAME SELECT 'us' AS region, 5 AS id, 1 AS amount")
        spark.sql(f"INSERT INTO {t} TABLE {t}")
        spark.sql(f"WITH q AS (SELECT 9 AS id) INSERT INTO {t} SELECT id, id, 'q' FROM q")
        spark.sql(f"INSERT INTO {t} SELECT * FROM {t} WHERE false")
        spark.sql(f"INSERT INTO {t} PARTITION (region = 'p') SELECT 10, 1.0")
        """,
    "overwrite": """
        spark.sql(f"INSERT INTO {t} VALUES (1, 1.5, 'eu'), (2, 2.5, 'us'), (3, null, null)")
        dynamic(f"INSERT OVERWRITE {t} SELECT 4, 1.0, 'us'")
        spark.sql(f"INSERT OVERWRITE {t} PARTITION (region = 'eu') SELECT 5, 2.0")
        dynamic(f"INSERT OVERWRITE {t} PARTITION (region = 'nw') SELECT 6, 2.0")
        dynamic(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false")
        spark.sql(f"INSERT INTO {t} REPLACE WHERE region = 'us' SELECT 7, 1.0, 'us'")
        spark.sql(f"INSERT OVERWRITE {t} SELECT id + 10, amount, region FROM {t}")
        spark.sql(f"INSERT OVERWRITE {t} PARTITION (region = 'eu') SELECT 8, 2.0 WHERE false")
        spark.sql(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false")
        """,
    "frames": """
        frame(1, 2).writeTo(t).append()
        frame(3, region="us").select("region", "id").writeTo(t).append()
        frame(4, region="us").writeTo(t).overwritePartitions()
        frame(5).writeTo(t).overwrite(F.col("region") == "eu")
        frame(6, region=None).writeTo(t).option("snapshot-property.run", "r1").append()
        frame(7).write.insertInto(t)
        frame(8).write.mode("append").saveAsTable(t)
        frame(9).write.format("iceberg").mode("append").save(t)
        frame(10).writeTo(t).overwrite((F.col("region") == "us") | F.col("region").isNull())
        """,
    "new tables": """
        layout = [partitioning.bucket(4, "id"), F.col("region")]
        frame(1, 2).writeTo(f"{t}_a").using("iceberg").partitionedBy(*layout).create()
        spark.sql(f"INSERT INTO {t} SELECT * FROM {t}_a")
        frame(3).withColumn("more", F.lit(1)).writeTo(f"{t}_a").tableProperty("p", "q").replace()
        spark.sql(f"INSERT INTO {t} SELECT id, amount, region FROM {t}_a")
        frame(4).select("id").write.mode("overwrite").saveAsTable(f"{t}_a")
        frame(5).select("id").write.mode("ignore").saveAsTable(f"{t}_a")
        spark.sql(f"INSERT INTO {t} (id) SELECT id FROM {t}_a")
        spark.sql(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id <> 2")
        """,
    "branches": """
        spark.sql(f"INSERT INTO {t} VALUES (1, 1.5, 'eu')")
        spark.sql(f"ALTER TABLE {t} CREATE BRANCH dev")
        spark.sql(f"ALTER TABLE {t} CREATE BRANCH new")
        spark.sql(f"INSERT INTO {t}.branch_dev VALUES (2, 1.5, 'eu')")
        frame(3).writeTo(f"{t}.branch_dev").append()
        frame(4).write.format("iceberg").mode("append").option("branch", "new").save(t)
        spark.conf.set("spark.wap.branch", "audit")
        try:
            spark.sql(f"INSERT INTO {t} VALUES (5, 1.5, 'eu')")
            dynamic(f"INSERT OVERWRITE {t} SELECT id + 10, amount, 'us' FROM {t}")
        finally:
            spark.conf.unset("spark.wap.branch")
        spark.conf.set("spark.wap.id", "w1")
        try:
            spark.sql(f"INSERT INTO {t} VALUES (6, 1.5, 'eu')")
        finally:
            spark.conf.unset("spark.wap.id")
        spark.sql(f"INSERT INTO {t} VALUES (7, 1.5, 'eu')")
        """,
}


@pytest.fixture
def namespaces(spark: SparkSession, lake: Lake, official: object) -> tuple[str, str]:
    """Two namespaces of one lake: ours is written by bergline, theirs by the official runtime."""
    for name in ("ours", "theirs"):
        lake.create_namespace(name)
    return "ours", "theirs"


def new_table(lake: Lake, name: str, version: int) -> None:
    properties = {"format-version": str(version), "write.wap.enabled": "true"}
    lake.create_table(name, ORDERS, partition_by=["region"], properties=properties)


def ours(spark: SparkSession, code: str, **names: Any) -> Any:
    found: dict[str, Any] = {"spark": spark, **names}
    exec(HEAD + dedent(code), found)  # noqa: S102
    return found.get("result")


def snapshots(table: Table, *, totals: bool) -> list[tuple[Any, ...]]:
    """What each snapshot did, and on which one it builds."""
    keys = (
        "operation",
        "added-records",
        "deleted-records",
        *(["total-records"] if totals else []),
        "changed-partition-count",
        "replace-partitions",
        "wap.id",
        "run",
    )
    place = {s.snapshot_id: i for i, s in enumerate(table.metadata.snapshots)}
    return [
        (place.get(s.parent_snapshot_id or 0), *(s.summary.get(key) for key in keys)) for s in table.metadata.snapshots
    ]


def partitions(table: Table, ref: str) -> Counter[tuple[Any, ...]]:
    """How many rows are in which partition of a branch."""
    counted: Counter[tuple[Any, ...]] = Counter()
    for row in table.inspect("files", ref=ref).to_pylist():
        counted[row["spec_id"], *(row.get("partition") or {}).values()] += row["record_count"]
    return counted


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("insert", 1),
        ("insert", 3),
        ("overwrite", 2),
        ("overwrite", 3),
        ("frames", 2),
        ("new tables", 2),
        ("branches", 2),
    ],
)
def test_both_write_the_same(
    spark: SparkSession,
    lake: Lake,
    official_runtime: OfficialRuntime,
    namespaces: tuple[str, str],
    script: str,
    version: int,
) -> None:
    for namespace in namespaces:
        new_table(lake, f"{namespace}.t", version)
    ours(spark, SCRIPTS[script], t="ours.t")
    official_runtime.python(HEAD + dedent(SCRIPTS[script]), t="theirs.t")
    mine, official = (lake.load_table(f"{namespace}.t") for namespace in namespaces)
    totals = script != "branches"  # docs/differences.md: those on a new branch continue its parent's here
    assert snapshots(mine, totals=totals) == snapshots(official, totals=totals)
    assert set(mine.refs) == set(official.refs)
    for ref in mine.refs:
        assert partitions(mine, ref) == partitions(official, ref)
        names = [f"{namespace}.t.branch_{ref}" for namespace in namespaces]
        read_here = [ours(spark, ROWS, table=name) for name in names]
        read_there = [official_runtime.python(ROWS, table=name) for name in names]
        assert read_here[0] == read_here[1] == read_there[0] == read_there[1]


SOURCES = [
    *("BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12,2)", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    *(
        "STRING",
        "BINARY",
        "ARRAY<INT>",
        "ARRAY<STRING>",
        "MAP<STRING,INT>",
        "STRUCT<a:INT>",
        "STRUCT<b:STRING>",
        "VOID",
    ),
]
TARGETS = [name for name in SOURCES if name not in {"TINYINT", "VOID"}]


@pytest.mark.parametrize("policy", ["ANSI", "STRICT"])
def test_both_take_the_same_types_for_a_column(
    spark: SparkSession, lake: Lake, official_runtime: OfficialRuntime, namespaces: tuple[str, str], policy: str
) -> None:
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(TARGETS))
    spark.sql(f"CREATE TABLE ours.types ({columns}) USING iceberg")
    spark.sql(f"CREATE TABLE theirs.types ({columns}) USING iceberg")  # the same table, for both to look at
    accepted = official_runtime.python(
        """
result = []
state = spark._jsparkSession.sessionState()
skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
spark.conf.set("spark.sql.storeAssignmentPolicy", policy)
for i in range(targets):
    for source in sources:
        plan = state.sqlParser().parsePlan(f"INSERT INTO theirs.types (c{i}) SELECT CAST(NULL AS {source})")
        try:
            state.executePlan(plan, skip).assertAnalyzed()
        except Exception:
            continue
        result.append([i, source])
spark.conf.unset("spark.sql.storeAssignmentPolicy")
""",
        targets=len(TARGETS),
        sources=SOURCES,
        policy=policy,
    )
    types = {name: spark.sql(f"SELECT CAST(NULL AS {name}) AS c").schema["c"].dataType for name in SOURCES}
    fits = [
        [i, source]
        for i, field in enumerate(lake.load_table("ours.types").schema.fields)
        for source in SOURCES
        if find_misfit(types[source], spark_type(field.type, "c"), "c", AssignmentRules(policy), by_name=False) is None
    ]
    assert fits == accepted


REPLACE = """
for key, value in settings.items():
    spark.conf.set(key, value)
try:
    frame(9).writeTo(t).using("iceberg").options(**options).createOrReplace()
finally:
    for key in settings:
        spark.conf.unset(key)
"""


@pytest.mark.parametrize(
    ("settings", "options", "rows"),
    [
        ({"spark.wap.branch": "b"}, {}, {"b": [9]}),
        ({"spark.wap.id": "w"}, {}, {}),
        ({}, {"branch": "b"}, {"main": [9]}),
    ],
    ids=["branch", "id", "option"],
)
def test_replacing_a_table_on_a_branch_empties_main_there_and_is_refused_here(
    spark: SparkSession,
    lake: Lake,
    official_runtime: OfficialRuntime,
    namespaces: tuple[str, str],
    settings: dict[str, str],
    options: dict[str, str],
    rows: dict[str, list[int]],
) -> None:
    for namespace in namespaces:
        new_table(lake, f"{namespace}.t", 2)
        lake.load_table(f"{namespace}.t").append(order_rows(1))
    with pytest.raises(RefusedError, match=r"cannot replace `ours\.t`"):
        ours(spark, REPLACE, t="ours.t", settings=settings, options=options)
    official_runtime.python(HEAD + REPLACE, t="theirs.t", settings=settings, options=options)
    mine, official = (lake.load_table(f"{namespace}.t") for namespace in namespaces)
    assert (list(mine.refs), ids(mine.scan().to_arrow())) == (["main"], [1])
    assert {ref: official.scan(ref=ref).to_arrow()["id"].to_pylist() for ref in official.refs} == rows
    assert len(official.metadata.snapshots) == 2


APPEND_LATE = """
def load(name):
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)

written, late = load("theirs.written"), load("theirs.t")
for text in changes:
    spark.sql(text)
late.newAppend().appendFile(written.currentSnapshot().addedDataFiles(written.io()).iterator().next()).commit()
try:
    result = [list(row) for row in spark.sql("SELECT id, region FROM theirs.t").collect()]
except Exception as error:
    result = type(error).__name__
"""


@pytest.mark.parametrize(
    ("changes", "read_there"),
    [
        (["ALTER TABLE {t} DROP COLUMN region", "ALTER TABLE {t} ADD COLUMN region STRING"], [[1, None]]),
        (
            ["CREATE OR REPLACE TABLE {t} (id BIGINT NOT NULL, amount DOUBLE, region INT) USING iceberg"],
            "Py4JJavaError",
        ),
    ],
    ids=["dropped and added", "replaced"],
)
def test_rows_for_other_columns_of_the_same_names_are_lost_there_and_a_conflict_here(
    spark: SparkSession,
    lake: Lake,
    official_runtime: OfficialRuntime,
    namespaces: tuple[str, str],
    changes: list[str],
    read_there: Any,
) -> None:
    for name in ("ours.t", "theirs.t", "theirs.written"):
        lake.create_table(name, ORDERS)
    lake.load_table("theirs.written").append(order_rows(1))
    late = lake.load_table("ours.t")
    for text in changes:
        spark.sql(text.format(t="ours.t"))
    with pytest.raises(ConflictError):
        late.append(order_rows(1))
    texts = [text.format(t="theirs.t") for text in changes]
    assert official_runtime.python(APPEND_LATE, changes=texts) == read_there
