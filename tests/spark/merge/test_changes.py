"""MERGE on lake tables: every clause, both modes and format versions, and one clear error for what is wrong."""

from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

import bergline.spark
from bergline import Lake, Table
from bergline.errors import (
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.spark.audits import row_count
from support.fixtures.competing_writers import once, rival_lake
from support.fixtures.ways_of_changing import WAYS, change_rows_by

pytestmark = pytest.mark.spark

MODES = [(2, "merge-on-read"), (2, "copy-on-write"), (3, "merge-on-read"), (3, "copy-on-write")]
SOURCE = "VALUES (2, 'two', 'u'), (3, 'three', 'd'), (9, 'nine', 'i'), (CAST(NULL AS BIGINT), 'none', 'i')"


def rows(spark: SparkSession, table: str = "db.t") -> list[tuple]:
    found = spark.sql(f"SELECT * FROM {table}").collect()
    return sorted((tuple(row) for row in found), key=lambda row: (row[0] is None, row[0] or 0, repr(row)))


@pytest.fixture
def make(spark: SparkSession, lake: Lake) -> Callable[..., Table]:
    """A table `db.t` of five rows in two files, and a view `src` of changes for it."""

    def made(version: int = 2, mode: str = "merge-on-read", columns: str = "", partitioned: str = "") -> Table:
        spark.sql(
            f"CREATE TABLE db.t (id BIGINT, name STRING, n INT{columns}) USING iceberg {partitioned} "
            f"TBLPROPERTIES ('format-version' = '{version}', 'write.merge.mode' = '{mode}')"
        )
        spark.sql("INSERT INTO db.t (id, name, n) VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)")
        spark.sql("INSERT INTO db.t (id, name, n) VALUES (4, 'd', 40), (NULL, 'e', 50)")
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW src AS SELECT col1 AS id, col2 AS name, col3 AS op FROM {SOURCE}")
        return lake.load_table("db.t")

    return made


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    change_rows_by(request.param, monkeypatch)


@pytest.mark.kinds(2)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("version", "mode"), MODES)
def test_every_kind_of_clause(spark: SparkSession, make: Callable[..., Table], version: int, mode: str) -> None:
    table = make(version, mode)
    lineage = ", _row_id" if version == 3 else ""
    before = dict(map(tuple, spark.sql("SELECT id, _row_id FROM db.t").collect())) if lineage else {}
    spark.sql(
        "MERGE INTO db.t AS t USING src AS s ON t.id = s.id "
        "WHEN MATCHED AND op = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = s.name, n = t.n + 1 "
        "WHEN NOT MATCHED AND id IS NULL THEN INSERT (id, name) VALUES (-1, name) "
        "WHEN NOT MATCHED THEN INSERT (name, id, n) VALUES (s.name, id, DEFAULT) "
        "WHEN NOT MATCHED BY SOURCE AND id = 1 THEN UPDATE SET n = n + 5 "
        "WHEN NOT MATCHED BY SOURCE AND name = 'd' THEN DELETE"
    )
    expected = [(-1, "none", None), (1, "a", 15), (2, "two", 21), (9, "nine", None), (None, "e", 50)]
    assert rows(spark) == expected
    table.refresh()
    summary = table.current_snapshot.summary
    counts = {
        key.rpartition("num-target-rows-")[2]: int(value) for key, value in summary.items() if "merge-into" in key
    }
    assert counts == {
        "copied": 0 if mode == "merge-on-read" else 1,
        "deleted": 2,
        "inserted": 2,
        "matched-deleted": 1,
        "matched-updated": 1,
        "not-matched-by-source-deleted": 1,
        "not-matched-by-source-updated": 1,
        "updated": 2,
    }
    if lineage:
        after = dict(map(tuple, spark.sql("SELECT id, _row_id FROM db.t").collect()))
        assert {key: after[key] for key in (1, 2, None)} == {key: before[key] for key in (1, 2, None)}
        assert min(after[-1], after[9]) > max(before.values())
        changed = spark.sql("SELECT id FROM db.t WHERE _last_updated_sequence_number = 3").collect()
        assert {row.id for row in changed} == {-1, 1, 2, 9}


