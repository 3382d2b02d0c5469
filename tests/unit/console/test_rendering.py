import jinja2
import pytest

from bergline.console.page import Page
from bergline.console.rendering import Frame, Renderer, age, moment, number, size


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
    assert (size(999), size(None)) == ("999 B", "")
    assert (moment(0), moment(None), moment(2**62)) == ("1970-01-01 00:00:00 UTC", "", f"{2**62} ms")
    assert (age(0, 3 * 3_600_000), age(None, 0)) == ("3 hours ago", "")
