"""Variants in Python: rows with them are added, changed and removed like others."""

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, VARIANT, ListType, NestedField

ONE, TWO, TEXT = (
    {"metadata": b"\x01\x00\x00", "value": value} for value in (b"\x0c\x01", b"\x0c\x02", b"\x0dnew")
)  # 1, 2 and "new"


@pytest.fixture
def table(lake: Lake) -> Table:
    fields = (
        NestedField(1, "id", True, LONG),
        NestedField(2, "v", False, VARIANT),
        NestedField(3, "l", False, ListType(4, VARIANT, False)),
    )
    table = lake.create_table("db.t", Schema(fields=fields), properties={"format-version": "3"})
    table.append([{"id": n, "v": ONE if n % 2 else None, "l": [TWO, None]} for n in range(4)])
    return table


def rows(table: Table) -> list[tuple[int, bytes | None]]:
    found = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    return [(row["id"], row["v"] and row["v"]["value"]) for row in found]


def test_rows_with_variants_are_changed(table: Table) -> None:
    one, text = ONE["value"], TEXT["value"]
    assert rows(table) == [(0, None), (1, one), (2, None), (3, one)]
    table.delete("id = 0")
    table.update({"v": None}, "id = 1")
    assert table.upsert([{"id": 3, "v": ONE}, {"id": 4, "v": TEXT}], ["id"]).rows_updated == 0
    assert table.upsert([{"id": 3, "v": TEXT}], ["id"]).rows_updated == 1
    table.overwrite([{"id": 2, "v": TWO, "l": None}], "id = 2")
    assert rows(table) == [(1, None), (2, TWO["value"]), (3, text), (4, text)]
    assert table.scan("v IS NULL").to_arrow().column("id").to_pylist() == [1]
    assert table.scan("id = 3").to_arrow().column("l").to_pylist() == [[TWO, None]]


@pytest.mark.parametrize("condition", ["v = 1", "v IN (1)", "v < 2", "v <> v"])
def test_variants_are_not_compared(table: Table, condition: str) -> None:
    with pytest.raises(InvalidInputError, match="variant"):
        table.update({"id": "9"}, condition)
    assert len(rows(table)) == 4
