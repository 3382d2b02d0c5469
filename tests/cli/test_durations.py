"""Durations and times as people type and read them."""

import pytest

from bergline.arguments import parse_duration
from bergline.cli.durations import parse_time_ms, render_time
from bergline.errors import InvalidInputError


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("12h", 43_200), ("90d", 7_776_000), ("0m", 0)])
def test_durations_are_read_in_minutes_hours_and_days(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "d", "1w", "-1d", "1.5h", "1 d", "1234567d", "\uff11d"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a duration like 90d, 12h or 30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1m", 1_799_999_940_000), ("999999d", 0), ("2026-01-31T12:00Z", 1_769_860_800_000), ("1970-01-01", 0)],
)
def test_times_and_ages_are_read(text: str, milliseconds: int) -> None:
    assert parse_time_ms(text, 1_800_000_000_000) == milliseconds


@pytest.mark.parametrize("text", ["", "soon", "7days", "7", "99999-01-01", "2026-02-30", "0001-01-01T00:00+12:00"])
def test_other_times_are_refused_with_what_is_right(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a time like 2026-01-31T12:00Z or an age like 7d, 12h or"):
        parse_time_ms(text, 1_800_000_000_000)


def test_times_are_shown_in_utc_to_the_second() -> None:
    assert render_time(1_800_000_000_999) == "2027-01-15T08:00:00+00:00"
    assert render_time(None) is None
