"""When names in files are the schema's for certain."""

import re

import msgspec
import pytest
from rows import ORDERS

from bergline.format.metadata import TableMetadata
from bergline.format.new_table import new_metadata
from bergline.format.partition import UNPARTITIONED
from bergline.format.schema import Schema
from bergline.format.types import INT, LONG, NestedField, StructType
from bergline.parquet.arrow_schema import schema_from_arrow
from bergline.scan.evolution import why_not_by_name

A, B = NestedField(1, "a", False, INT), NestedField(2, "b", False, INT)


def table(*schemas: tuple[NestedField, ...], properties: dict[str, str] | None = None, first: int = 0) -> TableMetadata:
    empty = new_metadata(
        schema=schema_from_arrow(ORDERS),
        spec=UNPARTITIONED,
        location="memory://t",
        properties=properties or {},
        table_uuid="u",
        now_ms=0,
    )
    history = tuple(Schema(fields=f, schema_id=i) for i, f in enumerate(schemas, first))
    return msgspec.structs.replace(empty, schemas=history)


def struct(*fields: NestedField) -> NestedField:
    return NestedField(9, "s", False, StructType(fields))


@pytest.mark.parametrize(
    "schemas", [((A, B),), ((A,), (A, B)), ((A, B), (A,)), ((A, B), (B, A)), ((struct(A),), (struct(A, B),))]
)
def test_added_dropped_and_moved_columns_keep_their_names(schemas: tuple[tuple[NestedField, ...], ...]) -> None:
    assert why_not_by_name(table(*schemas)) is None


@pytest.mark.parametrize(
    ("schemas", "reason"),
    [
        (((A,), (NestedField(1, "z", False, INT),)), "column `z` was renamed"),
        (((A,), (NestedField(1, "a", False, LONG),)), "column `a` was renamed or has changed its type"),
        (((A,), (NestedField(2, "a", False, INT),)), "column `a` replaced another"),
        (((A,), (NestedField(2, "A", False, INT),)), "column `A` replaced another"),
        (((struct(A),), (struct(NestedField(1, "z", False, INT)),)), r"column `s\.z` was renamed"),
    ],
)
def test_renamed_retyped_and_replaced_columns_need_ids(
    schemas: tuple[tuple[NestedField, ...], ...], reason: str
) -> None:
    assert re.search(reason, why_not_by_name(table(*schemas)) or "")


def test_forgotten_schemas_and_name_mappings_need_ids() -> None:
    assert "no longer known" in (why_not_by_name(table((A,), first=1)) or "")
    assert "name mapping" in (why_not_by_name(table((A,), properties={"schema.name-mapping.default": "[]"})) or "")
