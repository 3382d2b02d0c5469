"""Statements with a query behind their own words, and the views and rows that they leave."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import (
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from bergline.io.locations import local_path
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str, args: object = None) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text, args=args).collect())


def plan(spark: SparkSession, text: str) -> str:
    return "\n".join(row[0] for row in spark.sql(text).collect())


@pytest.fixture(autouse=True)
def _without_views(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("v", "w"):
        spark.catalog.dropTempView(name)
    spark.catalog.dropGlobalTempView("v")
    spark.catalog.clearCache()


@pytest.fixture
def filled(orders: Table) -> Table:
    """Two files: orders 1 and 2, order 3."""
    return orders.append(order_rows(1, 2)).append(order_rows(3))


def test_temporary_view_has_the_rows_that_its_tables_have(spark: SparkSession, filled: Table) -> None:
    setting = spark.conf.get("spark.sql.legacy.storeAnalyzedPlanForView")
    spark.sql("CREATE TEMP VIEW v AS SELECT id, '{x}' AS x FROM db.orders WHERE id > 1")
    filled.append(order_rows(4))
    assert rows(spark, "SELECT * FROM v") == [(2, "{x}"), (3, "{x}"), (4, "{x}")]
    assert spark.table("v").count() == 3
    spark.sql("CREATE OR REPLACE TEMP VIEW v (a COMMENT 'first', b) COMMENT 'AS' AS SELECT id, region FROM db.orders")
    assert rows(spark, "SELECT a, b FROM v WHERE a > 2") == [(3, "eu"), (4, "eu")]
    assert rows(spark, "DESCRIBE v") == [("a", "bigint", "first"), ("b", "string", None)]
    spark.sql(
        "CREATE GLOBAL TEMP VIEW v AS WITH q AS (SELECT id FROM db.orders) SELECT count(*) n FROM q JOIN v ON id = a"
    )
    assert rows(spark, "SELECT * FROM global_temp.v") == [(4,)]
    spark.sql("USE db")
    spark.sql("CREATE TEMP VIEW w AS SELECT id FROM orders VERSION AS OF 'main' WHERE id = :x", args={"x": 4})
    assert rows(spark, "SELECT * FROM w") == [(4,)]
    assert spark.conf.get("spark.sql.legacy.storeAnalyzedPlanForView") == setting


def test_temporary_views_of_sparks_own_tables_stay_sparks(spark: SparkSession) -> None:
    spark.range(2).createOrReplaceTempView("v")
    spark.sql("CREATE TEMP VIEW w AS SELECT * FROM v")
    spark.range(3).createOrReplaceTempView("v")
    assert rows(spark, "SELECT count(*) FROM w") == [(3,)]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE TEMP VIEW v AS SELECT id FROM db.orders", AnalysisException, "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CACHE TABLE v AS SELECT id FROM db.orders", AnalysisException, "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE OR REPLACE TEMP VIEW v (a, b) AS SELECT id FROM db.orders", AnalysisException, "ARITY_MISMATCH"),
        ("CREATE OR REPLACE TEMP VIEW db.v AS SELECT id FROM db.orders", ParseException, "TOO_MANY_NAME_PARTS"),
        (
            "CREATE OR REPLACE TEMP VIEW v AS SELECT n FROM db.orders WHERE id > 1",
            AnalysisException,
            "UNRESOLVED_COLUMN",
        ),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT id FROM db.ordres", NotFoundError, r"no table `db\.ordres`"),
        ("CREATE VIEW w AS SELECT id FROM db.orders", UnsupportedError, "in Spark's own catalog"),
        ("EXPLAIN TRUNCATE TABLE db.orders", UnsupportedError, "cannot run EXPLAIN"),
        ("EXPLAIN UPDATE db.orders SET nope = 1", NotFoundError, "no column `nope`"),
        (
            (
                "EXPLAIN MERGE WITH SCHEMA EVOLUTION INTO db.orders USING (SELECT 1 AS more) ON true "
                "WHEN MATCHED THEN UPDATE SET *"
            ),
            UnsupportedError,
            "cannot explain a MERGE that adds columns",
        ),
        ("EXPLAIN SELECT * FROM db.ordres", NotFoundError, r"no table `db\.ordres`"),
        ("DESCRIBE QUERY SELECT n FROM db.orders", AnalysisException, "UNRESOLVED_COLUMN"),
        ("REFRESH TABLE db.ordres", NotFoundError, r"no table `db\.ordres`"),
        ("UNCACHE TABLE db.ordres", NotFoundError, r"no table `db\.ordres`"),
        ("REFRESH TABLE nowhere.t", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
        ("CACHE TABLE db.ordres", NotFoundError, r"no table `db\.ordres`"),
        ("CACHE TABLE db.orders OPTIONS ('storageLevel' = 'SHELF')", InvalidInputError, "found `SHELF`"),
        ("SELECT * FROM IDENTIFIER('db.ordres')", NotFoundError, r"no table `db\.ordres`"),
        ("SELECT * FROM IDENTIFIER('nowhere.t')", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
        (
            "EXECUTE IMMEDIATE 'DELETE FROM db.orders' INTO x",
            InvalidInputError,
            "expected a query in EXECUTE IMMEDIATE … INTO",
        ),
        ("EXECUTE IMMEDIATE 'SELECT * FROM db.ordres'", NotFoundError, r"no table `db\.ordres`"),
        (
            "FROM db.orders INSERT INTO db.orders SELECT * INSERT INTO db.ordres SELECT *",
            NotFoundError,
            r"no table `db\.ordres`",
        ),
        ("CREATE TABLE db.new (id INT) USING csv", InvalidInputError, "expected `USING iceberg` for a table of a lake"),
        ("DESCRIBE db.orders PARTITION (region = 'eu')", UnsupportedError, "cannot describe one partition"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(
    spark: SparkSession, filled: Table, statement: str, error: type[Exception], message: str
) -> None:
    spark.range(7).createOrReplaceTempView("v")
    before = filled.metadata_location
    with pytest.raises(error, match=message) as caught:
        spark.sql(statement)
    assert isinstance(caught.value, PySparkException)
    assert spark.table("v").count() == 7
    assert filled.refresh().metadata_location == before


def data_of(table: Table) -> str:
    """Where a table's files are, as far as plans of Spark show it."""
    return f"file:{local_path(table.metadata.location)}/data"[:40]


