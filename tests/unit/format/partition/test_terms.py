"""Terms of partition specs and sort orders."""

import time

import pytest

from bergline.errors import InvalidInputError
from bergline.format.partition.terms import parse_term
from bergline.format.partition.transforms import IDENTITY, Bucket, TimeTransform, Transform, Truncate


@pytest.mark.parametrize(
    ("text", "transform", "column"),
    [
        ("region", IDENTITY, "region"),
        (" `order id` ", IDENTITY, "order id"),
        ("identity(a.b)", IDENTITY, "a.b"),
        ("days(ts)", TimeTransform("day"), "ts"),
        ("Hour ( ts )", TimeTransform("hour"), "ts"),
        ("bucket(16, id)", Bucket(16), "id"),
        ("bucket(id,16)", Bucket(16), "id"),
        ("truncate(4, `na me`)", Truncate(4), "na me"),
        ("`a``b`", IDENTITY, "a`b"),
        ("`day(ts)`", IDENTITY, "day(ts)"),
        ("bucket(16, `a``,(b)`)", Bucket(16), "a`,(b)"),
    ],
)
def test_term_is_a_transform_and_a_column(text: str, transform: Transform, column: str) -> None:
    assert parse_term(text) == (transform, column)


@pytest.mark.parametrize(
    "text",
    [
        *("", "()", "day()", "day(ts", "day ts)", "bucket(id)", "bucket(2, 3)", "bucket(1, 2, id)", "day(ts, 3)"),
        *("a,b", "zorder(a)", "void(a)", "``", "a`b", "bucket(x, y)", "`a`b`", "day(`a`b`)", "day(`a)"),
    ],
)
def test_what_is_no_term_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        parse_term(text)


def test_long_text_is_refused_at_once() -> None:
    started = time.thread_time()
    with pytest.raises(InvalidInputError):
        parse_term("bucket(" + " " * 1_000_000)
    assert time.thread_time() - started < 1
