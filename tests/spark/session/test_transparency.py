"""Statements that name no lake table: with a lake attached they do what they do without, errors and all."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake

pytestmark = pytest.mark.spark

STATEMENTS = (
    # queries
    "SELECT 1 AS a, 'x' AS b, array(1, 2) AS c, map('k', 1.5) AS d, named_struct('x', DATE '2026-01-01') AS e",
    "SELECT id, id % 2 AS k FROM range(5) ORDER BY id",
    "SELECT k, sum(id) FROM (SELECT id, id % 2 AS k FROM range(5)) GROUP BY ROLLUP (k) ORDER BY k",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT * FROM r",
    "VALUES (1, 'a'), (2, 'b')",
    "FROM range(4) |> WHERE id > 1 |> SELECT id * 2 AS twice",
    "SELECT * FROM VALUES (1, 2) AS t(a, b) UNPIVOT (v FOR k IN (a, b))",
    "SELECT window.start FROM VALUES (TIMESTAMP '2026-01-01 10:20:00') AS t(ts) GROUP BY window(ts, '1 hour')",
    "SELECT id FROM range(3) WHERE id IN (SELECT id FROM range(1, 9)) ORDER BY 1",
    "EXPLAIN SELECT nosuch FROM range(1)",
    "DESCRIBE QUERY SELECT 1 AS a, 'b' AS b",
    # Spark's own tables
    "CREATE DATABASE spark_catalog.plain_db",
    "CREATE TABLE plain_db.t (a INT, b STRING, c DOUBLE DEFAULT 1.5) USING parquet",
    "CREATE TABLE plain_db.t (a INT) USING parquet",
    "CREATE TABLE IF NOT EXISTS plain_db.t (z INT) USING parquet",
    "INSERT INTO plain_db.t (a, b) VALUES (1, 'x'), (2, NULL)",
    "INSERT INTO plain_db.t BY NAME SELECT 3 AS a, 'z' AS b, 0.5 AS c",
    "INSERT INTO plain_db.t VALUES ('not a number', 'x', 1)",
    "INSERT INTO plain_db.t VALUES (1)",
    "SELECT * FROM plain_db.t ORDER BY a",
    "SELECT plain_db.t.a, T.B FROM Plain_DB.T WHERE a > 1 ORDER BY 1",
    "SELECT spark_catalog.plain_db.t.a FROM spark_catalog.plain_db.t ORDER BY 1",
    "CREATE TABLE plain_db.copy USING json AS SELECT a, upper(b) AS b FROM plain_db.t",
    "SELECT * FROM plain_db.copy ORDER BY a",
    "CREATE TABLE plain_db.parts (a INT, p STRING) USING parquet PARTITIONED BY (p)",
    "INSERT OVERWRITE plain_db.parts PARTITION (p = 'x') SELECT a FROM plain_db.t",
    "SHOW PARTITIONS plain_db.parts",
    "FROM plain_db.t INSERT INTO plain_db.parts SELECT a, 'y' INSERT INTO plain_db.copy SELECT a, b",
    "SELECT p, count(*) FROM plain_db.parts GROUP BY p ORDER BY p",
    "ALTER TABLE plain_db.t ADD COLUMNS (d INT)",
    "ALTER TABLE plain_db.t SET TBLPROPERTIES ('k' = 'v')",
    "SHOW TBLPROPERTIES plain_db.t ('k')",
    "SHOW TBLPROPERTIES plain_db.t ('nosuch')",
    "DESCRIBE plain_db.t",
    "DESCRIBE plain_db.parts PARTITION (p = 'x')",
    "SHOW COLUMNS IN plain_db.t",
    "SHOW CREATE TABLE plain_db.parts",
    "ANALYZE TABLE plain_db.t COMPUTE STATISTICS FOR ALL COLUMNS",
    "CACHE TABLE plain_db.t",
    "UNCACHE TABLE plain_db.t",
    "REFRESH TABLE plain_db.t",
    "TRUNCATE TABLE plain_db.parts",
    "SELECT count(*) FROM plain_db.parts",
    "DELETE FROM plain_db.t WHERE a = 1",
    "UPDATE plain_db.t SET a = 1",
    "MERGE INTO plain_db.t USING plain_db.copy c ON t.a = c.a WHEN MATCHED THEN DELETE",
    "ALTER TABLE plain_db.copy RENAME TO plain_db.renamed",
    "SHOW TABLES IN plain_db",
    "SHOW TABLE EXTENDED IN plain_db LIKE 'nosuch*'",
    "CREATE TABLE plain_db.alike LIKE plain_db.t",
    "DESCRIBE plain_db.alike",
    # views, functions, variables, scripts
    "CREATE VIEW plain_db.v (x) AS SELECT a FROM plain_db.t",
    "SELECT * FROM plain_db.v ORDER BY x",
    "ALTER VIEW plain_db.v AS SELECT max(a) AS x FROM plain_db.t",
    "SHOW VIEWS IN plain_db",
    "CREATE TEMP VIEW tv AS SELECT id FROM range(3)",
    "SELECT * FROM tv",
    "CREATE TEMP VIEW tv AS SELECT 1",
    "DROP VIEW tv",
    "SELECT * FROM tv",
    "CREATE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN x * 2",
    "SELECT twice(21)",
    "SELECT nosuch_function(1)",
    "DECLARE VARIABLE most INT DEFAULT 3",
    "SET VAR most = (SELECT max(id) + 1 FROM range(9))",
    "SELECT most",
    "EXECUTE IMMEDIATE 'SELECT ? + max(id) FROM range(3)' USING 5",
    "EXECUTE IMMEDIATE 'SELECT 7' INTO most",
    "SELECT most, IDENTIFIER('most') FROM IDENTIFIER('plain_db.v')",
    "BEGIN DECLARE i INT DEFAULT 0; WHILE i < 3 DO SET i = i + 1; END WHILE; SELECT i; END",
    "BEGIN INSERT INTO plain_db.parts VALUES (1, 'q'); SELECT count(*) FROM plain_db.parts; END",
    # settings and names
    "SET spark.sql.shuffle.partitions = 1",
    "SET spark.sql.shuffle.partitions",
    "SET spark.sql.nosuch.setting",
    "RESET spark.sql.shuffle.partitions",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SELECT current_timezone(), TIMESTAMP '2026-01-01 00:00:00 UTC'",
    "SHOW FUNCTIONS LIKE 'uppe*'",
    "DESCRIBE FUNCTION upper",
    "SELECT current_catalog(), current_schema()",
    "USE plain_db",
    "SELECT count(*) FROM t",
    "SELECT current_schema()",
    "CREATE TABLE here (a INT)",
    "SHOW TABLES LIKE 'he*'",
    "USE nosuch_db",
    "USE default",
    # errors
    "SELEC 1",
    "SELECT",
    "SELECT (1",
    "SELECT * FROM nosuch_table",
    "SELECT * FROM nosuch_db.nosuch_table",
    "SELECT * FROM nosuch_catalog.nosuch_db.nosuch_table",
    "SELECT nosuch FROM plain_db.t",
    "SELECT a, count(*) FROM plain_db.t",
    "SELECT 1 / 0",
    "SELECT CAST('x' AS INT)",
    "SELECT explode(1)",
    "INSERT INTO nosuch_table VALUES (1)",
    "DROP TABLE nosuch_table",
    "DROP TABLE IF EXISTS nosuch_table",
    "ALTER TABLE nosuch_table ADD COLUMNS (a INT)",
    "DESCRIBE nosuch_table",
    "SHOW PARTITIONS plain_db.t",
    "CREATE TABLE nosuch_db.t (a INT)",
    "DROP DATABASE spark_catalog.plain_db",
    "DROP DATABASE spark_catalog.plain_db CASCADE",
    "SELECT * FROM plain_db.t",
)

_EXPRESSION_ID = re.compile(r"#\d+L?")


def run(spark: SparkSession, text: str) -> Any:
    """What a statement gives, or all that its error says."""
    try:
        frame = spark.sql(text)
        return frame.schema.simpleString(), [repr(row) for row in frame.collect()]
    except PySparkException as error:
        return type(error), error.getCondition(), error.getSqlState(), _EXPRESSION_ID.sub("#", str(error))


@pytest.fixture
def plain(spark_session: SparkSession) -> SparkSession:
    return spark_session.newSession()


@pytest.fixture
def attached(spark_session: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    spark = bergline.spark.attach(spark_session.newSession(), lake)
    yield spark
    bergline.spark.detach(spark)


def test_statements_that_name_no_lake_table_do_the_same(plain: SparkSession, attached: SparkSession) -> None:
    expected, found = ([run(side, text) for text in STATEMENTS] for side in (plain, attached))
    both = zip(STATEMENTS, expected, found, strict=True)
    assert {text: (one, other) for text, one, other in both if one != other} == {}


def test_other_ways_to_read_do_the_same(plain: SparkSession, attached: SparkSession, tmp_path: Path) -> None:
    plain.range(5).write.parquet(f"{tmp_path}/files")

    def all_ways(spark: SparkSession) -> list[Any]:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
        query = stream.writeStream.format("memory").queryName("rated").trigger(once=True).start()
        query.awaitTermination()
        query.stop()
        return [
            stream.schema,
            run(spark, "SELECT count(*) FROM rated"),
            run(spark, f"SELECT sum(id) FROM parquet.`{tmp_path}/files`"),
            run(spark, "SELECT * FROM parquet.`/nosuch/files`"),
            spark.read.parquet(f"{tmp_path}/files").where("id > 2").count(),
            spark.sql("SELECT :x + id FROM range(2)", {"x": 1}).collect(),
            spark.sql("SELECT sum(id) FROM {f}", f=spark.range(4)).collect(),
            spark.catalog.tableExists("nosuch_table"),
            spark.catalog.tableExists("nosuch_db.nosuch_table"),
            [t.name for t in spark.catalog.listTables("default")],
        ]

    assert all_ways(attached) == all_ways(plain)
