"""Annotations that are added to footers, as pyarrow reads them."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.file.annotations import annotated, annotations
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.file.hidden_nulls import fill_hidden_nulls
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    INT,
    STRING,
    VARIANT,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)


def of(*types: IcebergType) -> Schema:
    return Schema(fields=tuple(NestedField(n, f"c{n}", False, type_) for n, type_ in enumerate(types, 1)))


def written(schema: Schema, rows: int = 1) -> bytes:
    stream, columns = io.BytesIO(), arrow_schema(schema)
    arrays = [fill_hidden_nulls(pa.nulls(rows, field.type), field) for field in columns]
    pq.write_table(pa.table(arrays, schema=columns), stream, store_schema=False)
    return stream.getvalue()


def logical_types(data: bytes) -> list[str]:
    lines = str(pq.ParquetFile(io.BytesIO(data)).schema).splitlines()
    return [line.strip(" ;{") for line in lines if "Variant" in line or "Geo" in line]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (VARIANT, "optional group field_id=1 c1 (Variant(1))"),
        (GeometryType("OGC:CRS84"), "optional binary field_id=1 c1 (Geometry(crs=OGC:CRS84))"),
        (GeometryType("x" * 300), f"optional binary field_id=1 c1 (Geometry(crs={'x' * 300}))"),
        (
            GeographyType("OGC:CRS84", "karney"),
            "optional binary field_id=1 c1 (Geography(crs=OGC:CRS84, algorithm=karney))",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_columns_get_their_logical_type(type_: IcebergType, expected: str) -> None:
    schema = of(type_, STRING)
    plain = written(schema)
    found = annotated(plain, annotations(schema))
    assert logical_types(plain) == []
    assert logical_types(found) == [expected]
    assert pq.read_table(io.BytesIO(found)).num_rows == 1
    assert found[: len(plain) // 4] == plain[: len(plain) // 4]


def test_columns_at_every_level_are_found_by_their_ids() -> None:
    inside = StructType((NestedField(40, "v", False, VARIANT), NestedField(41, "n", False, INT)))
    schema = of(INT, inside, ListType(42, VARIANT, False), MapType(43, INT, 44, VARIANT, False), *[INT] * 20, VARIANT)
    found = logical_types(annotated(written(schema), annotations(schema)))
    assert [line.split()[2] for line in found] == ["field_id=40", "field_id=42", "field_id=44", "field_id=25"]


def test_other_schemas_need_no_annotation() -> None:
    schema = of(INT, STRING, StructType((NestedField(9, "x", False, STRING),)))
    assert annotations(schema) == {}
    assert annotated(written(schema), {}) == written(schema)
