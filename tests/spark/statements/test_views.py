"""Iceberg views in queries of an attached session: what they read, whose names they see, how they are checked."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.spark.views.scopes import can_up_cast
from bergline.sql.names.resolve import Lakes
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple]:
    return [tuple(row) for row in spark.sql(text).collect()]


def refused(spark: SparkSession, text: str, condition: str | None = None) -> BerglineError:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text)
    assert caught.value.getCondition() == condition
    assert isinstance(caught.value, BerglineError)
    return caught.value


def test_view_is_read_in_its_own_scope(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    spark.sql("USE db")
    spark.sql("CREATE VIEW big (number COMMENT 'the id', region) AS SELECT id, region FROM orders WHERE id > 1")
    assert rows(spark, "SHOW VIEWS IN spark_catalog.default") == []
    version = lake.load_view("db.big").metadata.current_version
    assert (version.default_catalog, version.default_namespace, version.dialects) == (None, ("db",), {"spark"})
    spark.sql("CREATE VIEW lake.db.nested AS WITH q AS (SELECT number FROM big) SELECT * FROM q")
    spark.sql("USE spark_catalog.default")
    spark.sql("CREATE TEMP VIEW orders AS SELECT 99L AS id, 'x' AS region")
    spark.sql("CREATE TEMP VIEW q AS SELECT 99L AS number")
    joined = (
        "WITH orders AS (SELECT 5 AS id) SELECT n.number, o.id FROM db.nested n JOIN db.orders o ON n.number = o.id"
    )
    assert sorted(rows(spark, joined)) == [(2, 2), (3, 3)]
    assert sorted(rows(spark, "SELECT db.big.number FROM db.big WHERE number > 2")) == [(3,)]
    frame = spark.table("db.big")
    assert (frame.schema["number"].metadata, frame.filter(frame.number == 2).count()) == ({"comment": "the id"}, 1)
    orders.append(order_rows(4))
    assert rows(spark, "SELECT max(number) FROM db.nested") == [(4,)]
    spark.sql("INSERT INTO db.orders SELECT number + 10, 1.0, region FROM db.big WHERE number = 4")
    spark.sql("DELETE FROM db.orders WHERE id IN (SELECT number FROM db.nested WHERE number < 4)")
    assert sorted(rows(spark, "SELECT id FROM db.orders")) == [(1,), (4,), (14,)]
    assert [t.tableType for t in spark.catalog.listTables("db")] == ["VIEW", "VIEW", "MANAGED"]
    assert spark.catalog.tableExists("db.big")
    assert spark.catalog.getTable("lake.db.big").tableType == "VIEW"


def test_definitions_are_checked_and_nothing_is_stored(spark: SparkSession, lake: Lake, orders: Table) -> None:
    spark.sql("CREATE TEMP VIEW mine AS SELECT 1 AS one")
    spark.udf.register("my_function", lambda x: x)
    spark.sql("DECLARE OR REPLACE VARIABLE my_variable INT DEFAULT 5")
    temporary = {"* FROM mine": "view `mine`", "my_function(id) AS x FROM db.orders": "function `my_function`"}
    for query, named in (temporary | {"my_variable AS x": "variable `my_variable`"}).items():
        error = refused(spark, f"CREATE VIEW db.v AS SELECT {query}", "INVALID_TEMP_OBJ_REFERENCE")
        assert named in str(error)
    refused(spark, "CREATE VIEW db.v (a) AS SELECT 1, 2", "CREATE_VIEW_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS")
    refused(spark, "CREATE VIEW db.v AS SELECT 1 AS a, 2 AS A", "COLUMN_ALREADY_EXISTS")
    missing = refused(spark, "CREATE VIEW db.v AS SELECT * FROM default.t", "TABLE_OR_VIEW_NOT_FOUND")
    assert "spark_catalog.default.t" in str(missing.hints)
    with pytest.raises(AnalysisException, match=r"(?s)UNRESOLVED_COLUMN.*line 1 pos 27"):
        spark.sql("CREATE VIEW db.v AS SELECT nope FROM db.orders")
    with pytest.raises(UnsupportedError, match=r"a view of `db\.orders`, found `spark_catalog\.default\.v`"):
        spark.sql("CREATE VIEW spark_catalog.default.v AS SELECT * FROM db.orders")
    assert lake.list_views() == []
    assert rows(spark, "SHOW VIEWS IN spark_catalog.default") == [("", "mine", True)]
    spark.sql("ALTER VIEW mine AS SELECT count(*) AS n FROM db.orders")
    assert rows(spark, "SELECT * FROM mine") == [(0,)]


def test_view_whose_text_no_longer_resolves_is_one_clear_error(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("CREATE VIEW db.stars AS SELECT * FROM db.orders")
    spark.sql("CREATE VIEW db.regions AS SELECT id, concat(region, '!') FROM db.orders")
    spark.sql("CREATE VIEW db.around AS SELECT id FROM db.regions")
    spark.sql("ALTER TABLE db.orders ADD COLUMN first STRING FIRST")
    assert rows(spark, "SELECT id FROM db.stars") == [(1,)]  # by name, wherever the column is now
    spark.sql("ALTER TABLE db.orders RENAME COLUMN region TO place")
    for view, text in {"stars": "SELECT * FROM db.stars", "regions": "SELECT * FROM db.around"}.items():
        error = refused(spark, text, "INCOMPATIBLE_VIEW_SCHEMA_CHANGE")
        assert f"no column `region` any more in `db.orders`, which view `lake.db.{view}` reads" in str(error)
        assert f"CREATE OR REPLACE VIEW lake.db.{view} AS SELECT" in error.hints[0]
    spark.sql("CREATE OR REPLACE VIEW db.regions AS SELECT id, place FROM db.orders")
    assert rows(spark, "SELECT * FROM db.around") == [(1,)]
    with pytest.raises(InvalidInputError, match=r"`lake\.db\.regions` -> `lake\.db\.around` -> `lake\.db\.regions`"):
        spark.sql("ALTER VIEW db.regions AS SELECT * FROM db.around")
    lake.load_view("db.regions").replace("SELECT * FROM db.around", lake.load_view("db.around").schema)
    refused(spark, "SELECT * FROM db.around", "RECURSIVE_VIEW")
    lake.drop_table("db.orders")
    with pytest.raises(NotFoundError, match=r"no table `db\.orders`, which view `lake\.db\.stars` reads"):
        spark.sql("SELECT * FROM db.stars")
    for text in ("SELECT * FROM db.stars VERSION AS OF 1", "SELECT * FROM db.stars TIMESTAMP AS OF '2026-01-01'"):
        assert "it is a view" in str(refused(spark, text, "TABLE_OR_VIEW_NOT_FOUND"))


@pytest.mark.parametrize(
    ("before", "after", "is_possible"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("bigint", "decimal(20,0)", True),
        ("bigint", "decimal(19,0)", False),
        ("decimal(9,2)", "decimal(10,3)", True),
        ("decimal(9,2)", "decimal(10,1)", False),
        ("date", "timestamp", True),
        ("timestamp", "date", False),
        ("int", "string", True),
        ("string", "int", False),
        ("struct<a:int>", "struct<a:bigint>", True),
        ("struct<a:int>", "struct<a:int,b:int>", False),
        ("array<bigint>", "array<int>", False),
        ("map<int,int>", "map<bigint,int>", True),
    ],
)
def test_columns_are_up_cast_by_sparks_rule(
    spark_session: SparkSession, before: str, after: str, is_possible: bool
) -> None:
    found, wanted = (
        spark_session.sql(f"SELECT CAST(NULL AS {text}) AS c").schema["c"].dataType for text in (before, after)
    )
    assert can_up_cast(found, wanted) is is_possible
    sparks = spark_session._jvm.org.apache.spark.sql.catalyst.expressions.Cast
    java = [spark_session._jsparkSession.parseDataType(type_.json()) for type_ in (found, wanted)]
    assert sparks.canUpCast(*java) is is_possible


def test_catalogs_and_dialects_of_other_engines(spark: SparkSession, lake: Lake, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1, 2))
    columns = orders.schema
    lake.create_view("db.theirs", {"trino": "SELECT 1"}, columns)
    with pytest.raises(UnsupportedError, match=r"dialect `spark` for view `lake\.db\.theirs`, found `trino`"):
        spark.sql("SELECT * FROM db.theirs")
    lake.create_view("db.unknown", "SELECT * FROM t", columns, default_catalog="nowhere")
    assert "no catalog `nowhere`" in str(refused(spark, "SELECT * FROM db.unknown"))
    lake.create_view("db.unnamed", "SELECT id + 1, amount, region FROM orders", columns)  # no names of its query
    assert sorted(rows(spark, "SELECT id FROM db.unnamed")) == [(2,), (3,)]
    with bergline.connect(f"sqlite:///{tmp_path}/second/catalog.db", create=True) as second:
        second.create_namespace("db")
        bergline.spark.attach(spark, second, name="second", default=False)
        spark.sql("CREATE TABLE known USING parquet AS SELECT 2L AS id")
        try:
            spark.sql("CREATE VIEW second.db.v AS SELECT id FROM db.orders JOIN spark_catalog.default.known USING (id)")
            assert second.load_view("db.v").metadata.current_version.default_catalog == "lake"
            spark.sql("USE second.db")
            assert rows(spark, "SELECT * FROM v") == [(2,)]
        finally:
            spark.sql("DROP TABLE spark_catalog.default.known")


@pytest.fixture
def days(lake: Lake, tmp_path: Path) -> Path:
    """`db.days`: 40 files of 5 rows, by day; and the same rows as one Parquet file."""
    parts = [
        pa.table(
            {
                "day": pa.array([day] * 5, pa.int32()),
                "id": pa.array(range(day * 5, day * 5 + 5)),
                "amount": [day + i / 10 for i in range(5)],
            }
        )
        for day in range(40)
    ]
    lake.create_namespace("db", if_not_exists=True)
    table = lake.create_table("db.days", parts[0].schema)
    with table.transaction() as writing:
        for part in parts:
            writing.append(part)
    pq.write_table(pa.concat_tables(parts), tmp_path / "days.parquet")
    return tmp_path / "days.parquet"


VIEWS = {
    "early": "SELECT id, day, amount FROM db.days WHERE day < 10",
    "late": "SELECT id, day AS d, amount FROM db.days WHERE day >= 35",
    "everything": "SELECT * FROM db.days",
    "pairs": "SELECT a.id AS first, b.id AS second, b.day FROM db.days a JOIN db.days b ON a.id = b.id - 1",
    "around": "WITH q AS (SELECT day, count(*) AS n, sum(id) AS ids FROM db.everything GROUP BY day) SELECT * FROM q",
    "largest": "SELECT * FROM db.everything WHERE amount = (SELECT max(amount) FROM db.early)",
}
QUERIES = [
    # two views on one table, each with a filter of its own: the filter of one must not count for the other
    ("SELECT e.id, l.id FROM db.early e JOIN db.late l ON e.id % 5 = l.id % 5 WHERE e.day = 3 AND l.d = 36", 2),
    ("SELECT id FROM db.early WHERE id < 12 UNION ALL SELECT id FROM db.late WHERE id > 196", 4),
    ("SELECT e.id FROM db.everything e LEFT JOIN db.late l ON e.id = l.id WHERE e.day = 2", None),
    ("SELECT a.id, b.id FROM db.everything a JOIN db.everything b ON a.id = b.id + 100 WHERE a.day = 21", None),
    ("SELECT id, (SELECT max(id) FROM db.early) FROM db.days WHERE day = 38", 1),
    ("SELECT id FROM db.early WHERE day IN (SELECT day - 35 FROM db.days WHERE day > 37)", None),
    ("SELECT id, day FROM db.days WHERE day = 4 EXCEPT SELECT id, day FROM db.everything WHERE id < 22", None),
    ("SELECT first, second FROM db.pairs WHERE day = 7", None),
    ("SELECT p.first, q.second FROM db.pairs p JOIN db.pairs q ON p.second = q.first WHERE p.day = 7", None),
    ("SELECT n, ids FROM db.around WHERE day = 11", 1),
    ("SELECT id FROM db.largest", None),
    ("WITH v AS (SELECT * FROM db.late) SELECT v.id, w.id FROM v JOIN v w ON v.id = w.id WHERE w.d = 39", None),
]


def test_conditions_on_views_choose_the_files_of_their_tables(spark: SparkSession, lake: Lake, days: Path) -> None:
    plain = spark.newSession()
    bergline.spark.detach(plain)
    plain.read.parquet(str(days)).createOrReplaceTempView("days")
    for name, query in VIEWS.items():
        spark.sql(f"CREATE VIEW db.{name} AS {query}")
        plain.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query.replace('db.', '')}")
    for query, files in QUERIES:
        frame = spark.sql(query)
        assert sorted(frame.collect()) == sorted(plain.sql(query.replace("db.", "")).collect()), query
        assert files is None or len(frame.inputFiles()) == files, query
    for name in VIEWS:
        plain.catalog.dropTempView(name)
    assert len(spark.table("db.early").inputFiles()) == 10
    assert "db.days: 1 file of" in bergline.spark.explain_read(spark.sql("SELECT * FROM db.everything WHERE day = 5"))
    spark.sql("CREATE TABLE db.copied AS SELECT id FROM db.early WHERE day = 9")
    spark.sql(
        "DELETE FROM db.copied WHERE id IN (SELECT id + 1 FROM db.pairs JOIN db.early ON second = id AND id = 46)"
    )
    assert sorted(rows(spark, "SELECT * FROM db.copied")) == [(45,), (46,), (48,), (49,)]


def test_a_table_has_one_state_in_views_and_outside(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("CREATE VIEW db.ids AS SELECT id FROM db.orders")
    resolve = Lakes.resolve

    def append_and_resolve(lakes: Lakes, name: tuple[str, ...]) -> object:
        orders.refresh().append(order_rows(9))
        return resolve(lakes, name)

    counts = ", ".join(f"(SELECT count(*) FROM {name})" for name in ("db.orders", "db.ids", "lake.db.orders"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lakes, "resolve", append_and_resolve)
        (found,) = rows(spark, f"SELECT {counts}")
    assert len(set(found)) == 1
    assert rows(spark, "SELECT count(*) FROM db.ids")[0] >= (max(found),) > (2,)
