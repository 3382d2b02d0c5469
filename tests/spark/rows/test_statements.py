"""DELETE, UPDATE and TRUNCATE TABLE on lake tables: rows, row ids, modes, branches, and bad input."""

import re
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.twin_tables import KINDS, all_rows, every_kind
from support.fixtures.ways_of_changing import WAYS, change_rows_by
from support.paths import ROOT

pytestmark = pytest.mark.spark

GONE = {2, 9, 10, 21, 31}
CONDITIONS = {
    "exact": "id IN (2, 9, 10, 21, 31)",
    "by Spark": "id + 0 IN (2, 9, 10, 21, 31)",
    "subquery": "id IN (SELECT n FROM VALUES (2), (9), (10), (21), (31) AS v(n))",
}
PEOPLE = "id BIGINT, who STRUCT<name: STRING, home: STRUCT<city: STRING, zip: INT>>, tags ARRAY<INT>, n INT"


def modes(table: Table) -> Table:
    """UPDATE in the mode of DELETE."""
    mode = table.properties.get("write.delete.mode", "copy-on-write")
    return table.set_properties({"write.update.mode": mode})


def on_disk(table: Table) -> list[str]:
    return sorted(table.io.list(table.location))


@pytest.fixture
def people(spark: SparkSession, lake: Lake) -> Table:
    spark.sql(f"CREATE TABLE db.people ({PEOPLE}) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    spark.sql(
        "INSERT INTO db.people VALUES (1, named_struct('name', 'a', 'home', named_struct('city', 'x', 'zip', 1)), "
        "array(1), 5), (2, null, null, null)"
    )
    return lake.load_table("db.people")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    change_rows_by(request.param, monkeypatch)


@pytest.mark.kinds(2)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "kind", every_kind("v1", "v2 copy, evolved", "v2 positions by partition", "v3 copy", "v3 vectors over positions")
)
def test_rows_go_and_all_others_stay_as_they_were(spark: SparkSession, lake: Lake, kind: str) -> None:
    for number, condition in enumerate(CONDITIONS.values()):
        table = KINDS[kind](lake, f"db.t{number}")
        before = all_rows(table)
        spark.sql(f"DELETE FROM db.t{number} WHERE {condition}")
        assert all_rows(table.refresh()) == [row for row in before if row[0] not in GONE], condition


@pytest.mark.kinds(2)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "kind", every_kind("v2 copy, equality deletes", "v2 positions, evolved", "v3 copy", "v3 vectors, evolved")
)
def test_updated_rows_keep_their_ids_and_all_others_stay_as_they_were(
    spark: SparkSession, lake: Lake, kind: str
) -> None:
    table = modes(KINDS[kind](lake, "db.t"))
    before, place = all_rows(table), [f.name for f in table.schema.fields].index("amount")
    spark.sql("UPDATE db.t AS o SET amount = o.amount * 2 + 1, region = upper(region) WHERE o.id IN (3, 8, 21, 30)")
    table.refresh()
    number, lineage = table.metadata.last_sequence_number, table.metadata.format_version > 2
    expected = []
    for row in before:
        new = list(row)
        if row[0] in {3, 8, 21, 30}:
            new[place], new[2] = row[place] * 2 + 1, row[2].upper()
            new[-1] = number if lineage else new[-1]
        expected.append(tuple(new))
    assert all_rows(table) == sorted(expected)


def test_sources_may_be_other_tables_views_and_the_table_itself(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2, 3, 4))
    lake.create_table("db.u", ORDERS).append(order_rows(2, 9))
    spark.createDataFrame([(3,)], "k bigint").createOrReplaceTempView("keys")
    spark.sql("UPDATE db.t SET amount = (SELECT max(amount) FROM db.t) WHERE id IN (SELECT id FROM db.u)")
    assert spark.sql("SELECT amount FROM db.t ORDER BY id").collect() == [(10.0,), (40.0,), (30.0,), (40.0,)]
    spark.sql("DELETE FROM db.t o WHERE EXISTS (SELECT 1 FROM keys WHERE k = o.id) OR id = (SELECT min(id) FROM db.t)")
    spark.sql("WITH some AS (SELECT 4 AS id) DELETE FROM db.t WHERE id IN (SELECT id FROM some)")
    spark.sql("DELETE FROM db.t WHERE db.t.id = :p", args={"p": 7})
    assert ids(table.refresh().scan().to_arrow()) == [2]
    spark.sql(
        "UPDATE db.t SET amount = (SELECT count(*) FROM db.t.snapshots) "
        "WHERE db.t.id = (SELECT max(db.t.id) FROM db.t) AND (SELECT count(*) FROM db.t.files) > 0"
    )
    assert spark.sql("SELECT amount FROM db.t").collect() == [(len(table.metadata.snapshots),)]
    spark.catalog.dropTempView("keys")


