"""Types and their JSON."""

from typing import Any

import pytest

from bergline.errors import FormatError, InvalidInputError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.types.types import (
    INT,
    PRIMITIVES,
    STRING,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    parse_primitive,
    parse_type,
    render_type,
)


@pytest.mark.parametrize("name", list(PRIMITIVES))
def test_primitive_is_known_by_its_name(name: str) -> None:
    assert str(parse_primitive(name)) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decimal(9,2)", DecimalType(9, 2)),
        ("decimal( 38 , 38 )", DecimalType(38, 38)),
        ("fixed[16]", FixedType(16)),
        ("fixed[ 3 ]", FixedType(3)),
        ("fixed[2147483647]", FixedType(2**31 - 1)),
        ("geometry", GeometryType("OGC:CRS84")),
        ("geometry( srid:4326 )", GeometryType("srid:4326")),
        ("Geometry (srid:4326)", GeometryType("srid:4326")),
        ("geography", GeographyType("OGC:CRS84", "spherical")),
        ("geography(srid:4326)", GeographyType("srid:4326", "spherical")),
        ("geography( srid:4326 , Karney )", GeographyType("srid:4326", "karney")),
        ("INT", INT),
        ("Decimal(9, 2)", DecimalType(9, 2)),
    ],
)
def test_case_and_spaces_around_parameters_do_not_count(text: str, expected: IcebergType) -> None:
    assert parse_primitive(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("strin", "", " int", "decimal(39, 0)", "decimal(0, 0)", "decimal(2, 3)", "decimal(٣,1)", "decimal(9)"),
        *("fixed[-1]", "fixed[2147483648]", "fixed[]", "geometry()", "geometry(a", "geography(,karney)"),
        *("geography(a, flat)", "geography(a,)", "geometry(" + " " * 100_000, f"decimal({'9' * 5000},1)"),
    ],
)
def test_unknown_type_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="found"):
        parse_primitive(text)


def test_nested_type_survives_its_json() -> None:
    rendered = render_type(MapType(1, STRING, 2, ListType(3, DecimalType(5, 1), False), True))
    assert rendered == {
        "type": "map",
        "key-id": 1,
        "key": "string",
        "value-id": 2,
        "value": {"type": "list", "element-id": 3, "element": "decimal(5, 1)", "element-required": False},
        "value-required": True,
    }
    assert parse_type(rendered) == MapType(1, STRING, 2, ListType(3, DecimalType(5, 1), False), True)


@pytest.mark.parametrize(
    "wire",
    [
        5,
        None,
        [],
        {},
        {"type": "list", "element-id": "1", "element": "int", "element-required": True},
        {"type": "list", "element-id": 1, "element": "int"},
        {"type": "map", "key-id": 1, "key": "int"},
        {"type": "struct"},
        {"type": "struct", "fields": [{"id": "1", "name": "a", "required": True, "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]},
        {"type": "struct", "fields": [{"id": 2**31, "name": "a", "required": True, "type": "int"}]},
        {"type": "struct", "fields": [5]},
        {"type": "list", "element-id": 1, "element": "nope", "element-required": True},
    ],
)
def test_malformed_nested_type_is_refused(wire: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"expected|object missing required field .* at `fields\[0\]`"):
        parse_type(wire)


def test_malformed_struct_names_the_field() -> None:
    wire = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "a", "required": True, "type": "int"},
            {"id": "2", "name": "b", "required": True, "type": "int"},
        ],
    }
    with pytest.raises(InvalidInputError, match=r"expected `int`, found `str` at `fields\[1\]\.id`"):
        parse_type(wire)


def test_malformed_type_deep_inside_names_every_level() -> None:
    wire: Any = "nope"
    for name in ("a", "b"):
        wire = {"type": "struct", "fields": [{"id": 1, "name": name, "required": True, "type": wire}]}
    with pytest.raises(InvalidInputError, match=r"found `nope` at `fields\[0\]\.type\.fields\[0\]\.type`"):
        parse_type(wire)


@pytest.mark.parametrize("levels", [101, 300, 100_000])
def test_types_nested_without_end_are_refused(levels: int) -> None:
    level = b'{"type":"list","element-id":1,"element-required":true,"element":'
    with pytest.raises(FormatError, match=r"at most 100 levels|recursion"):
        decode_json(level * levels + b'"int"' + b"}" * levels, IcebergType, "x")


def test_a_hundred_levels_are_read_compared_and_written() -> None:
    wire: Any = "int"
    for level in range(100):
        field = {"id": level, "name": "a", "required": True, "type": wire}
        wire = {"type": "struct", "fields": [field]}
    assert parse_type(wire) == parse_type(wire)
    assert encode_json(parse_type(wire)).count(b"struct") == 100
