"""Binding predicates to a schema."""

from decimal import Decimal
from functools import reduce
from typing import Any

import pytest

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.fold import fold
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    MAX_DEPTH,
    UNKNOWN,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    bind,
    columns_of,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    fields=(
        NestedField(1, "Id", True, LONG),
        NestedField(2, "place", False, StructType((NestedField(3, "city", False, STRING),))),
        NestedField(4, "tags", False, ListType(5, STRING, False)),
        NestedField(6, "scores", False, MapType(7, STRING, 8, INT, False)),
        NestedField(9, "d", False, DOUBLE),
        NestedField(10, "m", False, DecimalType(4, 2)),
        NestedField(11, "i", False, INT),
    )
)
NAN = float("nan")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (ALWAYS_TRUE, ALWAYS_TRUE),
        (Comparison("ID", "<", Decimal("5.0")), Comparison("Id", "<", 5)),
        (IsIn("id", (1, Decimal(2))), IsIn("Id", (1, 2))),
        (IsNull("Place.CITY"), IsNull("place.city")),
        (Not(And(IsNull("id"), IsNull("tags"))), Not(And(IsNull("Id"), IsNull("tags")))),
        (Or(IsNull("scores"), ALWAYS_TRUE), Or(IsNull("scores"), ALWAYS_TRUE)),
        (StartsWith("PLACE.city", "x"), StartsWith("place.city", "x")),
        (IsNan("D"), IsNan("d")),
        (Comparison("id", "=", None), UNKNOWN),
        (IsIn("id", (1, None)), Or(IsIn("Id", (1,)), UNKNOWN)),
        (IsIn("id", (1, 1, Decimal("1.5"))), IsIn("Id", (1,))),
        (IsIn("d", (1, NAN)), Or(IsIn("d", (1.0,)), IsNan("d"))),
        (IsIn("d", (NAN,)), IsNan("d")),
    ],
)
def test_names_and_literals_are_bound(predicate: Predicate, expected: Predicate) -> None:
    assert bind(predicate, SCHEMA) == expected


def test_unknown_column_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="`idd`"):
        bind(Not(IsNull("idd")), SCHEMA)


@pytest.mark.parametrize("column", ["tags.element", "scores.key", "scores.value"])
def test_column_inside_a_list_or_map_is_not_supported(column: str) -> None:
    with pytest.raises(UnsupportedError, match=f"found `{column}`"):
        bind(IsNull(column), SCHEMA)


def test_columns_are_collected_from_all_branches() -> None:
    predicate = Or(And(IsNull("a"), Not(IsIn("b", (1,)))), And(Comparison("c", "=", 1), ALWAYS_TRUE))
    assert columns_of(predicate) == {"a", "b", "c"}


NONE, ANY = IsIn("{}", ()), Not(IsIn("{}", ()))


@pytest.mark.parametrize(
    ("column", "literal", "expected"),
    [
        ("Id", Decimal("1.5"), [NONE, ANY, ("<=", 1), ("<=", 1), (">", 1), (">", 1)]),
        ("Id", Decimal("-1.5"), [NONE, ANY, ("<=", -2), ("<=", -2), (">", -2), (">", -2)]),
        ("i", 3_000_000_000, [NONE, ANY, ("<=", 2**31 - 1), ("<=", 2**31 - 1), (">", 2**31 - 1), (">", 2**31 - 1)]),
        ("i", -(2**40), [NONE, ANY, ("<", -(2**31)), ("<", -(2**31)), (">=", -(2**31)), (">=", -(2**31))]),
        ("m", Decimal("1.234"), [NONE, ANY, *(("<=", Decimal("1.23")),) * 2, *((">", Decimal("1.23")),) * 2]),
        ("m", 10**9, [NONE, ANY, *(("<=", Decimal("99.99")),) * 2, *((">", Decimal("99.99")),) * 2]),
        ("d", NAN, [IsNan("d"), Not(IsNan("d")), Not(IsNan("d")), ANY, NONE, IsNan("d")]),
    ],
)
def test_literal_that_no_value_equals_gives_the_same_answers_with_one_that_is(
    column: str, literal: Any, expected: list[Any]
) -> None:
    for op, wanted in zip(["=", "!=", "<", "<=", ">", ">="], expected, strict=True):
        if isinstance(wanted, tuple):
            predicate: Predicate = Comparison(column, *wanted)
        elif wanted is NONE or wanted is ANY:
            predicate = IsIn(column, ()) if wanted is NONE else Not(IsIn(column, ()))
        else:
            predicate = wanted
        assert bind(Comparison(column, op, literal), SCHEMA) == predicate, op  # type: ignore[arg-type]


@pytest.mark.parametrize("predicate", [StartsWith("id", "1"), IsNan("id"), Comparison("place", "=", 1)])
def test_predicate_that_the_type_does_not_have_is_refused(predicate: Predicate) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        bind(predicate, SCHEMA)


def test_chain_of_many_terms_is_bound_as_a_shallow_tree() -> None:
    terms = [Comparison("id", "!=", n) for n in range(10_000)]
    for kind, balanced in ((And, all_of), (Or, any_of)):
        chain = reduce(kind, terms)
        bound = bind(chain, SCHEMA)
        assert bound == balanced([Comparison("Id", "!=", n) for n in range(10_000)])
        assert depth(bound) == 14
        assert columns_of(chain) == {"id"}


def depth(predicate: Predicate) -> int:
    return fold(
        predicate,
        constant=lambda _: 0,
        leaf=lambda _, __: 0,
        both=lambda left, right: 1 + max(left, right),
        either=lambda left, right: 1 + max(left, right),
    )


def test_deep_nesting_is_refused() -> None:
    deep: Predicate = IsNull("id")
    for n in range(5_000):
        deep = Not(deep) if n % 3 == 0 else And(deep, IsNull("d")) if n % 3 == 1 else Or(IsNull("d"), deep)
    with pytest.raises(UnsupportedError, match=f"at most {MAX_DEPTH} levels"):
        bind(deep, SCHEMA)


def test_nothing_to_join_is_true_for_all_and_false_for_any() -> None:
    assert all_of([]) == ALWAYS_TRUE
    assert any_of([]) == ALWAYS_FALSE


@pytest.mark.parametrize("name", ["_row_id", "_pos", "_file", "_deleted", "_partition", "_partition.region"])
def test_reserved_columns_are_not_filtered_on_yet(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"found `{name}`, which can be selected but not filtered on yet"):
        bind(IsNull(name), Schema((NestedField(1, "a", False, LONG),)))


def test_own_column_of_a_reserved_name_is_a_column() -> None:
    assert bind(IsNull("_pos"), Schema((NestedField(1, "_pos", False, LONG),))) == IsNull("_pos")