@pytest.mark.usefixtures("way")
def test_new_rows_are_in_the_order_of_the_table(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.s (id BIGINT, n BIGINT) USING iceberg TBLPROPERTIES ('write.update.mode' = 'merge-on-read')"
    )
    spark.range(40).selectExpr("id", "id * 7 % 40 AS n").writeTo("db.s").append()
    spark.sql("ALTER TABLE db.s WRITE ORDERED BY n DESC")
    spark.sql("UPDATE db.s SET n = n + 100 WHERE id % 3 = 1")
    found = lake.load_table("db.s").scan(columns=["n", "_file", "_pos"]).to_arrow().to_pylist()
    by_file: dict[str, list[int]] = {}
    for row in sorted(found, key=lambda row: row["_pos"]):
        by_file.setdefault(row["_file"], []).append(row["n"])
    new = [values for values in by_file.values() if values[0] >= 100]
    assert sum(map(len, new)) == 13
    assert all(values == sorted(values, reverse=True) for values in new)


@pytest.mark.usefixtures("way")
def test_fields_of_structs_and_defaults_are_set(spark: SparkSession, lake: Lake, people: Table) -> None:
    spark.sql("ALTER TABLE db.people ADD COLUMN level INT")
    with people.refresh().update_schema() as schema:
        schema.add_column("kind", "string", default="old")
        schema.set_default("kind", "new")
    spark.sql("UPDATE db.people p SET p.who.home.zip = 7, n = DEFAULT, kind = DEFAULT, level = p.n WHERE id = 1")
    spark.sql("UPDATE db.people SET who.name = 'b' WHERE id = 2")
    rows = spark.sql(
        "SELECT id, who.name, who.home.city, who.home.zip, n, kind, level, tags FROM db.people ORDER BY id"
    )
    assert [tuple(row) for row in rows.collect()] == [
        (1, "a", "x", 7, None, "new", 5, [1]),
        (2, "b", None, None, None, "old", None, None),
    ]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_branches_wap_and_staged_snapshots(spark: SparkSession, lake: Lake, mode: str) -> None:
    properties = {"format-version": "3", "write.delete.mode": mode, "write.update.mode": mode}
    table = lake.create_table("db.t", ORDERS, properties=properties).append(order_rows(1, 2, 3))
    table.refs.create_branch("dev")
    spark.sql("DELETE FROM db.t.branch_dev WHERE id % 2 = 0")
    spark.sql("UPDATE db.t.branch_dev SET amount = 7 WHERE id = 1")
    table.refresh()
    assert [table.scan(ref="dev").to_arrow().sort_by("id")["amount"].to_pylist()] == [[7.0, 30.0]]
    spark.conf.set("spark.wap.branch", "audit")
    try:
        spark.sql("DELETE FROM db.t WHERE id = 1")
        spark.sql("UPDATE db.t SET amount = 8 WHERE id + 0 = 2")
    finally:
        spark.conf.unset("spark.wap.branch")
    spark.conf.set("spark.wap.id", "w1")
    try:
        spark.sql("UPDATE db.t SET amount = 9 WHERE id = 3")
    finally:
        spark.conf.unset("spark.wap.id")
    table.refresh()
    assert table.scan(ref="audit").to_arrow().sort_by("id")["amount"].to_pylist() == [8.0, 30.0]
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    assert table.scan().to_arrow().sort_by("id")["amount"].to_pylist() == [10.0, 20.0, 30.0]
    assert any(s.summary.get("wap.id") == "w1" for s in table.metadata.snapshots)
    spark.sql("TRUNCATE TABLE db.t.branch_dev")
    table.refresh()
    assert (ids(table.scan(ref="dev").to_arrow()), len(ids(table.scan().to_arrow()))) == ([], 3)
    spark.sql("TRUNCATE TABLE db.t")
    assert ids(table.refresh().scan().to_arrow()) == []


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_statements_that_change_no_row_commit_nothing(spark: SparkSession, lake: Lake, mode: str) -> None:
    properties = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = lake.create_table("db.t", ORDERS, properties=properties).append(order_rows(1, 3))
    before, files = table.metadata_location, on_disk(table)
    for text in (
        "DELETE FROM db.t WHERE id = 9",
        "DELETE FROM db.t WHERE id = 2",
        "DELETE FROM db.t WHERE id % 7 = 6",
        "UPDATE db.t SET amount = 1 WHERE id = 2",
        "MERGE INTO db.t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        spark.sql(text)
        assert table.refresh().metadata_location == before, text
    assert on_disk(table) == files
    spark.conf.set("spark.wap.branch", "audit")  # who publishes it looks for it
    spark.sql("UPDATE db.t SET amount = 1 WHERE id = 2")
    assert "audit" in table.refresh().refs


BAD: dict[str, tuple[type[Exception], str]] = {
    "DELETE FROM db.t WHERE id = ": (ParseException, "PARSE_SYNTAX_ERROR"),
    "DELETE FROM db.t WHERE nope = 1": (AnalysisException, "nope"),
    "DELETE FROM db.t WHERE id + 1": (AnalysisException, "(?i)boolean"),
    "DELETE FROM db.t WHERE id IN (SELECT id FROM db.nope)": (NotFoundError, "nope"),
    "DELETE FROM db.t o WHERE t.id = 1": (AnalysisException, r"t`\.`id"),
    "DELETE FROM db.t LIMIT 1": (ParseException, "PARSE_SYNTAX_ERROR"),
    "DELETE FROM db.t AS o (a, b, c) WHERE a = 1": (UnsupportedError, "rename the columns"),
    "UPDATE db.t SET nope = 1": (
        NotFoundError,
        "no column `nope`: there are `id`, `amount`, `region` at line 1, column 17",
    ),
    "UPDATE db.t SET amount.x = 1": (UnsupportedError, "expected a struct"),
    "UPDATE db.t SET amount = 1, region = 'x', AMOUNT = 2": (
        InvalidInputError,
        "expected one value for column `amount`",
    ),
    "UPDATE db.t SET amount = named_struct('a', 1)": (InvalidInputError, "expected `double`, found `struct<a:int>`"),
    "UPDATE db.t SET amount = 'abc'": (InvalidInputError, "expected `double`, found `string` for column `amount`"),
    "UPDATE db.t SET id = NULL": (InvalidInputError, "id"),
    "DELETE FROM db.t WHERE rand() < 0.5": (
        AnalysisException,
        r"\[INVALID_NON_DETERMINISTIC_EXPRESSIONS\] expected a deterministic condition in DELETE, found `rand` at",
    ),
    # the optimizer knows that it is false
    "DELETE FROM db.t WHERE rand() < 0": (InvalidInputError, "expected a deterministic condition in DELETE"),
    "DELETE FROM db.t WHERE own_rand() < 0": (AnalysisException, "expected a deterministic condition in a statement"),
    "DELETE FROM db.t WHERE id IN (SELECT id FROM db.t WHERE rand() < 0)": (InvalidInputError, "deterministic"),
    "UPDATE db.t SET amount = 1 WHERE uuid() > id": (InvalidInputError, "expected a deterministic condition in UPDATE"),
    "INSERT INTO db.t REPLACE WHERE rand() < 0 SELECT * FROM db.t": (AnalysisException, "NON_DETERMINISTIC"),
    "UPDATE db.t SET amount = sum(amount)": (AnalysisException, "(?i)group"),
    "UPDATE db.t SET amount = explode(array(1, 2))": (
        InvalidInputError,
        "expected one change of each row, found several",
    ),
    "UPDATE db.t SET amount": (ParseException, "PARSE_SYNTAX_ERROR"),
    "UPDATE db.t amount = 1": (ParseException, "PARSE_SYNTAX_ERROR"),
    # to Spark's grammar, WHERE may be an alias
    "DELETE FROM db.t WHERE": (ParseException, "expected a condition"),
    "UPDATE db.t.tag_v1 SET amount = 1": (RefusedError, "."),
    "DELETE FROM db.t.tag_v1": (RefusedError, "."),
    "DELETE FROM db.t.tag_v2 WHERE id = 1": (NotFoundError, r"no tag `v2` of `db\.t`"),
    "DELETE FROM db.t.files": (RefusedError, "metadata tables"),
    "DELETE FROM db.t.branch_nope WHERE id = 1": (NotFoundError, "nope"),
    "TRUNCATE TABLE db.t PARTITION (region = 'eu')": (InvalidInputError, r"partitioned by as they are \(none\)"),
    "TRUNCATE TABLE db.t.files": (RefusedError, "metadata tables"),
}


def test_bad_input_is_one_clear_error_and_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2))
    table.refs.create_tag("v1")
    spark.udf.register("own_rand", F.udf(lambda: 1.0, "double").asNondeterministic())
    before = table.metadata_location, [path for path in on_disk(table) if "/data/" in path]
    for text, (kind, message) in BAD.items():
        with pytest.raises(kind, match=message):
            spark.sql(text)
        table.refresh()
        assert (table.metadata_location, [path for path in on_disk(table) if "/data/" in path]) == before, text


