"""What tables of each format version can hold."""

import pytest

from bergline.errors import InvalidInputError
from bergline.format.partition.compatibility import (
    check_for_version,
    check_order_fits,
    check_partition_names,
    check_spec_fits,
)
from bergline.format.partition.sort_order import SortField, SortOrder
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, VOID, Bucket, TimeTransform, UnknownTransform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    INT,
    PRIMITIVES,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
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


PLACE = StructType((NestedField(4, "city", False, STRING),))
NESTED = Schema(
    (
        NestedField(1, "id", True, INT),
        NestedField(2, "m", False, MapType(5, STRING, 6, INT, False)),
        NestedField(3, "place", False, PLACE),
    )
)


def spec_of(*fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(0, fields)


def test_spec_takes_columns_in_structs_and_void_takes_any() -> None:
    check_spec_fits(spec_of(PartitionField(4, 1000, "city", IDENTITY), PartitionField(99, 1001, "gone", VOID)), NESTED)
    several = PartitionField(field_id=1000, name="z", transform=UnknownTransform("zorder"), source_ids=(1, 4))
    check_spec_fits(spec_of(several), NESTED)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (PartitionField(99, 1000, "x", IDENTITY), "column with id 99 for partition field `x`, found none"),
        (PartitionField(3, 1000, "x", IDENTITY), "primitive column for partition field `x`, found `struct"),
        (PartitionField(6, 1000, "x", IDENTITY), r"outside lists and maps for partition field `x`, found `m\.value`"),
        (PartitionField(4, 1000, "x", TimeTransform("day")), "for `day`, found `string`"),
    ],
)
def test_spec_that_does_not_fit_is_refused(field: PartitionField, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_spec_fits(spec_of(field), NESTED)


def test_partition_names_are_their_own() -> None:
    dropped = PartitionField(99, 1001, "m", VOID)
    check_partition_names(spec_of(PartitionField(1, 1000, "id", Bucket(4)), dropped), NESTED)
    with pytest.raises(InvalidInputError, match="found the column `id`"):
        check_partition_names(spec_of(PartitionField(4, 1000, "id", IDENTITY)), NESTED)
    twice = (PartitionField(1, 1000, "b", Bucket(4)), PartitionField(1, 1001, "b", Bucket(8)))
    with pytest.raises(InvalidInputError, match="a name of its own for each partition field, found `b`"):
        check_partition_names(spec_of(*twice), NESTED)


@pytest.mark.parametrize(("source", "message"), [(99, "column with id 99 for sort order 7"), (3, "primitive column")])
def test_order_that_does_not_fit_is_refused(source: int, message: str) -> None:
    check_order_fits(SortOrder(7, (SortField(6, IDENTITY, "asc", "nulls-first"),)), NESTED)
    with pytest.raises(InvalidInputError, match=message):
        check_order_fits(SortOrder(7, (SortField(source, IDENTITY, "asc", "nulls-first"),)), NESTED)


@pytest.mark.parametrize(
    "type_",
    [
        *(DecimalType(5, -2), DecimalType(3, 5), DecimalType(39, 2), DecimalType(0, 0)),
        *(FixedType(0), FixedType(-1), FixedType(2**31), PrimitiveType("integer")),
        *(GeometryType("a)b"), GeographyType("a", "straight"), None),
    ],
    ids=str,
)
def test_type_that_cannot_be_read_again_is_refused_by_column(type_: IcebergType) -> None:
    inside = ListType(2, StructType((NestedField(3, "x", False, type_),)), False)
    with pytest.raises(InvalidInputError, match=r"type that can be stored, found .* in column `c.element.x`"):
        check_for_version(Schema((NestedField(1, "c", False, inside),)), 3)


def test_struct_may_have_no_fields() -> None:
    check_for_version(Schema((NestedField(1, "c", False, StructType(())),)), 1)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (NestedField(1, 5, False, INT), "the name of a column, found 5"),  # type: ignore[arg-type]
        (NestedField(1, "\ud800", False, INT), "without lone surrogates"),
        (NestedField("x", "c", False, INT), "the id of column `c`, found 'x'"),  # type: ignore[arg-type]
        (NestedField(1, "c", None, INT), "true or false for required, found None in `c`"),  # type: ignore[arg-type]
        (NestedField(1, "c", False, INT, 5), "documentation of column `c`, found 5"),  # type: ignore[arg-type]
    ],
)
def test_field_that_cannot_be_read_again_is_refused(field: NestedField, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_for_version(Schema((field,)), 3)


def test_nesting_has_an_end() -> None:
    type_: IcebergType = INT
    for level in range(100):
        type_ = ListType(level + 2, type_, False)
    check_for_version(Schema((NestedField(1, "c", False, type_),)), 2)
    with pytest.raises(InvalidInputError, match="at most 100 levels of nested types, found more in column `c`"):
        check_for_version(Schema((NestedField(1, "c", False, ListType(200, type_, False)),)), 2)
