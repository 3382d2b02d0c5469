"""The plan of a scan as plain data."""

import pickle

import pytest

from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, bind
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField, StructType
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan, columns_to_read

PLACE = StructType((NestedField(4, "city", False, STRING),))
SCHEMA = Schema(
    fields=(
        NestedField(1, "id", False, LONG),
        NestedField(2, "name", False, STRING),
        NestedField(3, "place", False, PLACE),
    )
)


def plan(columns: list[str], text: str | None = None) -> ScanPlan:
    row_filter = bind(parse_predicate(text), SCHEMA) if text else ALWAYS_TRUE
    return ScanPlan(1, SCHEMA, SCHEMA.select(columns), row_filter, ())


@pytest.mark.parametrize(
    ("columns", "text", "expected"),
    [
        (["name"], None, ["name"]),
        (["name"], "id > 1", ["name", "id"]),
        (["name", "id"], "id > 1 OR name = 'x'", ["name", "id"]),
        ([], "place.city = 'x'", ["place"]),
    ],
)
def test_columns_of_the_filter_are_read_after_the_requested_ones(
    columns: list[str], text: str | None, expected: list[str]
) -> None:
    assert [f.name for f in columns_to_read(plan(columns, text)).fields] == expected


def test_position_deletes_are_told_from_equality_deletes() -> None:
    kinds = (FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
    deletes = tuple(DataFile(kind.name, "PARQUET", (), 1, 1, content=kind) for kind in kinds)
    planned = PlannedFile(DataFile("f", "PARQUET", (), 1, 1), 3, deletes)
    assert planned.position_deletes == deletes[:1]


def test_key_column_has_a_name_that_no_column_has() -> None:
    key = KeyColumn(4, ("place", "city"), SCHEMA.find("place"))
    assert key.name not in SCHEMA.names
    assert key.name != KeyColumn(1, ("id",), SCHEMA.find("id")).name


def test_plan_can_be_sent_to_executors() -> None:
    assert pickle.loads(pickle.dumps(plan(["id"], "id = 5"))) == plan(["id"], "id = 5")  # noqa: S301
