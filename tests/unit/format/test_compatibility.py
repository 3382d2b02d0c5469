"""What tables of each format version can hold."""

import pytest

from bergline.errors import InvalidInputError
from bergline.format.compatibility import check_for_version
from bergline.format.schema import Schema
from bergline.format.types import (
    INT,
    PRIMITIVES,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    GeographyType,
    GeometryType,
    IcebergType,
    MapType,
    NestedField,
    StructType,
)

NEW = [
    *(TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT),
    *(GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "spherical")),
]


@pytest.mark.parametrize("type_", [t for t in PRIMITIVES.values() if t not in NEW], ids=str)
def test_older_types_are_for_every_version(type_: IcebergType) -> None:
    check_for_version(Schema((NestedField(1, "c", False, type_),)), 1)


@pytest.mark.parametrize("type_", NEW, ids=str)
def test_newer_types_need_version_3_at_any_depth(type_: IcebergType) -> None:
    inner = StructType((NestedField(4, "x", False, type_),))
    schema = Schema((NestedField(1, "m", False, MapType(2, STRING, 3, inner, False)),))
    check_for_version(schema, 3)
    with pytest.raises(InvalidInputError, match=r"types of format version 2, found .* in column `m\.value\.x`"):
        check_for_version(schema, 2)


def test_initial_defaults_need_version_3() -> None:
    schema = Schema((NestedField(1, "c", True, INT, None, 5, 5),))
    check_for_version(schema, 3)
    check_for_version(Schema((NestedField(1, "c", True, INT, None, None, 5),)), 2)
    with pytest.raises(InvalidInputError, match="expected no default in format version 2, found one for column `c`"):
        check_for_version(schema, 2)


@pytest.mark.parametrize("field_id", [-1, 2147483448, 2147483646])
def test_reserved_ids_are_no_columns(field_id: int) -> None:
    check_for_version(Schema((NestedField(2147483447, "c", False, INT),)), 2)
    with pytest.raises(InvalidInputError, match=f"found {field_id} for `c`"):
        check_for_version(Schema((NestedField(field_id, "c", False, INT),)), 2)
