"""ISO text of dates and times, in any year."""

import datetime as dt

import pytest

from bergline.errors import InvalidInputError
from bergline.format.encoding.iso import (
    civil_date,
    days_of,
    parse_date,
    parse_time,
    parse_timestamp,
    render_date,
    render_time,
    render_timestamp,
)

MICROS, NANOS = 1_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (17486, "2017-11-16"),
        (11016, "2000-02-29"),
        (2932897, "+10000-01-01"),
        (-719529, "-0001-12-31"),
        (-719528, "0000-01-01"),
        (-(2**31), "-5877641-06-23"),
        (2**31 - 1, "+5881580-07-11"),
    ],
)
def test_date_and_its_text(days: int, text: str) -> None:
    assert (render_date(days), parse_date(text)) == (text, days)


@pytest.mark.parametrize(
    ("text", "micros"), [("22:31", 81_060_000_000), ("22:31:08", 81_068_000_000), ("00:00:00.5", 500_000)]
)
def test_time_may_leave_out_what_is_zero(text: str, micros: int) -> None:
    assert parse_time(text, per_second=MICROS) == micros


def test_digits_after_the_second_are_as_many_as_needed() -> None:
    texts = [render_time(n, per_second=MICROS) for n in (0, 1, 100_000, 81_068_123_456)]
    assert texts == ["00:00:00", "00:00:00.000001", "00:00:00.1", "22:31:08.123456"]


@pytest.mark.parametrize(
    ("value", "per_second", "zone", "text"),
    [
        (-1, NANOS, True, "1969-12-31T23:59:59.999999999+00:00"),
        (1_510_871_468_000_001, MICROS, False, "2017-11-16T22:31:08.000001"),
        (-(2**63), MICROS, False, "-290308-12-21T19:59:05.224192"),
    ],
)
def test_timestamp_and_its_text(value: int, per_second: int, zone: bool, text: str) -> None:
    assert render_timestamp(value, per_second=per_second, zone=zone) == text
    assert parse_timestamp(text, per_second=per_second, zone=zone) == value


def test_z_is_utc() -> None:
    assert parse_timestamp("1970-01-01T00:00:01Z", per_second=MICROS, zone=True) == MICROS


@pytest.mark.parametrize("text", ["", "2017-13-01", "2017-02-29", "17-01-01", "10000-01-01", "+2017-01-01", "x"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        parse_date(text)


@pytest.mark.parametrize("text", ["", "24:00", "10:60", "10:00:60", "10:00:00.0000001", "1:00", "10:00+00:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        parse_time(text, per_second=MICROS)


@pytest.mark.parametrize(
    ("text", "zone"),
    [("2017-11-16T22:31:08", True), ("2017-11-16T22:31:08+00:00", False), ("2017-11-16T22:31:08-08:00", True)],
)
def test_zone_stands_where_the_type_has_one(text: str, zone: bool) -> None:
    with pytest.raises(InvalidInputError, match="expected a timestamp"):
        parse_timestamp(text, per_second=MICROS, zone=zone)


@pytest.mark.parametrize("date", [dt.date(1, 1, 1), dt.date(1600, 2, 29), dt.date(1969, 12, 31), dt.date(1970, 1, 1)])
def test_civil_dates_are_pythons_where_python_has_them(date: dt.date) -> None:
    start = date.toordinal() - dt.date(1970, 1, 1).toordinal()
    for days in range(start, start + 800):
        known = dt.date.fromordinal(days + dt.date(1970, 1, 1).toordinal())
        assert civil_date(days) == (known.year, known.month, known.day)
        assert days_of(known.year, known.month, known.day) == days
