"""Queries on lake tables as Spark's own parser reads them: whatever runs on Parquet runs here, and gives the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import py4j.clientserver
import pytest
from pyspark.errors import ParseException, PySparkException, PySparkTypeError
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import NotFoundError

pytestmark = pytest.mark.spark

ROWS = """
SELECT id, id % 3 AS k, named_struct('a', id, 'b', concat('x', id)) AS s, array(id, id + 1) AS arr,
  timestamp '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, 20 * id) AS ts, map('v', id) AS m
FROM range(8)
"""
QUERIES = (
    "TABLE {t} |> WHERE id < 4 |> AGGREGATE sum(id) AS n GROUP BY k |> ORDER BY k",
    "FROM {t} |> EXTEND id + 1 AS more |> SELECT more |> ORDER BY more",
    "SELECT window.start, count(*) FROM {t} GROUP BY window(ts, '1 hour') ORDER BY 1",
    "SELECT * FROM (SELECT id, k FROM {t}) PIVOT (sum(id) AS n, max(id + 1) AS m FOR k IN (0 AS zero, 1 AS one))",
    "SELECT * FROM (SELECT id, k FROM {t}) UNPIVOT (v FOR c IN (id, k)) ORDER BY v, c",
    "SELECT IDENTIFIER('upper')(s.b) FROM {t} ORDER BY 1",
    """
    WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4)
    SELECT n, k FROM r JOIN {t} ON id = n ORDER BY n
    """,
    "SELECT /* one /* inside */ another */ count(*) FROM {t} -- the end",
    "SELECT struct(id x, k y) FROM {t} ORDER BY 1",
    "SELECT transform(arr, (v, i) -> v * i + id), filter(arr, v -> v > 3) FROM {t} ORDER BY id",
    "SELECT a.id, b.n FROM {t} a, LATERAL (SELECT count(*) AS n FROM {u} WHERE {u}.k = a.k) b ORDER BY a.id",
    "SELECT id, v FROM {t} LATERAL VIEW explode(arr) AS v WHERE v > 6 ORDER BY id, v",
    "SELECT (SELECT max(id) FROM {u}) AS m, count(*) FROM {t} GROUP BY (SELECT max(id) FROM {u})",
    "SELECT {t}.id, {t}.s.a, {u}.k FROM {t} JOIN {u} ON {t}.id = {u}.id WHERE {t}.k = 1 ORDER BY 1",
    "SELECT {t}.* FROM {t} JOIN {t} AS other USING (id) WHERE other.id > 5 ORDER BY id",
    "SELECT id FROM {t} WHERE id IN (TABLE {u} |> SELECT id) AND EXISTS (FROM {u} x WHERE x.id = {t}.id) ORDER BY 1",
    "SELECT k, id, row_number() OVER w AS n FROM {t} WINDOW w AS (PARTITION BY k ORDER BY id DESC) ORDER BY k, n",
    "SELECT k, count(*) FROM {t} GROUP BY GROUPING SETS ((k), ()) ORDER BY k",
    "SELECT k, sum(id) FILTER (WHERE id > 2) FROM {t} GROUP BY ALL ORDER BY 1",
    "SELECT * EXCEPT (s, arr, ts, m) FROM {t} ORDER BY id LIMIT 3 OFFSET 2",
    "(SELECT id FROM {t} EXCEPT SELECT id FROM {u} WHERE k = 0) UNION ALL (SELECT id FROM {u} LIMIT 0) ORDER BY id",
    "WITH q AS (SELECT id FROM {t}), {w} AS (SELECT id + 1 AS id FROM q) SELECT * FROM {w} ORDER BY id",
    "SELECT m['v'], m.v FROM {t} TABLESAMPLE (100 PERCENT) ORDER BY 1",
    "SELECT * FROM VALUES (1), (2) AS v(id) NATURAL JOIN (SELECT id FROM {t}) ORDER BY id",
    "SELECT nope FROM {t}",
    "SELECT id, count(*) FROM {t}",
    "SELECT id FROM {t} WHERE (",
    "SELECT s.nope FROM {t}",
    "SELECT id FROM {t} JOIN {u} ON true",
    "SELECT 1 / (id - id) FROM {t}",
    "SELECT nosuch(id) FROM {t}",
)


@pytest.fixture
def twins(spark: SparkSession, lake: Lake, tmp_path: Path) -> dict[str, dict[str, str]]:
    """Two tables of the lake, and temporary views of Parquet files with the same rows."""
    names = {"lake": {"w": "w"}, "parquet": {"w": "w"}}
    for table, where in {"t": "true", "u": "id < 6"}.items():
        rows = spark.sql(ROWS).where(where)
        rows.writeTo(f"db.{table}").using("iceberg").create()
        rows.write.parquet(str(tmp_path / table))
        spark.read.parquet(str(tmp_path / table)).createOrReplaceTempView(f"p{table}")
        names["lake"][table], names["parquet"][table] = f"db.{table}", f"p{table}"
    return names


def answer(spark: SparkSession, text: str, args: Any = None) -> Any:
    try:
        frame = spark.sql(text, args=args)
        return frame.columns, [row.asDict(recursive=True) for row in frame.collect()]
    except PySparkException as error:
        return type(error).__name__.removeprefix("_"), error.getCondition(), error.getSqlState()


def test_queries_give_what_they_give_on_parquet(spark: SparkSession, twins: dict[str, dict[str, str]]) -> None:
    found = {q: answer(spark, q.format(**twins["lake"])) for q in QUERIES}
    expected = {q: answer(spark, q.format(**twins["parquet"])) for q in QUERIES}
    assert {q: (found[q], expected[q]) for q in QUERIES if found[q] != expected[q]} == {}


def test_statements_of_spark_read_lake_tables(spark: SparkSession, twins: dict[str, dict[str, str]]) -> None:
    assert twins
    spark.sql("DECLARE OR REPLACE VARIABLE most INT")
    spark.sql("SET VAR most = (SELECT max(id) FROM db.t)")
    assert spark.sql("SELECT id FROM db.t WHERE id = most").collect()[0][0] == 7
    spark.sql("CREATE TABLE default.copied USING parquet AS WITH q AS (SELECT id, k FROM db.t) SELECT * FROM q")
    try:
        spark.sql("INSERT INTO default.copied SELECT id, k FROM db.u WHERE id IN (TABLE db.t |> SELECT id)")
        assert spark.table("default.copied").count() == 14
    finally:
        spark.sql("DROP TABLE default.copied")
        spark.sql("DROP TEMPORARY VARIABLE most")


def test_a_table_is_one_relation(spark: SparkSession, lake: Lake, twins: dict[str, dict[str, str]]) -> None:
    assert twins
    grouped = "(SELECT id, max(k) FROM db.t GROUP BY id)"
    query = f"SELECT a.id FROM {grouped} a JOIN {grouped} b USING (id)"
    with_reuse = spark.sql(query)
    with_reuse.collect()
    assert "ReusedExchange" in with_reuse._jdf.queryExecution().executedPlan().toString()
    first, second = (spark.sql("SELECT * FROM db.t") for _ in range(2))
    assert first.sameSemantics(second)
    lake.load_table("db.t").append(first.limit(1).toArrow())
    assert not first.sameSemantics(spark.sql("SELECT * FROM db.t"))
    assert (first.count(), spark.sql("SELECT * FROM db.t").count()) == (9, 9)


def test_a_file_that_went_away_is_named_though_the_relation_was_kept(
    spark: SparkSession, lake: Lake, twins: dict[str, dict[str, str]]
) -> None:
    assert twins
    table = lake.load_table("db.t")
    query = "SELECT sum(id) FROM db.t"
    assert spark.sql(query).collect()[0][0] == 28
    paths = [planned.file.file_path for planned in table.scan().plan().files]
    table.io.delete(paths)
    with pytest.raises(NotFoundError, match=f"which snapshot {table.metadata.current_snapshot_id} needs"):
        spark.sql(query).collect()


ARGUMENTS: tuple[tuple[str, Any], ...] = (
    ("TABLE {t} |> WHERE id < :n |> SELECT id |> ORDER BY id", {"n": 3}),
    ("SELECT id + ? AS x FROM {t} WHERE id IN (SELECT max(id) + ? FROM {u}) ORDER BY 1", [10, 1]),
    ("WITH q AS (SELECT id FROM {t} WHERE k = :k) SELECT count(*) FROM q WHERE id > :n", {"n": 2, "k": 1}),
    ("SELECT id FROM {t} ORDER BY id DESC LIMIT :n", {"n": 2}),
    ("SELECT * FROM (SELECT id, k FROM {t}) PIVOT (sum(id) FOR k IN (0, 1)) WHERE `0` > :n", {"n": 2}),
    ("SELECT :n AS n FROM {t} WHERE id = 1", {"n": "it's"}),
    ("SELECT id FROM {t} WHERE id = :missing", {"n": 1}),
    ("SELECT id FROM {t} WHERE id = ?", [1, 2]),
)


def test_arguments_are_sparks_too(spark: SparkSession, twins: dict[str, dict[str, str]]) -> None:
    found = {q: answer(spark, q.format(**twins["lake"]), args) for q, args in ARGUMENTS}
    expected = {q: answer(spark, q.format(**twins["parquet"]), args) for q, args in ARGUMENTS}
    assert {q: (found[q], expected[q]) for q, _ in ARGUMENTS if found[q] != expected[q]} == {}
    with pytest.raises(PySparkTypeError, match="`args` should not be a str"):
        spark.sql("SELECT * FROM db.t", args="id")


def test_what_changes_rows_may_say_all_that_spark_reads(spark: SparkSession, twins: dict[str, dict[str, str]]) -> None:
    assert twins
    spark.sql("DELETE FROM db.t WHERE id IN (TABLE db.u |> WHERE id > :n |> SELECT id) /* a /* b */ c */", {"n": 4})
    assert ids(spark, "db.t") == [0, 1, 2, 3, 4, 6, 7]
    spark.sql(
        "UPDATE db.t AS x SET k = (FROM db.u |> WHERE id = x.id |> AGGREGATE max(id + ?) AS m) WHERE x.id < ?", [10, 2]
    )
    assert spark.sql("SELECT k FROM db.t WHERE id < 2 ORDER BY id").collect() == [(10,), (11,)]
    spark.sql(
        """
        MERGE INTO db.t USING (TABLE db.u |> WHERE id BETWEEN :a AND :b |> SELECT id, s, arr, ts, m) AS n
        ON db.t.id = n.id AND n.s.b LIKE :x
        WHEN MATCHED AND IDENTIFIER('upper')(n.s.b) = 'X4' THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id, k, arr) VALUES (n.id, size(filter(n.arr, v -> v > 5)), n.arr)
        """,
        {"a": 4, "b": 5, "x": "x%"},
    )
    assert spark.sql("SELECT id, k FROM db.t WHERE id IN (4, 5)").collect() == [(5, 1)]
    with pytest.raises(ParseException) as caught:
        spark.sql("DELETE FROM db.t WHERE id IN (SELECT")
    assert caught.value.getCondition() == "PARSE_SYNTAX_ERROR"


def test_one_source_fills_several_tables(spark: SparkSession, lake: Lake, twins: dict[str, dict[str, str]]) -> None:
    assert twins
    spark.sql("CREATE TABLE db.low (id BIGINT)")
    spark.sql("CREATE TABLE default.high (id BIGINT) USING parquet")
    try:
        spark.sql(
            """
            FROM db.t
            INSERT INTO db.t SELECT id + 100, k, s, arr, ts, m WHERE id = 0
            INSERT OVERWRITE db.low SELECT id WHERE id < 2
            INSERT INTO default.high SELECT id WHERE id > 5;
            """
        )
        assert (ids(spark, "db.low"), ids(spark, "default.high")) == ([0, 1], [6, 7])
        assert ids(spark, "db.t") == [*range(8), 100]
        spark.sql("FROM db.low INSERT INTO default.high SELECT id INSERT INTO default.high SELECT id + 50")
        assert ids(spark, "default.high") == [0, 1, 6, 7, 50, 51]
    finally:
        spark.sql("DROP TABLE default.high")
    assert len(lake.load_table("db.low").metadata.snapshots) == 1


def test_a_query_may_name_a_stream(spark: SparkSession, twins: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert twins
    rows = spark.sql("SELECT id * 2 AS double FROM STREAM db.t WHERE id > :n", {"n": 5})
    assert rows.isStreaming
    writer = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "c"))
    writer.toTable("db.doubled").awaitTermination()
    assert spark.sql("SELECT double FROM db.doubled ORDER BY 1").collect() == [(12,), (14,)]


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(f"SELECT id FROM {table}").collect())


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The calls that go to the JVM, without those that release objects."""
    sent: list[str] = []
    original = py4j.clientserver.ClientServerConnection.send_command

    def counted(self: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        if not command.startswith("m\nd"):
            sent.append(command)
        return original(self, command, *args, **kwargs)

    monkeypatch.setattr(py4j.clientserver.ClientServerConnection, "send_command", counted)
    return iter([sent])


def test_a_use_of_a_table_takes_few_calls(
    spark: SparkSession, twins: dict[str, dict[str, str]], calls: Iterator[list[str]]
) -> None:
    assert twins
    sent = next(calls)

    def count(text: str) -> int:
        spark.sql(text)
        sent.clear()
        spark.sql(text)
        return len(sent)

    none, one, two = (
        count(text)
        for text in ("SELECT 1", "SELECT id FROM db.t LIMIT 1", "SELECT t.id FROM db.t JOIN db.u ON t.id = u.id")
    )
    assert one <= 20, one
    assert two - one <= 8, (one, two)
    assert none <= 6, none
