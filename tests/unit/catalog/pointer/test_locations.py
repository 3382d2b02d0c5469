"""Locations of new tables and views."""

import pytest

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from support.fixtures.rows import ORDERS


@pytest.mark.parametrize(
    ("name", "directory"),
    [
        ("a/b c", "a%2Fb c"),
        ("50%?#", "50%25%3F%23"),
        ("\u00e9\n", "\u00e9%0A"),
        ("..", "%2E%2E"),
        (".hidden..", ".hidden.."),
        ("a\\b", "a%5Cb"),
    ],
)
def test_default_location_has_one_directory_for_each_name(lake: Lake, name: str, directory: str) -> None:
    inner, outer = TableName(("db",), name), TableName((name,), "t")
    assert lake.catalog.default_location(inner).endswith(f"/warehouse/db/{directory}")
    with bergline.connect("memory:") as other:
        assert other.catalog.default_location(outer) == f"memory://warehouse/{directory}/t"
    lake.create_table(inner, ORDERS)
    assert lake.load_table(inner).location.endswith(f"/db/{directory}")
