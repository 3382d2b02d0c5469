"""The page of properties."""

from bergline import Lake, Table
from bergline.console.pages.properties import properties_page
from support.fixtures.console_pages import HOSTILE, show


def test_properties_are_shown_by_name(lake: Lake, orders: Table) -> None:
    orders.set_properties({"z": "1", "a": HOSTILE})
    shown = show(properties_page, lake, {"name": "db.orders"})
    assert [name for name in shown.values["properties"] if len(name) == 1] == ["a", "z"]
    assert HOSTILE in shown.text
