"""Columns as Spark Connect sends them, as predicates of ours; no server is needed to tell."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.connect import functions as F  # noqa: N812

from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
    StructType,
)
from bergline.spark.backends.connect.conditions import exact_part, known_part

WHO = StructType((NestedField(9, "age", False, LONG),))
TYPES = {
    "id": LONG,
    "s": STRING,
    "d": DOUBLE,
    "day": DATE,
    "at": TIMESTAMPTZ,
    "ntz": TIMESTAMP,
    "ok": BOOLEAN,
    "price": DecimalType(9, 2),
    "who": WHO,
}
TABLE = Schema(fields=tuple(NestedField(n, name, False, type_) for n, (name, type_) in enumerate(TYPES.items())))
MOMENT = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
UNKNOWN: list[Any] = [
    F.length("s") == 3,
    F.col("id") + 1 == 3,
    F.col("id") == F.col("price"),
    F.col("id") == "3",
    F.col("id") > 1.5,
    F.col("s") == 3,
    F.col("day") == MOMENT,
    F.col("ntz") == MOMENT,
    F.col("nope") == 3,
    F.col("`who.age`") == 3,
    F.col("price") == Decimal("1.50"),
    F.col("id").isin(1, 2.5),
    F.col("id").cast("string") == "3",
    F.lit(None) == F.length("s"),
]


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        (F.col("id") == 3, "id = 3"),
        (F.col("orders.id") == 3, "id = 3"),
        (F.lit(3) < F.col("id"), "id > 3"),
        (F.col("id") != 3, "NOT (id = 3)"),
        (F.col("who").getField("age") >= 3, "who.age >= 3"),
        (F.col("who.age").isNull(), "who.age IS NULL"),
        (F.isnotnull("s"), "s IS NOT NULL"),
        (F.col("ok") & ~F.col("ok"), "ok AND NOT ok"),
        (F.col("d") > 0.5, "d > 0.5D"),
        (F.col("d") > 5, "d > 5"),
        (F.isnan("d"), "isnan(d)"),
        (F.col("price") == 2, "price = 2"),
        (F.col("s").startswith("a"), "s LIKE 'a%'"),
        (F.col("s").eqNullSafe(None), "s IS NULL"),
        (F.col("s").eqNullSafe("a"), "s <=> 'a'"),
        (F.col("id").isin(1, 2), "id IN (1, 2)"),
        (F.col("day").between(dt.date(2026, 1, 2), "2026-01-03"), "day BETWEEN DATE '2026-01-02' AND '2026-01-03'"),
        (F.col("at") >= MOMENT, "at >= TIMESTAMP '2026-01-02 00:00:00Z'"),
        (F.expr("id = 3 OR s = 'a'"), "id = 3 OR s = 'a'"),
        ("id = 3 AND s IS NULL", "id = 3 AND s IS NULL"),
    ],
)
def test_plain_conditions_keep_their_meaning(condition: Any, meaning: str) -> None:
    expected = bind(parse_predicate(meaning), TABLE)
    found = known_part(condition, TABLE, "orders", None)
    assert found is not None
    assert bind(found, TABLE) == expected
    if "orders" not in str(condition):
        exact = exact_part(condition, TABLE, None)
        assert exact is not None
        assert bind(exact, TABLE) == expected


@pytest.mark.parametrize("condition", UNKNOWN, ids=str)
def test_what_settings_or_casts_decide_is_not_known(condition: Any) -> None:
    assert known_part(condition, TABLE, None, None) is None
    assert exact_part(condition, TABLE, None) is None
    beside = condition & (F.col("id") == 3)
    assert known_part(beside, TABLE, None, None) == parse_predicate("id = 3")
    assert exact_part(beside, TABLE, None) is None
    assert known_part(condition | (F.col("id") == 3), TABLE, None, None) is None


def test_columns_with_dots_in_their_names_are_left_alone() -> None:
    dotted = Schema(fields=(*TABLE.fields, NestedField(20, "a.b", False, LONG)))
    assert known_part(F.col("id") == 3, dotted, None, None) is None
