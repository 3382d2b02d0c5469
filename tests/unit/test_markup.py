"""HTML for notebooks."""

from xml.etree import ElementTree as ET

from bergline.markup import escaped, html_block, html_table

HOSTILE = """<script>alert("x")</script>'&"""


def test_values_are_escaped_for_text_and_attributes() -> None:
    assert escaped(HOSTILE) == "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#x27;&amp;"


def test_a_long_value_is_cut() -> None:
    assert escaped("x" * 10_000) == "x" * 300 + "…"


def test_a_table_has_every_value_as_text() -> None:
    root = ET.fromstring(html_table([HOSTILE, "b"], [(HOSTILE, None), (1, True)]))  # noqa: S314  (our own)
    assert [th.text for th in root.iter("th")] == [HOSTILE, "b"]
    assert [td.text for td in root.iter("td")] == [HOSTILE, None, "1", "True"]


def test_of_many_rows_the_first_are_shown() -> None:
    root = ET.fromstring(html_table(["n"], [(n,) for n in range(1200)]))  # noqa: S314
    assert [td.text for td in root.iter("td")][-2:] == ["49", "and 1,150 more"]


def test_a_block_has_its_parts_under_its_title() -> None:
    root = ET.fromstring(html_block(HOSTILE, "a & b", "<p>1</p>"))  # noqa: S314
    assert "".join(root.itertext()) == f"{HOSTILE} a & b1"