def test_explain_shows_the_plan_of_the_rows_that_would_change(spark: SparkSession, filled: Table) -> None:
    before = filled.metadata_location
    deleted = plan(spark, "EXPLAIN DELETE FROM db.orders WHERE id = 3")
    assert f"[{data_of(filled)}" in deleted
    assert "_pos" in deleted
    updated = plan(
        spark, "EXPLAIN FORMATTED UPDATE db.orders AS o SET region = 'x' WHERE o.id IN (SELECT max(id) FROM db.orders)"
    )
    assert "Scan parquet" in updated
    assert "Join" in updated
    merged = plan(
        spark,
        "EXPLAIN EXTENDED MERGE INTO db.orders AS o USING (SELECT 3L AS id) AS s ON o.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    )
    assert "== Analyzed Logical Plan ==" in merged
    assert "Join" in merged
    assert filled.refresh().metadata_location == before


@pytest.mark.usefixtures("pruned_reads")
def test_explain_shows_the_plan_of_the_query_with_its_files(spark: SparkSession, filled: Table) -> None:
    assert f"[{data_of(filled)}" in plan(spark, "EXPLAIN SELECT id FROM db.orders WHERE id = 3")
    assert "== Analyzed Logical Plan ==" in plan(spark, "EXPLAIN EXTENDED SELECT id FROM db.orders")
    assert "Statistics(" in plan(spark, "EXPLAIN COST TABLE db.orders")
    assert "WholeStageCodegen subtrees" in plan(spark, "EXPLAIN CODEGEN SELECT id FROM db.orders")
    inserted = plan(spark, "EXPLAIN FORMATTED INSERT INTO db.orders SELECT * FROM db.orders WHERE id = 3")
    assert "Scan parquet" in inserted
    assert "Error occurred during query planning" in plan(spark, "EXPLAIN SELECT n FROM db.orders WHERE id = 3")
    assert "FileScan parquet" in plan(spark, "EXPLAIN CREATE TABLE db.copy AS SELECT id FROM db.orders")
    assert len(filled.refresh().metadata.snapshots) == 2
    assert not spark.catalog.tableExists("db.copy")


def test_queries_are_described(spark: SparkSession, filled: Table) -> None:
    described = [("id", "bigint", None), ("r", "string", None)]
    for head in ("DESCRIBE QUERY ", "DESC QUERY ", "DESCRIBE ", "DESC "):
        assert rows(spark, f"{head}SELECT id, region AS r FROM db.orders WHERE id > 1") == described
    assert rows(spark, "DESC QUERY (SELECT id FROM db.orders)") == described[:1]
    assert [name for name, *_ in rows(spark, "DESC QUERY TABLE db.orders")] == ["amount", "id", "region"]


@pytest.mark.parametrize("query", ["AS SELECT * FROM db.orders", "AS TABLE db.orders", "SELECT * FROM db.orders"])
@pytest.mark.parametrize("lazy", ["", "LAZY "])
def test_cached_query_is_a_temporary_view_of_kept_rows(
    spark: SparkSession, filled: Table, query: str, lazy: str
) -> None:
    spark.sql(f"CACHE {lazy}TABLE v OPTIONS ('storageLevel' = 'DISK_ONLY') {query}")
    assert "InMemoryRelation" in plan(spark, "EXPLAIN SELECT * FROM v")
    assert spark.catalog.isCached("v")
    filled.append(order_rows(4))
    assert spark.table("v").count() == 4  # this process has told Spark of its commit
    spark.sql("UNCACHE TABLE v")
    assert not spark.catalog.isCached("v")


def test_rows_go_to_one_table_from_what_is_read_first(spark: SparkSession, filled: Table, lake: Lake) -> None:
    lake.create_table("db.copy", ORDERS)
    spark.sql("FROM db.orders INSERT INTO db.copy SELECT * WHERE id > 1")
    assert rows(spark, "SELECT id FROM db.copy") == [(2,), (3,)]
    assert len(filled.refresh().metadata.snapshots) == 2


def test_columns_called_like_a_partition_function_are_columns(spark: SparkSession) -> None:
    assert rows(spark, "SELECT system.days FROM VALUES (1) AS system(days)") == [(1,)]
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        spark.sql("SELECT system.nope(1)")


def test_temporary_views_are_made_in_several_threads(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))

    def make(place: int) -> int:
        for _ in range(3):
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW thread_{place} AS SELECT * FROM db.orders")
        return spark.table(f"thread_{place}").count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == [1] * 4
    for place in range(4):
        spark.catalog.dropTempView(f"thread_{place}")
    assert spark.conf.get("spark.sql.legacy.storeAnalyzedPlanForView", None) is None