def test_truncate_of_a_partition_leaves_the_others(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region", "bucket(4, id)"])
    spark.sql("INSERT INTO db.t VALUES (1, 1.0, 'eu'), (2, 2.0, 'us'), (3, 3.0, NULL), (4, 4.0, 'eu')")
    spark.sql("TRUNCATE TABLE db.t PARTITION (region = 'eu')")
    assert sorted(row.id for row in spark.table("db.t").collect()) == [2, 3]
    spark.sql("TRUNCATE TABLE db.t PARTITION (region = 'nowhere')")
    with pytest.raises(InvalidInputError, match=r"partitioned by as they are \(`region`\), found `id`"):
        spark.sql("TRUNCATE TABLE db.t PARTITION (id = 2)")
    assert sorted(row.id for row in spark.table("db.t").collect()) == [2, 3]
    spark.sql("TRUNCATE TABLE db.t PARTITION (region = NULL)")
    assert [row.id for row in spark.table("db.t").collect()] == [2]
    assert table.refresh().current_snapshot is not None


def test_errors_are_shown_where_they_are_in_the_statement(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("db.t", ORDERS).append(order_rows(1))
    for text, place in (
        ("UPDATE db.t SET amount = amount + nope WHERE id = 1", "nope"),
        ("DELETE FROM db.t AS o\nWHERE o.id > 3 AND o.nope = 4", "o.nope"),
    ):
        with pytest.raises(AnalysisException) as caught:
            spark.sql(text)
        (context,) = caught.value.getQueryContext()
        assert (context.fragment(), context.startIndex()) == (place, text.index(place))
        assert "bergline_" not in str(caught.value)
        assert "`_pos`" not in str(caught.value)


def test_tables_of_sparks_own_are_sparks(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE default.plain (id INT) USING parquet")
    try:
        for text in ("DELETE FROM default.plain WHERE id = 1", "UPDATE default.plain SET id = 1"):
            with pytest.raises((AnalysisException, ParseException, Exception), match=r"(?i)not support|unsupported"):
                spark.sql(text)
        spark.sql("INSERT INTO default.plain VALUES (1)")
        spark.sql("TRUNCATE TABLE default.plain")
        assert spark.table("default.plain").count() == 0
    finally:
        spark.sql("DROP TABLE default.plain")


def test_whole_files_go_by_metadata_and_no_task_runs(spark: SparkSession, lake: Lake, monkeypatch: Any) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    table.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    monkeypatch.setattr("bergline.spark.rows.engine.SparkRowEngine._run", None)
    spark.sql("DELETE FROM db.t WHERE region = 'us'")
    snapshot = table.refresh().current_snapshot
    assert snapshot is not None
    assert (ids(table.scan().to_arrow()), snapshot.summary["operation"]) == ([1, 2], "delete")
    assert (snapshot.summary["engine-name"], snapshot.summary["deleted-records"]) == ("spark", "1")
    spark.sql("DELETE FROM db.t")
    assert ids(table.refresh().scan().to_arrow()) == []


def test_guide_runs(spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "guides" / "changing-rows-on-spark.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {"spark": spark})  # noqa: S102  (our own page)
    assert capsys.readouterr().out == "[0.0, 2.0, 4.0, 4.0, 5.0, 6.0, 7.0]\n0 5\n"
    spark.catalog.dropTempView("cancelled")
