import jinja2
import pytest

from bergline.console.page import Page
from bergline.console.web.rendering import Frame, Renderer, age, moment, number, size


def test_values_are_escaped_and_missing_ones_are_errors() -> None:
    renderer = Renderer()
    text = renderer.html(Page("<b>", "error.html", {"message": "<i>", "hints": ["\"'&"]}), Frame("<lake>"))
    assert "<b>" not in text.replace("<bdi>", "")
    assert "&lt;i&gt;" in text
    assert "&lt;lake&gt;" in text
    with pytest.raises(jinja2.UndefinedError):
        renderer.html(Page("", "error.html", {}), Frame(""))


def test_numbers_sizes_and_times_for_people() -> None:
    assert (number(1_234_567), number(None)) == ("1,234,567", "")
    assert (size(999), size(None)) == ("999 bytes", "")
    assert (moment(0), moment(None), moment(2**62)) == ("1970-01-01 00:00:00 UTC", "", f"{2**62} ms")
    day = 86_400_000
    ages = [age(-t, 0) for t in (0, 61_000, 2 * 3_600_000, day, 45 * day, 800 * day)]
    assert ages == ["just now", "1 minute ago", "2 hours ago", "1 day ago", "1 month ago", "2 years ago"]
    assert age(5000, 0) == "in the future"
