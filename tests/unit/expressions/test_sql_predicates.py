"""Tests of SQL in our predicates: what they say of null, and of sides that changed places."""

import itertools

import pytest

from bergline.expressions.evaluate import evaluate
from bergline.expressions.predicate import COMPARE, Predicate
from bergline.expressions.sql_predicates import MIRRORED, function_predicate, null_safe_equal

ROW = {"one": 1.0, "nan": float("nan"), "nothing": None}


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (function_predicate("isnull", "nothing"), True),
        (function_predicate("isnull", "nan"), False),
        (function_predicate("isnotnull", "nothing"), False),
        (function_predicate("isnotnull", "nan"), True),
        (function_predicate("isnan", "nan"), True),
        (function_predicate("isnan", "one"), False),
        (function_predicate("isnan", "nothing"), False),
        (null_safe_equal("one", 1.0, is_null=False), True),
        (null_safe_equal("nothing", 1.0, is_null=False), False),
        (null_safe_equal("one", None, is_null=True), False),
        (null_safe_equal("nothing", None, is_null=True), True),
    ],
)
def test_tests_are_never_unknown(predicate: Predicate, expected: bool) -> None:
    assert evaluate(predicate, ROW.__getitem__) is expected


def test_mirrored_comparison_says_the_same_of_the_sides_in_the_other_places() -> None:
    assert MIRRORED.keys() == COMPARE.keys()
    for operator, (left, right) in itertools.product(COMPARE, itertools.product(range(3), repeat=2)):
        assert COMPARE[operator](left, right) == COMPARE[MIRRORED[operator]](right, left)
