"""Iceberg views in queries of an attached session: what they read, whose names they see, how they are checked."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from rows import order_rows

import bergline.spark
from bergline import Lake, Table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.spark.views.scopes import can_up_cast

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
