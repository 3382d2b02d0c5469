"""Errors as values."""

from bergline.errors import NotFoundError
from bergline.reports.problem import Problem, attempt


def fail() -> int:
    raise NotFoundError("no file `x`", kind="file", name="x", hints=["look elsewhere"])


def test_a_failed_read_is_one_problem_more() -> None:
    problems: list[Problem] = []
    assert attempt(problems, "the files", fail) is None
    assert attempt(problems, "a number", lambda: 7) == 7
    assert problems == [Problem("the files", "no file `x`", "not-found", ("look elsewhere",))]
    assert str(problems[0]) == "cannot show the files: no file `x`"
