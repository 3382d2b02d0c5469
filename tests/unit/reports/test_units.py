"""Ages and durations as people read them."""

import pytest

from bergline.reports.units import render_age, render_duration

DAY = 86_400_000


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (999, "now"),
        (1000, "1 second ago"),
        (59_999, "59 seconds ago"),
        (60_000, "1 minute ago"),
        (87_000, "1 minute ago"),
        (DAY - 1, "23 hours ago"),
        (DAY, "1 day ago"),
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
