"""Which columns the Arrow reader reads for a query: those that it uses, and the rows stay the same."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.spark.backends.classic.catalyst import class_of, scala_items
from support.fixtures.add_deletes import add_deletes, equality_deletes

pytestmark = pytest.mark.spark

WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("tags", pa.list_(pa.string())),
    ]
)
ALL = {"id", "name", "price", "s", "tags"}


def wide_rows(*numbers: int) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": n, "name": f"n{n % 3}", "price": n / 2, "s": {"x": n, "y": "y"}, "tags": ["a"] * n} for n in numbers],
        WIDE,
    )


@pytest.fixture
def wide(lake: Lake, spark: SparkSession) -> Table:
    """One group of files for each executor: Spark's compares no doubles."""
    table = lake.create_table("db.wide", WIDE, properties={"format-version": "2"})
    table.append(wide_rows(1, 2, 3, 4))
    add_deletes(table, equality_deletes(table, pa.table({"price": [1.0]}), [3]))
    table.refresh().append(wide_rows(5, 6))
    explained = bergline.spark.explain_read(spark.table("db.wide"))
    assert "arrow: 1 file," in explained
    assert "native: 1 file," in explained
    return table


def read_columns(frame: DataFrame) -> set[str]:
    """The columns that tasks of the Arrow reader give."""
    pending, found = [frame._jdf.queryExecution().optimizedPlan()], set()
    while pending:
        node = pending.pop()
        pending += [*scala_items(node.subqueries()), *scala_items(node.children())]
        if class_of(node) == "MapInArrow":
            found |= {str(column.name()) for column in scala_items(node.output())}
    return found


def rows(frame: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in frame.collect())


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * FROM {t}", ALL),
        ("SELECT ID FROM {t}", {"id"}),
        ("SELECT count(*) FROM {t}", {"_pos"}),
        ("SELECT 1 FROM {t}", {"_pos"}),
        ("SELECT id FROM {t} WHERE Name = 'n1'", {"id", "name"}),
        ("SELECT id FROM {t} WHERE rand(5) < 2 AND name = 'n1'", {"id", "name"}),
        ("SELECT name, count(*) FROM {t} GROUP BY name HAVING sum(id) > 1", {"name", "id"}),
        ("SELECT s.x FROM {t} ORDER BY id DESC LIMIT 2", {"s", "id"}),
        ("WITH q AS (SELECT * FROM {t}) SELECT a.id, b.name FROM q a JOIN q b ON a.id = b.id + 1", {"id", "name"}),
        ("SELECT a.id FROM {t} a WHERE EXISTS (SELECT * FROM {t} b WHERE b.id = a.id + 1)", {"id"}),
        ("SELECT id, (SELECT max(name) FROM {t}) FROM {t} WHERE id IN (SELECT s.x FROM {t})", {"id", "name", "s"}),
        ("SELECT id FROM {t} UNION ALL SELECT s.x FROM {t}", {"id", "s"}),
        ("SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) FROM {t}", {"id", "name"}),
        ("SELECT id, tag FROM {t} LATERAL VIEW explode(tags) AS tag", {"id", "tags"}),
        ("SELECT DISTINCT name FROM (SELECT *, id + 1 AS more FROM {t}) q", {"name"}),
        ("SELECT * EXCEPT (tags, s) FROM {t}", {"id", "name", "price"}),
        ("SELECT id FROM {t} TABLESAMPLE (100 PERCENT)", ALL),
        ("SELECT id FROM {t} PIVOT (count(*) FOR name IN ('n1', 'n2'))", ALL),
        ("SELECT id FROM {t} WHERE id = :x", {"id"}),
        ("SELECT a.id FROM {t} a, LATERAL (SELECT a.id + b.id AS n FROM {t} b WHERE b.id < a.id)", {"id"}),
    ],
)
def test_queries_read_the_columns_that_they_use(spark: SparkSession, wide: Table, text: str, columns: set[str]) -> None:
    spark.table("db.wide").createOrReplaceTempView("whole")
    args = {"x": 3} if ":x" in text else None
    found = spark.sql(text.format(t="db.wide"), args=args)
    assert rows(found) == rows(spark.sql(text.format(t="whole"), args=args))
    assert read_columns(found) <= columns
    assert found.count() == len(rows(found))
    assert wide.scan().to_arrow().num_rows == 5


def test_deleted_rows_are_counted_where_the_query_names_them(spark: SparkSession, wide: Table) -> None:
    assert wide.current_snapshot is not None
    assert rows(spark.sql("SELECT count(*) FROM (SELECT id, _deleted FROM db.wide) q")) == ["(6,)"]


def test_what_is_made_of_a_query_has_its_columns(spark: SparkSession, wide: Table) -> None:
    later = spark.sql("SELECT if(current_date() < DATE '1990-01-01', name, 'x') FROM db.wide")
    assert read_columns(later) == ALL
    frame = spark.sql("SELECT id, name FROM db.wide")
    assert read_columns(frame) == {"id", "name"}
    assert rows(frame.filter("name = 'n1'").select("id")) == ["(1,)", "(4,)"]
    assert frame.cache().count() == 5
    frame.unpersist()
    frame.createOrReplaceTempView("narrow")
    assert rows(spark.sql("SELECT max(id) FROM narrow")) == ["(6,)"]
    assert rows(spark.table("db.wide").select("id").filter("price > 2.5")) == ["(6,)"]


def test_counts_and_bounds_of_a_table_are_in_its_metadata(spark: SparkSession, orders: Table) -> None:
    spark.sql("CREATE TABLE db.m (id BIGINT, n INT, d DATE, ts TIMESTAMP, s STRING, x DOUBLE)")
    empty = spark.sql("SELECT count(*), count(n), min(id), max(d) FROM db.m").collect()
    assert empty == [(0, 0, None, None)]
    spark.sql(
        "INSERT INTO db.m SELECT id, if(id = 2, null, id), date_add(DATE'2026-01-01', id), "
        "timestamp_seconds(id), 'a', id FROM VALUES (1), (2), (3) AS v(id)"
    )
    spark.sql("INSERT INTO db.m VALUES (-7, null, null, null, null, null)")
    query = (
        "SELECT count(*) AS rows, count(n) filled, min(id), max(id) AS most, max(d), min(ts), count(s) FROM db.m AS t"
    )
    known, read = spark.sql(query), spark.sql(f"{query} WHERE id IS NOT NULL")
    assert known.collect() == read.collect()
    assert known.schema.simpleString() == read.schema.simpleString()
    assert [f.nullable for f in known.schema] == [f.nullable for f in read.schema]
    assert "FileScan" not in known._jdf.queryExecution().toString()
    for other in (
        "count(DISTINCT id)",
        "min(s)",
        "max(x)",
        "count(*) FILTER (WHERE id > 1)",
        "max(id + 1)",
        "count(*) + 1",
    ):
        assert "FileScan" in spark.sql(f"SELECT {other} FROM db.m")._jdf.queryExecution().toString(), other
    spark.sql("ALTER TABLE db.m SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql("DELETE FROM db.m WHERE id = 3")
    assert spark.sql("SELECT count(*), max(id) FROM db.m").collect() == [(3, 2)]
    assert orders.name
