"""Iceberg schemas as Arrow schemas and back."""

from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema, arrow_type, file_field_id, schema_from_arrow
from bergline.errors import UnsupportedError
from bergline.format.schema.schema import Schema, assign_fresh_ids
from bergline.format.types.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    PRIMITIVES,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)


def ids(type_: Any) -> list[int | None]:
    fields = [type_.field(n) for n in range(type_.num_fields)]
    if pa.types.is_map(type_):
        fields = [type_.key_field, type_.item_field]
    return [i for f in fields for i in (file_field_id(f), *ids(f.type))]


def test_every_level_carries_its_id(every_type: Schema) -> None:
    found = [i for f in arrow_schema(every_type) for i in (file_field_id(f), *ids(f.type))]
    assert found == [field.id for field in every_type.names.values()]


def test_every_primitive_has_an_arrow_type() -> None:
    found = {str(t): str(arrow_type(t)) for t in PRIMITIVES.values()}
    assert found == {
        "boolean": "bool",
        "int": "int32",
        "long": "int64",
        "float": "float",
        "double": "double",
        "date": "date32[day]",
        "time": "time64[us]",
        "timestamp": "timestamp[us]",
        "timestamptz": "timestamp[us, tz=UTC]",
        "string": "string",
        "uuid": "extension<arrow.uuid>",
        "binary": "binary",
        "timestamp_ns": "timestamp[ns]",
        "timestamptz_ns": "timestamp[ns, tz=UTC]",
        "unknown": "null",
        "variant": "struct<metadata: binary not null, value: binary not null>",
    }
    assert arrow_type(GeometryType("OGC:CRS84")) == arrow_type(GeographyType("OGC:CRS84", "karney")) == pa.binary()


def test_required_columns_are_not_nullable() -> None:
    schema = Schema(
        fields=(
            NestedField(1, "a", True, ListType(2, INT, True)),
            NestedField(3, "m", False, MapType(4, INT, 5, INT, True)),
        )
    )
    a, m = arrow_schema(schema)
    assert (a.nullable, a.type.value_field.nullable) == (False, False)
    assert (m.nullable, m.type.key_field.nullable, m.type.item_field.nullable) == (True, False, False)


def test_schema_survives_the_way_to_arrow_and_back(every_type: Schema) -> None:
    back = assign_fresh_ids(schema_from_arrow(arrow_schema(every_type)))
    assert back == assign_fresh_ids(every_type)


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.int8(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), LONG),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.large_binary(), BINARY),
        (pa.binary(5), FixedType(5)),
        (pa.date64(), DATE),
        (pa.time32("s"), TIME),
        (pa.timestamp("s"), TIMESTAMP),
        (pa.timestamp("ms", tz="Europe/Berlin"), TIMESTAMPTZ),
        (pa.timestamp("ns"), TIMESTAMP_NS),
        (pa.timestamp("ns", tz="UTC"), TIMESTAMPTZ_NS),
        (pa.uuid(), UUID),
        (pa.null(), UNKNOWN),
        (pa.decimal128(38, 3), DecimalType(38, 3)),
        (pa.dictionary(pa.int8(), pa.string()), STRING),
        (pa.large_list(pa.field("item", pa.int32(), nullable=False)), ListType(2, INT, True)),
        (pa.struct([("a", pa.int64())]), StructType((NestedField(2, "a", False, LONG),))),
    ],
    ids=str,
)
def test_arrow_types_that_iceberg_holds(arrow: pa.DataType, expected: IcebergType) -> None:
    assert schema_from_arrow(pa.schema([("c", arrow)])).fields[0].type == expected


@pytest.mark.parametrize(
    "arrow",
    [
        pa.uint64(),
        pa.float16(),
        pa.duration("s"),
        pa.decimal256(50, 2),
        pa.month_day_nano_interval(),
        pa.json_(),
    ],
    ids=str,
)
def test_arrow_types_beyond_iceberg_are_not_supported(arrow: pa.DataType) -> None:
    nested = pa.schema([("s", pa.struct([("xs", pa.list_(arrow))]))])
    with pytest.raises(UnsupportedError, match=r"in column `s\.xs\.element`"):
        schema_from_arrow(nested)
