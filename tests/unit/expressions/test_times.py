"""Dates and times of literals."""

from fractions import Fraction

import pytest

from bergline.expressions.times import parse_day, parse_instant, parse_time_of_day

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970", 0),
        ("1970-1", 0),
        ("1970-1-2", 24 * HOUR),
        (" 1970-01-01 ", 0),
        ("1970-01-01 1", HOUR),
        ("1970-01-01T1:0", HOUR),
        ("1970-01-01 00:00:00.", 0),
        ("1970-01-01 00:00:00.000000001", 1),
        ("1970-01-01 00:00:00.0000000005", Fraction(1, 2)),
        ("1969-12-31 23:59:59.999999999", -1),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1970-01-01 01:30:00 +0130", 0),
        ("1970-01-01 00:00:00-1", HOUR),
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01 00:00:00 utc", 0),
        ("1970-01-01 02:00:00 GMT+2", 0),
    ],
)
def test_moment_keeps_every_digit(text: str, nanoseconds: Fraction) -> None:
    assert parse_instant(text).nanoseconds == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "70", "1970-13-01", "1970-02-30", "1970-01-01 24:00", "1970-01-01 00:60", "1970-01-01 00:00:00+18:01",
     "1970-01-01 00:00:00 Europe/Berlin", "1970-01-01Z", "19700101T00", "1970-01-01 00:00:00+00:60"],
)  # fmt: skip
def test_other_text_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_instant(text)


def test_date_and_time_of_day_stand_alone() -> None:
    assert parse_day("1970-1-2").nanoseconds == 24 * HOUR
    assert parse_time_of_day("1:00:00.000000001").nanoseconds == HOUR + 1
    for parse, text in ((parse_day, "1970-01-01 00:00"), (parse_time_of_day, "1970-01-01"), (parse_time_of_day, "1Z")):
        with pytest.raises(ValueError, match=text):
            parse(text)


def test_literal_is_shown_as_it_reads() -> None:
    assert repr(parse_instant("1970-01-01 00:00:00.000000001")) == "`1970-01-01T00:00:00.000000001`"
    assert repr(parse_time_of_day("1:2:3")) == "`01:02:03`"
