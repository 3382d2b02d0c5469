"""Update, upsert and merge next to PyIceberg's upsert and the official runtime's statements, on the same rows."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.format.types.types import TIMESTAMP, IcebergType
from support.fixtures.expression_rows import bound, values
from support.fixtures.rows import ORDERS, order_rows
from support.servers.peers import OfficialRuntime

Official = Callable[[str], list[tuple[Any, ...]]]
MODES = ("merge-on-read", "copy-on-write")
SAME_AS_SPARK = [
    *("i - 1", "i + l", "i * 2L", "i / 2", "l DIV 2", "l % 4", "-l", "abs(l)", "f * 2", "f + d", "d % 1", "d / 3"),
    *("m * 2", "m * 1.1", "m + l", "m - i", "m / 3", "m / i", "m % 2", "m DIV 1.25", "m * m * m * m", "m + d", "-m"),
    *("round(m, 1)", "round(d)", "round(m)", "1.5", "1e2", "5L", "1.25D", "3000000000", "99999999999999999999"),
    *("d > 1", "d = d", "d >= CAST('Infinity' AS DOUBLE)", "d < CAST('NaN' AS DOUBLE)", "f > 0.3", "m = 1.250"),
    *("i <=> NULL", "i IN (1, NULL)", "i NOT IN (1, 2)", "i BETWEEN 1 AND l", "b AND i = 1", "b OR i IS NULL"),
    *("s LIKE 'a\\\\_%'", "s LIKE '%n_'", "s NOT LIKE 'a%'", "s > 'a'", "b IS NOT TRUE", "i IS DISTINCT FROM 1"),
    *("CASE WHEN i = 1 THEN 'x' WHEN s IS NULL THEN 'y' END", "CASE i WHEN 1 THEN 10 ELSE 0.5 END", "if(b, 1, 2.5)"),
    *("coalesce(l, i, 0)", "nvl(s, 'n')", "nullif(i, 1)", "greatest(i, l)", "least(m, 0)", "greatest(d, 2)"),
    *("upper(s) || '!'", "concat(s, '-', i, m)", "length(s)", "substring(s, 2)", "substring(s, -2, 1)"),
    *("substring(s, 0, 2)", "substring(s, -9, 8)", "trim('  x ')", "startswith(s, 'a')", "isnan(d)", "isnull(i)"),
    *("CAST(m AS INT)", "CAST(-1.7D AS BIGINT)", "CAST(m AS DECIMAL(5, 1))", "CAST(f AS DECIMAL(5, 2))"),
    *("CAST(' 12 ' AS INT)", "CAST('1.005' AS DECIMAL(5, 2))", "CAST('yes' AS BOOLEAN)", "CAST(b AS INT)"),
    *("CAST(i AS STRING)", "CAST(m AS STRING)", "CAST(b AS STRING)", "CAST(day AS STRING)", "CAST(i AS BOOLEAN)"),
    *("p.x + 1", "p.q.w", "day = '1970-01-02'", "day > DATE '1970-01-01'", "i + NULL", "NULL IS NULL"),
    *("CAST(0.1D AS DECIMAL(20, 18))", "CAST(2.5 AS INT)", "CAST(l AS DOUBLE)", "CAST(i AS DECIMAL(12, 2)) * 3"),
]
ERRORS_AS_IN_SPARK = [
    *("i + 1", "l * 9223372036854775807", "i / 0", "m / 0.0", "l % 0", "d / 0", "CAST(d AS INT)", "CAST(s AS INT)"),
    *("CAST(m AS DECIMAL(2, 2))", "CAST(9.3e18 AS BIGINT)", "CAST(s AS BOOLEAN)", "CAST('x' AS DATE)"),
]
EVALUATE = """
def evaluate(texts):
    '''Type and values of each: all by one query, unless one of them is an error.'''
    columns = ", ".join(f"{text} AS `_{place}`" for place, text in enumerate(texts))
    try:
        frame = spark.sql(f"SELECT n AS `_order`, {columns} FROM expression_rows")
        rows = frame.collect()
    except Exception as error:
        if len(texts) == 1:
            return [("error", type(error).__name__)]
        half = len(texts) // 2
        return evaluate(texts[:half]) + evaluate(texts[half:])
    types = [field.dataType.simpleString() for field in frame.schema.fields[1:]]
    return [(type_, [(row[0], repr(row[place])) for row in rows]) for place, type_ in enumerate(types, 1)]