def test_star_goes_by_name(spark: SparkSession, make: Callable[..., Table]) -> None:
    make()
    source = "(SELECT 7 AS n, 'x' AS NAME, col1 AS id FROM VALUES (1L), (8L))"
    spark.sql(
        f"MERGE INTO db.t USING {source} AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(spark)[0] == (1, "x", 7)
    assert rows(spark)[-2] == (8, "x", 7)


@pytest.mark.usefixtures("way")
def test_source_may_be_anything_that_can_be_read(spark: SparkSession, make: Callable[..., Table]) -> None:
    make()
    spark.sql("ALTER TABLE db.t CREATE TAG v1")
    spark.sql("CREATE TABLE db.s AS SELECT 1L AS id, 'one' AS name, 1 AS n")
    spark.sql(
        "MERGE INTO lake.db.t USING db.s ON lake.db.t.id = db.s.id "
        "WHEN MATCHED THEN UPDATE SET lake.db.t.name = db.s.name"
    )
    assert rows(spark)[0] == (1, "one", 10)
    spark.sql(
        "MERGE INTO db.t AS t USING db.t AS s ON t.id = s.id + 1 AND s.id < 3 "
        "WHEN MATCHED THEN UPDATE SET n = t.n + s.n"
    )
    assert [row[2] for row in rows(spark)] == [10, 30, 50, 40, 50]
    spark.sql("MERGE INTO db.t USING db.t VERSION AS OF 'v1' AS old ON t.id = old.id WHEN MATCHED THEN UPDATE SET *")
    assert rows(spark)[:3] == [(1, "a", 10), (2, "b", 20), (3, "c", 30)]
    spark.sql(
        "WITH q AS (SELECT max(id) AS top FROM db.t) MERGE INTO db.t USING q ON t.id = top "
        "WHEN MATCHED THEN UPDATE SET n = (SELECT sum(n) FROM db.t), name = :name",
        args={"name": "given"},
    )
    assert rows(spark)[3] == (4, "given", 150)


def test_parameters_go_where_they_stand(spark: SparkSession, make: Callable[..., Table]) -> None:
    make()
    head = "MERGE INTO db.t USING (SELECT ? AS key) AS s ON t.id = key"
    spark.sql(f"{head} WHEN MATCHED AND n > ? THEN UPDATE SET n = ?, name = ?", args=[2, 5, 77, "given"])
    assert rows(spark)[1] == (2, "given", 77)
    text = "MERGE INTO db.t USING (SELECT :key AS key) AS s ON t.id = key WHEN MATCHED THEN UPDATE SET n = :n"
    spark.sql(text, args={"n": 78, "key": 2})
    assert rows(spark)[1] == (2, "given", 78)


def test_conditions_may_have_subqueries(spark: SparkSession, make: Callable[..., Table]) -> None:
    make()
    spark.sql(
        "MERGE INTO db.t USING src AS s ON t.id = s.id "
        "WHEN MATCHED AND t.n = (SELECT max(n) FROM db.t WHERE id <= 3) THEN DELETE "
        "WHEN NOT MATCHED AND s.name IN (SELECT name FROM src WHERE id = 9) THEN INSERT (id) VALUES (id) "
        "WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 FROM db.t AS x WHERE x.id = t.id AND x.n = 10) THEN DELETE"
    )
    assert [row[0] for row in rows(spark)] == [2, 4, 9, None]
    spark.sql(
        "MERGE INTO db.t USING (SELECT 4 AS id) s ON db.t.id = s.id AND (SELECT count(*) FROM db.t.files) > 0 "
        "WHEN MATCHED AND db.t.id = (SELECT max(db.t.id) - 5 FROM db.t) "
        "THEN UPDATE SET n = (SELECT count(*) FROM db.t.snapshots)"
    )
    assert rows(spark)[1] == (4, "d", 3)


def test_expressions_are_evaluated_only_for_rows_of_their_clause(
    spark: SparkSession, make: Callable[..., Table]
) -> None:
    make()
    spark.sql(
        "MERGE INTO db.t USING src AS s ON t.id = s.id "
        "WHEN MATCHED AND t.n = 30 THEN DELETE "
        "WHEN MATCHED AND 1 / (t.n - 30) < 0 THEN UPDATE SET n = 100 / (t.n - 30) "
        "WHEN NOT MATCHED AND s.id = 9 THEN INSERT (id, n) VALUES (id, 90 / (10 - id)) "
        "WHEN NOT MATCHED BY SOURCE AND n = 10 THEN UPDATE SET n = 100 / (n - 9)"
    )
    assert [(row[0], row[2]) for row in rows(spark)] == [(1, 100), (2, -10), (4, 40), (9, 90), (None, 50)]


@pytest.mark.usefixtures("way")
def test_nested_fields_structs_and_types_are_assigned_as_they_are_stored(
    spark: SparkSession, make: Callable[..., Table]
) -> None:
    make(columns=", p STRUCT<x: INT, q: STRUCT<y: INT, z: STRING>>, l ARRAY<BIGINT>, d DECIMAL(10, 2)")
    spark.sql(
        "MERGE INTO db.t USING (SELECT 1L AS id, 5 AS v) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.p.q.y = v, l = array(v), d = v"
    )
    assert [str(v) for v in rows(spark)[0][3:]] == ["Row(x=None, q=Row(y=5, z=None))", "[5]", "5.00"]
    spark.sql(
        "MERGE INTO db.t USING (SELECT 1L AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p.x = p.q.y + 1, p.q = named_struct('z', 'deep', 'y', 2L)"
    )
    assert str(rows(spark)[0][3]) == "Row(x=6, q=Row(y=2, z='deep'))"


@pytest.mark.kinds(2)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("version", "mode"), MODES[:2])
def test_two_source_rows_for_one_row_are_one_error_and_leave_nothing(
    spark: SparkSession, make: Callable[..., Table], lake: Lake, version: int, mode: str
) -> None:
    table = make(version, mode)
    before, files = table.metadata_location, sorted(table.io.list(table.location))
    twice = "(SELECT * FROM VALUES (1L, 1), (1L, 2), (8L, 1) AS v(id, k))"
    for clause in (
        "WHEN MATCHED THEN UPDATE SET n = k WHEN NOT MATCHED THEN INSERT (id) VALUES (id)",
        "WHEN MATCHED AND k = 1 THEN UPDATE SET n = k",
        "WHEN MATCHED AND k = 1 THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (id)",
    ):
        with pytest.raises(
            InvalidInputError, match=r"each row of the table in MERGE, found several for the row with id = 1\b"
        ):
            spark.sql(f"MERGE INTO db.t USING {twice} AS s ON t.id = s.id {clause}")
    table.refresh()
    assert (table.metadata_location, sorted(table.io.list(table.location))) == (before, files)
    spark.sql(f"MERGE INTO db.t USING {twice} AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert [row[0] for row in rows(spark)] == [2, 3, 4, None]


def test_merge_on_branches(spark: SparkSession, make: Callable[..., Table]) -> None:
    make()
    spark.sql("ALTER TABLE db.t CREATE BRANCH x")
    spark.sql("ALTER TABLE db.t CREATE TAG v1")
    spark.sql("MERGE INTO db.t.branch_x USING src AS s ON branch_x.id = s.id WHEN MATCHED THEN DELETE")
    assert (len(rows(spark)), len(rows(spark, "db.t.branch_x"))) == (5, 3)
    spark.conf.set("spark.wap.branch", "w")
    spark.sql("MERGE INTO db.t USING src AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (id)")
    spark.conf.unset("spark.wap.branch")
    assert len(rows(spark, "db.t.branch_w")) == 7
    spark.conf.set("spark.wap.id", "staged")
    try:
        spark.sql("MERGE INTO db.t USING src AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    finally:
        spark.conf.unset("spark.wap.id")
    assert len(rows(spark)) == 5
    spark.sql("CALL system.publish_changes('db.t', 'staged')")
    assert len(rows(spark)) == 3
    for target in ("db.t.tag_v1", "db.t.snapshots", "db.t.branch_v1"):
        with pytest.raises((RefusedError, InvalidInputError)):
            spark.sql(f"MERGE INTO {target} AS t USING src AS s ON true WHEN MATCHED THEN DELETE")


def test_schema_evolution_is_one_commit_with_the_rows(spark: SparkSession, make: Callable[..., Table]) -> None:
    table = make(3)
    before = len(table.metadata.metadata_log)
    source = "(SELECT col1 AS id, 3000000000 AS n, named_struct('x', 1) AS more FROM VALUES (1L), (8L))"
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO db.t USING {source} AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert spark.table("db.t").columns == ["id", "name", "n", "more"]
    found = rows(spark)
    assert found[0] == (1, "a", 3000000000, (1,))
    assert found[4] == (8, None, 3000000000, (1,))
    assert found[1] == (2, "b", 20, None)
    table.refresh()
    assert len(table.metadata.metadata_log) == before + 1
    location = table.metadata_location
    with pytest.raises(BerglineError):
        spark.sql(
            "MERGE WITH SCHEMA EVOLUTION INTO db.t USING (SELECT * FROM VALUES (1L, 1), (1L, 2) AS v(id, extra)) AS s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        )
    table.refresh()
    assert table.metadata_location == location


def test_only_columns_that_are_set_to_their_own_name_are_added(spark: SparkSession, make: Callable[..., Table]) -> None:
    make()
    source = "(SELECT 1L AS id, 1 AS more, 2 AS other) AS s ON t.id = s.id"
    spark.sql(f"MERGE WITH SCHEMA EVOLUTION INTO db.t USING {source} WHEN MATCHED THEN UPDATE SET more = s.more")
    assert spark.table("db.t").columns == ["id", "name", "n", "more"]
    with pytest.raises(NotFoundError, match="no column `other`"):
        spark.sql(f"MERGE WITH SCHEMA EVOLUTION INTO db.t USING {source} WHEN MATCHED THEN UPDATE SET other = 5")


@pytest.mark.usefixtures("pruned_reads")
def test_conditions_on_the_target_skip_files(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.p (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day)")
    for day in ("a", "b", "c"):
        spark.sql(f"INSERT INTO db.p VALUES (1, '{day}'), (2, '{day}')")
    table = lake.load_table("db.p")
    others = [path for path in table.io.list(table.location) if "/data/" in path and "day=b" not in path]
    assert len(others) == 2
    table.io.delete(others)
    spark.sql(
        "MERGE INTO db.p AS t USING (SELECT 1L AS id) AS s ON t.id = s.id AND t.day = 'b' "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (id)"
    )
    assert [tuple(r) for r in spark.sql("SELECT id FROM db.p WHERE day = 'b'").collect()] == [(2,)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "USING src AS s ON t.id = s.id WHEN MATCHED AND name = 'a' THEN DELETE",
            AnalysisException,
            "AMBIGUOUS_REFERENCE",
        ),
        ("USING src AS s ON t.idd = s.id WHEN MATCHED THEN DELETE", AnalysisException, "line 1 pos 34"),
        ("USING src AS s ON t.id = WHEN MATCHED THEN DELETE", PySparkException, "line 1"),
        ("USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1", NotFoundError, "no column `nope`"),
        (
            "USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 'x'",
            InvalidInputError,
            "expected `int`, found `string` for column `n` at line 1, column",
        ),
        ("USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 3000000000", PySparkException, "OVERFLOW"),
        (
            "USING src AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)",
            AnalysisException,
            "`t`.`id`",
        ),
        (
            "USING src AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.id",
            AnalysisException,
            "`s`.`id`",
        ),
        (
            "USING src AS s ON t.id = s.id WHEN MATCHED AND rand() < 0 THEN DELETE",
            AnalysisException,
            "[UNSUPPORTED_MERGE_CONDITION.NON_DETERMINISTIC] expected a deterministic condition in MERGE, found `rand`",
        ),
        ("USING src AS s ON rand() > 0.5 WHEN MATCHED THEN DELETE", InvalidInputError, "deterministic"),
        ("USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", NotFoundError, "no column `n` in the source"),
        ("USING nowhere AS s ON t.id = s.id WHEN MATCHED THEN DELETE", AnalysisException, "nowhere"),
        ("USING db.nowhere AS s ON t.id = s.id WHEN MATCHED THEN DELETE", NotFoundError, "nowhere"),
        ("USING src AS s ON t.id = s.id WHEN MATCHED THEN", ParseException, "PARSE_SYNTAX_ERROR"),
        ("USING src AS s ON t.id = s.id", ParseException, "There must be at least one WHEN clause"),
        ("USING src AS t ON t.id = t.id WHEN MATCHED THEN DELETE", IllegalArgumentException, "different names"),
    ],
)
def test_bad_input_is_one_error_and_commits_nothing(
    spark: SparkSession, make: Callable[..., Table], text: str, error: type[Exception], message: str
) -> None:
    table = make()
    before, files = table.metadata_location, sorted(table.io.list(table.location))
    with pytest.raises(error) as raised:
        spark.sql(f"MERGE INTO db.t {text}")
    assert message in str(raised.value)
    assert "`bergline_" not in str(raised.value)
    assert "`_bergline_" not in str(raised.value).partition("SQLSTATE")[0]
    table.refresh()
    assert (table.metadata_location, sorted(table.io.list(table.location))) == (before, files)


def test_merge_into_other_tables_is_sparks(spark: SparkSession, orders: Table) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot run MERGE with `db\.orders`"):
        spark.sql("MERGE INTO spark_catalog.default.x USING db.orders AS o ON x.id = o.id WHEN MATCHED THEN DELETE")


def test_merge_into_by_the_builder(spark: SparkSession, make: Callable[..., Table]) -> None:
    make(3)
    source = spark.createDataFrame([(1, "x", 1), (3, "y", None), (9, "z", 3)], "id bigint, name string, k int")
    (
        source.alias("s")
        .mergeInto("db.t", F.col("t.id") == F.col("s.id"))
        .whenMatched(F.col("k").isNull())
        .delete()
        .whenMatched()
        .update({"name": F.col("s.name"), "t.n": F.col("t.n") + F.col("k")})
        .whenNotMatched(F.col("id") == 9)
        .insert({"id": F.col("id"), "n": F.lit(5)})
        .whenNotMatchedBySource(F.col("name") == "b")
        .update({"n": F.col("n") + 1})
        .whenNotMatchedBySource(F.col("id") == 4)
        .delete()
        .merge()
    )
    assert rows(spark) == [(1, "x", 11), (2, "b", 21), (9, None, 5), (None, "e", 50)]
    same = spark.table("db.t").where("id < 3").withColumn("n", F.lit(0)).withColumn("more", F.lit("m")).alias("s")
    on = F.expr("s.id = t.id")
    same.mergeInto("lake.db.t", on).whenMatched().updateAll().whenNotMatched().insertAll().withSchemaEvolution().merge()
    assert rows(spark)[:2] == [(1, "x", 0, "m"), (2, "b", 0, "m")]
    spark.range(20, 22).mergeInto("db.t", F.col("t.id") == F.col("id")).whenNotMatched().insert({"id": F.col("id")})
    with pytest.raises(AnalysisException, match="AMBIGUOUS"):
        spark.range(20, 22).mergeInto("db.t", F.col("t.id") == F.col("id")).whenMatched().delete().merge()
    numbers = spark.range(20, 22).alias("r")
    numbers.mergeInto("db.t", F.expr("t.id = r.id")).whenNotMatched().insert({"id": F.col("id")}).merge()
    assert [row[0] for row in rows(spark)] == [1, 2, 9, 20, 21, None]
    for on, matched in ("rand() < 0", "true"), ("t.id = r.id", "rand() < 0"):
        with pytest.raises(AnalysisException, match="NON_DETERMINISTIC"):
            numbers.mergeInto("db.t", F.expr(on)).whenMatched(F.expr(matched)).delete().merge()
    own = F.udf(lambda: 1.0, "double").asNondeterministic()
    with pytest.raises(AnalysisException, match="NON_DETERMINISTIC"):
        numbers.mergeInto("db.t", F.expr("t.id = r.id")).whenNotMatchedBySource(own() < 0).delete().merge()
    with pytest.raises(InvalidInputError, match="found none"):
        numbers.mergeInto("db.t", F.expr("t.id = r.id")).merge()
    with pytest.raises(NotFoundError, match="no column `nope`"):
        numbers.mergeInto("db.t", F.expr("t.id = r.id")).whenMatched().update({"nope": F.lit(1)}).merge()
    with pytest.raises(UnsupportedError):
        numbers.mergeInto("db.t", F.expr("t.id = r.id")).whenNotMatchedBySource().updateAll()


def test_columns_are_qualified_by_the_whole_name(spark: SparkSession, make: Callable[..., Table]) -> None:
    make(3)
    source = spark.createDataFrame([(1, "x"), (9, "z")], "id bigint, name string").alias("s")
    (
        source.mergeInto("db.t", F.expr("db.t.id = s.id"))
        .whenMatched(F.expr("lake.db.t.id = 1"))
        .update({"lake.db.t.name": F.expr("concat(lake.db.t.name, s.name)"), "db.t.n": F.col("db.t.n") + 1})
        .whenNotMatchedBySource(F.expr("db.t.id = 2"))
        .update({"db.t.n": F.expr("lake.db.t.n + 2")})
        .merge()
    )
    assert rows(spark)[:2] == [(1, "ax", 11), (2, "b", 22)]
    spark.sql(
        "MERGE INTO db.t USING db.t AS s ON lake.db.t.id = s.id "
        "WHEN MATCHED AND lake.db.t.id = 1 THEN UPDATE SET lake.db.t.name = concat(lake.db.t.name, 'y')"
    )
    spark.sql("UPDATE db.t SET lake.db.t.n = lake.db.t.n + 1 WHERE lake.db.t.id = 2")
    assert rows(spark)[:2] == [(1, "axy", 11), (2, "b", 23)]


@pytest.mark.usefixtures("pruned_reads")
def test_builder_skips_files_by_the_condition(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.p (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day)")
    for day in ("a", "b"):
        spark.sql(f"INSERT INTO db.p VALUES (1, '{day}'), (2, '{day}')")
    table = lake.load_table("db.p")
    table.io.delete([path for path in table.io.list(table.location) if "day=a" in path])
    source = spark.range(2, 3).alias("s")
    source.mergeInto("db.p", F.expr("p.id = s.id AND p.day = 'b'")).whenMatched().delete().merge()
    assert [tuple(r) for r in spark.sql("SELECT id FROM db.p WHERE day = 'b'").collect()] == [(1,)]


def test_merge_is_a_step_of_a_pipeline(spark: SparkSession, lake: Lake, make: Callable[..., Table]) -> None:
    table = make(3)
    merge = (
        "MERGE INTO db.t USING src AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    pipeline = bergline.spark.Pipeline(
        spark, lake, "daily", tables=["db.t"], steps={"merge": merge}, audits=[row_count("db.t", at_least=8)]
    )
    assert pipeline.run("1").status == "audits failed"
    assert len(rows(spark)) == 5
    assert len(rows(spark, "db.t.`branch_daily-1`")) == 7
    assert table.refresh().metadata.refs.keys() == {"main", "daily-1"}


def test_new_rows_are_distributed_as_the_table_says(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_rows_by("tasks", monkeypatch)
    spark.sql("CREATE TABLE db.p (id BIGINT, day BIGINT) USING iceberg PARTITIONED BY (day)")
    spark.range(0, 40, 1, 4).selectExpr("id", "id % 2 AS day").createOrReplaceTempView("src")
    files = {}
    for first, mode in enumerate(("none", "hash", "range")):
        spark.sql(f"ALTER TABLE db.p SET TBLPROPERTIES ('write.merge.distribution-mode' = '{mode}')")
        spark.sql(
            f"MERGE INTO db.p AS t USING (SELECT id + {first * 40} AS id, day FROM src) AS s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        snapshot = lake.load_table("db.p").current_snapshot
        assert snapshot is not None
        files[mode] = int(snapshot.summary["added-data-files"])
    assert files["none"] > 2
    assert (files["hash"], files["range"]) == (2, 2)
    assert len(rows(spark, "db.p")) == 120


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_the_later_of_two_merges_retries_or_conflicts(
    spark: SparkSession, lake: Lake, make: Callable[..., Table], mode: str
) -> None:
    """Both insert row 8: with serializable isolation that is a conflict; rows of other files are none."""
    table = make(2, mode)
    merge = (
        "MERGE INTO {t} AS t USING (SELECT {id}L AS id) AS s ON t.id = s.id AND t.id > 3 "
        "WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 0)"
    )
    for name, first in (("late", merge.format(t="db.t", id=8)), ("later", "DELETE FROM db.t WHERE id = 1")):
        late = rival_lake(lake, before_swap=once(lambda first=first: spark.sql(first)))[0]
        bergline.spark.attach(spark, late, name=name, default=False)
    with pytest.raises(ConflictError, match="came first"):
        spark.sql(merge.format(t="late.db.t", id=8))
    assert [row[::2] for row in rows(spark)] == [(1, 10), (2, 20), (3, 30), (4, 40), (8, 0), (None, 50)]
    files = {p.file.file_path for p in table.refresh().scan().plan().files}
    assert {path for path in table.io.list(table.location) if "/data/" in path} == files
    spark.sql(merge.format(t="later.db.t", id=4))
    assert [row[::2] for row in rows(spark)] == [(2, 20), (3, 30), (4, 41), (8, 0), (None, 50)]


def test_summary_entries_that_are_refused_leave_nothing(spark: SparkSession, make: Callable[..., Table]) -> None:
    table = make()
    before, files = table.metadata_location, sorted(table.io.list(table.location))
    setting = "spark.sql.iceberg.snapshot-property.wap.id"
    spark.conf.set(setting, "x")
    try:
        for text in (
            "UPDATE db.t SET n = 1 WHERE id + 0 = 2",
            "DELETE FROM db.t WHERE id + 0 = 2",
            "MERGE INTO db.t USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name",
        ):
            with pytest.raises(InvalidInputError, match=r"found `wap\.id`, which bergline writes itself"):
                spark.sql(text)
    finally:
        spark.conf.unset(setting)
    table.refresh()
    assert (table.metadata_location, sorted(table.io.list(table.location))) == (before, files)
