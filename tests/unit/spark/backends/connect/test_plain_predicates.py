"""Which conditions of a query's text decide what is read over Spark Connect; no server is needed to tell."""

import pytest

from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import Predicate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, DOUBLE, LONG, STRING, TIMESTAMPTZ, NestedField, StructType
from bergline.spark.backends.connect.conditions import known_filters

WHO = StructType((NestedField(7, "age", False, LONG),))
TABLE = Schema(
    fields=(
        NestedField(1, "id", False, LONG),
        NestedField(2, "s", False, STRING),
        NestedField(3, "d", False, DOUBLE),
        NestedField(4, "day", False, DATE),
        NestedField(5, "at", False, TIMESTAMPTZ),
        NestedField(6, "who", False, WHO),
    )
)


def filters(text: str) -> dict[str, Predicate]:
    return known_filters(text, {"t": TABLE, "u": TABLE})


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        ("id = 3", "id = 3"),
        ("x.id > 3 AND length(s) > 2", "id > 3"),
        ("id = 3 OR s = 'a'", "id = 3 OR s = 'a'"),
        ("NOT (id = 3)", "NOT (id = 3)"),
        ("id BETWEEN 1 AND 2.5", "id >= 1 AND id <= 2.5"),
        ("who.age IS NULL", "who.age IS NULL"),
        ("day >= '2026-01-02'", "day >= '2026-01-02'"),
        ("day >= DATE '2026-01-02'", "day >= DATE '2026-01-02'"),
        ("d > 0.1", "d > 0.1D"),
        ("s LIKE 'a%'", "s LIKE 'a%'"),
    ],
)
def test_conditions_that_mean_the_same_whatever_the_settings_are_known(condition: str, known: str) -> None:
    assert filters(f"SELECT * FROM {{t}} AS x WHERE {condition}") == {"t": parse_predicate(known)}


@pytest.mark.parametrize(
    "condition",
    [
        "length(s) = 3",
        "id = 3 OR length(s) = 3",
        "id = '3'",
        "s = 3",
        "id > 1.5D",
        "id IN (1, 2.5)",
        "ID = 3",
        "outer_column = 3",
        "y.id = 3",
        "id = :x",
        "id = ?",
        "day >= '2026-1-2'",
        "day >= TIMESTAMP '2026-01-02 00:00:00'",
        "at >= '2026-01-02'",
        "at >= TIMESTAMP '2026-01-02 00:00:00'",
        's = "a"',
        r"s = 'a\n'",
    ],
)
def test_conditions_that_settings_or_casts_decide_are_not(condition: str) -> None:
    assert filters(f"SELECT * FROM {{t}} AS x WHERE {condition}") == {}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {t} JOIN {u} ON {t}.id = {u}.id WHERE id = 3",
        "SELECT * FROM {t}, {u} WHERE id = 3",
        "SELECT * FROM {t} TABLESAMPLE (5 ROWS) WHERE id = 3",
        "SELECT * FROM {t} LATERAL VIEW explode(array(1, 2)) AS id WHERE id = 3",
        "SELECT * FROM {t} PIVOT (max(d) FOR s IN ('a')) WHERE id = 3",
        "SELECT * FROM (SELECT * FROM {t} LIMIT 5) WHERE id = 3",
        "SELECT * FROM {t} HAVING id = 3",
    ],
)
def test_conditions_on_more_than_one_table_are_not(text: str) -> None:
    assert filters(text) == {}


def test_each_place_of_a_table_has_its_own_conditions() -> None:
    text = "WITH q AS (SELECT '{{x}}' FROM {t} WHERE id = 1) SELECT * FROM q UNION SELECT s FROM {u} WHERE id = 2"
    assert filters(text) == {"t": parse_predicate("id = 1"), "u": parse_predicate("id = 2")}
    inner = "SELECT * FROM {t} AS a WHERE EXISTS (SELECT 1 FROM {u} AS b WHERE b.id = a.id AND b.id > 5 AND a.d = 1)"
    assert filters(inner) == {"u": parse_predicate("id > 5")}