spark.conf.set("spark.sql.session.timeZone", "UTC")
spark.sql(rows).createOrReplaceTempView("expression_rows")
result = evaluate(texts)
spark.catalog.dropTempView("expression_rows")
"""
SPARK_ROWS = """
SELECT CAST(i AS INT) i, l, CAST(f AS FLOAT) f, d, CAST(m AS DECIMAL(10, 2)) m, s, b, day, p, n FROM VALUES
(1, 7L, 0.5, 1.5D, 1.25, 'a_b', true, DATE '1970-01-01', named_struct('x', 1L, 'q', named_struct('w', 'in')), 0),
(NULL, -7L, NULL, double('NaN'), NULL, NULL, NULL, DATE '1970-01-02', NULL, 1),
(2147483647, NULL, 3.0, NULL, -7.50, 'Ünx', false, NULL, named_struct('x', NULL, 'q', NULL), 2)
AS rows (i, l, f, d, m, s, b, day, p, n)
"""
_SPARK_NAMES = {"long": "bigint", "timestamptz": "timestamp", str(TIMESTAMP): "timestamp_ntz", "unknown": "void"}


def spark_name(type_: IcebergType) -> str:
    return _SPARK_NAMES.get(str(type_), str(type_).replace(", ", ","))


def test_expressions_have_the_types_and_values_of_spark(official_runtime: OfficialRuntime) -> None:
    texts = SAME_AS_SPARK + ERRORS_AS_IN_SPARK
    theirs = official_runtime.python(EVALUATE, texts=texts, rows=SPARK_ROWS)
    different = {}
    for text, (type_, found) in zip(texts, theirs, strict=True):
        expected = [type_, type_ == "error" or [value for _, value in sorted(found)]]
        try:
            ours = [spark_name(bound(text).type), list(map(repr, values(text)))]
        except InvalidInputError:
            ours = ["error", True]
        if ours != expected:
            different[text] = (ours, expected)
    assert different == {}
    assert {text for text, (type_, _) in zip(texts, theirs, strict=True) if type_ == "error"} == set(ERRORS_AS_IN_SPARK)


def source_rows(chosen: random.Random) -> pa.Table:
    numbers = chosen.sample(range(40), 8)
    rows = order_rows(*numbers, region=chosen.choice(["eu", "us"]))
    amounts = [chosen.choice([None, 1.5, n * 10.0]) for n in numbers]
    return rows.set_column(1, ORDERS.field("amount"), pa.array(amounts, pa.float64()))


@pytest.mark.parametrize("partition_by", [[], ["region"]], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("mode", MODES)
def test_upsert_does_what_pyiceberg_does(lake: Lake, pyiceberg: Any, mode: str, partition_by: list[str]) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=partition_by, properties={"write.merge.mode": mode})
    lake.create_table("db.theirs", ORDERS, partition_by=partition_by)
    chosen = random.Random(7)  # noqa: S311
    for first in (0, 10):
        rows = order_rows(*range(first, first + 10))
        ours.append(rows)
        pyiceberg.load_table("db.theirs").append(rows)
    for _ in range(4):
        source = source_rows(chosen)
        expected = pyiceberg.load_table("db.theirs").upsert(source, join_cols=["id"])
        found = ours.upsert(source, keys=["id"])
        assert (found.rows_updated, found.rows_inserted) == (expected.rows_updated, expected.rows_inserted)
        mine, theirs = (
            pyiceberg.load_table(name).scan().to_arrow().sort_by("id").to_pylist() for name in ("db.ours", "db.theirs")
        )
        assert mine == theirs == ours.scan().to_arrow().sort_by("id").to_pylist()
    twice = pa.concat_tables([order_rows(1), order_rows(1)])
    with pytest.raises(ValueError, match="Duplicate rows"):
        pyiceberg.load_table("db.theirs").upsert(twice, join_cols=["id"])
    with pytest.raises(InvalidInputError, match="once in the source"):
        ours.upsert(twice, keys=["id"])


def change(table: Table) -> None:
    table.update({"amount": "amount * 2 + id", "region": "upper(region)"}, where="id % 3 = 0")
    source = [{"id": i, "amount": float(i), "op": "D" if i % 2 else "U"} for i in (2, 5, 6, 50, 51)]
    (
        table.merge(source, on="target.id = source.id")
        .when_matched_delete("op = 'D'")
        .when_matched_update({"amount": "source.amount / 4"})
        .when_not_matched_insert({"id": "id", "amount": "amount", "region": "'new'"}, "id > 50")
        .when_not_matched_by_source_update({"region": "NULL"}, "amount > 60 AND region = 'eu'")
        .execute()
    )


STATEMENTS = (
    "UPDATE {t} SET amount = amount * 2 + id, region = upper(region) WHERE id % 3 = 0",
    """MERGE INTO {t} AS target USING (SELECT * FROM VALUES (2L, 2.0D, 'U'), (5L, 5.0D, 'D'), (6L, 6.0D, 'U'),
       (50L, 50.0D, 'U'), (51L, 51.0D, 'D') AS source (id, amount, op)) AS source ON target.id = source.id
       WHEN MATCHED AND op = 'D' THEN DELETE WHEN MATCHED THEN UPDATE SET amount = source.amount / 4
       WHEN NOT MATCHED AND id > 50 THEN INSERT (id, amount, region) VALUES (id, amount, 'new')
       WHEN NOT MATCHED BY SOURCE AND amount > 60 AND region = 'eu' THEN UPDATE SET region = NULL""",
)


@pytest.mark.kinds(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["2", "3"])
def test_the_official_runtime_does_the_same_and_reads_ours(
    lake: Lake, official: Official, version: str, mode: str
) -> None:
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    for name in ("ours", "theirs"):
        table = lake.create_table(
            f"db.{name}", ORDERS, partition_by=["region"], properties={"format-version": version} | modes
        )
        table.append(order_rows(*range(6))).append(order_rows(*range(6, 12), region="us"))
    change(lake.load_table("db.ours"))
    for statement in STATEMENTS:
        official(statement.format(t="db.theirs"))
    lineage = ", _row_id" if version == "3" else ""
    for columns in ("id, amount, region", "id" + lineage):
        rows = {
            name: sorted(official(f"SELECT {columns} FROM db.{name} WHERE id < 50"), key=str)
            for name in ("ours", "theirs")
        }
        assert rows["ours"] == rows["theirs"]
    inserted = sorted(official("SELECT id, amount, region FROM db.ours WHERE id >= 50"))
    assert inserted == [(51, 51.0, "new")]
    for name in ("ours", "theirs"):
        found = lake.load_table(f"db.{name}").scan().to_arrow().sort_by("id").to_pylist()
        assert [tuple(row.values()) for row in found] == sorted(official(f"SELECT * FROM db.{name}"))
