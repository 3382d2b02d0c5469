"""The three-valued answer for one row."""

from typing import Any

import pytest

from bergline.expressions.evaluate import evaluate
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
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
)

ROW = {"a": 5, "nothing": None, "nan": float("nan"), "zero": -0.0, "s": "abc"}


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Comparison("a", "=", 5), True),
        (Comparison("a", "!=", 5), False),
        (Comparison("nothing", "=", 5), None),
        (Not(Comparison("nothing", "=", 5)), None),
        (Comparison("nan", ">", float("inf")), True),
        (Comparison("nan", ">=", 1.0), True),
        (Comparison("nan", "!=", 1.0), True),
        (Comparison("nan", "<", 1.0), False),
        (Comparison("nan", "=", 1.0), False),
        (Comparison("zero", "=", 0.0), True),
        (Comparison("zero", "<", 0.0), False),
        (IsIn("a", (1, 5)), True),
        (IsIn("a", ()), False),
        (IsIn("nothing", ()), None),
        (Not(IsIn("nothing", (1,))), None),
        (IsIn("zero", (0.0,)), True),
        (StartsWith("s", "ab"), True),
        (StartsWith("s", ""), True),
        (StartsWith("s", "abcd"), False),
        (Not(StartsWith("nothing", "a")), None),
        (IsNan("nan"), True),
        (IsNan("zero"), False),
        (Not(IsNan("nothing")), None),
        (IsNull("nothing"), True),
        (Not(IsNull("nothing")), False),
        (And(UNKNOWN, ALWAYS_FALSE), False),
        (And(UNKNOWN, ALWAYS_TRUE), None),
        (Or(UNKNOWN, ALWAYS_TRUE), True),
        (Or(UNKNOWN, ALWAYS_FALSE), None),
        (Not(Or(UNKNOWN, ALWAYS_TRUE)), False),
        (Not(UNKNOWN), None),
    ],
)
def test_result_for_a_row(predicate: Predicate, expected: bool | None) -> None:
    row: dict[str, Any] = ROW
    assert evaluate(predicate, row.__getitem__) is expected
