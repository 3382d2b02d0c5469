"""Sizes, ages and durations as people read them."""

import pytest

from bergline.reports.units import render_age, render_duration, render_size

DAY = 86_400_000


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1024**2 - 1, "1.00 MiB"),
        (1536 * 1024, "1.50 MiB"),
        (10 * 1024**3, "10.0 GiB"),
        (999 * 1024**4, "999 TiB"),
        (5000 * 1024**6, "5000 EiB"),
    ],
)
def test_size_has_three_digits_and_a_binary_unit(size: int, text: str) -> None:
    assert render_size(size) == text


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (999, "now"),
        (1000, "1 second ago"),
        (89_999, "89 seconds ago"),
        (90_000, "1 minute ago"),
        (2 * 3_600_000, "2 hours ago"),
        (3 * DAY, "3 days ago"),
        (15 * DAY, "2 weeks ago"),
        (100 * DAY, "3 months ago"),
        (1000 * DAY, "2 years ago"),
        (-2 * DAY, "in 2 days"),
    ],
)
def test_age_is_told_in_one_unit(age: int, text: str) -> None:
    now = 1_800_000_000_000
    assert render_age(now - age, now) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(7 * DAY, "7 days"), (36 * 3_600_000, "36 hours"), (60_000, "1 minute"), (1500, "1500 ms"), (0, "0 ms")],
)
def test_duration_is_exact(milliseconds: int, text: str) -> None:
    assert render_duration(milliseconds) == text
