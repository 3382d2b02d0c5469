"""What a new table or column may be."""

from typing import Any

import pytest

from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    INT,
    VARIANT,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.table.evolution.definition import TableDefinition

_V3 = {"format-version": "3"}
_NEW = [VARIANT, GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "karney")]


def nested(type_: IcebergType) -> list[tuple[IcebergType, str]]:
    return [
        (type_, "c"),
        (StructType((NestedField(2, "v", False, type_),)), r"c\.v"),
        (ListType(2, type_, False), r"c\.element"),
        (MapType(2, INT, 3, type_, False), r"c\.value"),
    ]


@pytest.mark.parametrize(("type_", "path"), [case for type_ in _NEW for case in nested(type_)], ids=str)
def test_new_types_need_format_version_3(lake: Lake, type_: IcebergType, path: str) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    expected = f"expected types of format version 2, found `.*` in column `{path}`"
    with pytest.raises(InvalidInputError, match=expected) as refused:
        lake.create_table("db.t", schema, properties={"format-version": "2"})
    assert refused.value.hints[0].endswith("needs format version 3")
    assert lake.create_table("db.t", schema, properties=_V3).schema.fields == schema.fields


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"partition_by": ["v"]}, "expected a primitive column for identity, found `variant`"),
        ({"partition_by": ["bucket(4, v)"]}, "expected a column that can be hashed"),
        ({"partition_by": ["truncate(4, v)"]}, "found `variant`"),
    ],
)
def test_no_table_is_partitioned_or_sorted_by_a_variant(lake: Lake, arguments: Any, expected: str) -> None:
    schema = Schema(fields=(NestedField(1, "id", False, INT), NestedField(2, "v", False, VARIANT)))
    with pytest.raises(InvalidInputError, match=expected):
        lake.create_table("db.t", schema, properties=_V3, **arguments)
    table = lake.create_table("db.t", schema, properties=_V3)
    with pytest.raises(InvalidInputError, match="expected a primitive column"):
        table.replace_sort_order(["v"])
    required = Schema(fields=(NestedField(1, "v", True, VARIANT),))
    key = lake.create_table("db.key", required, properties=_V3)
    with (
        pytest.raises(InvalidInputError, match="identifier field that compares exactly"),
        key.update_schema() as update,
    ):
        update.set_identifier_fields(["v"])


def test_table_of_another_writer_keeps_its_variants_and_may_change_otherwise(lake: Lake) -> None:
    schema = Schema(fields=(NestedField(1, "id", False, INT), NestedField(2, "v", False, VARIANT)))
    name, location = TableName(("db",), "theirs"), lake.catalog.default_location(TableName(("db",), "theirs"))
    lake.catalog.create_table(name, TableDefinition(schema, UNPARTITIONED, _V3, None).new_table(location, 1))
    table = lake.load_table("db.theirs")
    with table.update_schema() as update:
        update.add_column("n", INT).rename_column("v", "w")
    assert [(f.name, f.type) for f in table.schema.fields] == [("id", INT), ("w", VARIANT), ("n", INT)]
    assert table.scan(columns=["id"]).to_arrow().num_rows == 0
