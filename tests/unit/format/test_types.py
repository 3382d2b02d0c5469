"""Types and their text."""

from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.format.types import (
    INT,
    LONG,
    PRIMITIVES,
    STRING,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
    parse_primitive,
    parse_type,
    render_type,
    walk_fields,
)
from bergline.format.wire import encode_json

NESTED = StructType(
    (
        NestedField(1, "id", True, LONG),
        NestedField(2, "tags", False, ListType(3, STRING, True)),
        NestedField(4, "points", False, MapType(5, STRING, 6, StructType((NestedField(7, "x", False, INT),)), False)),
    )
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
    ],
)
def test_parameters_may_hold_spaces(text: str, expected: IcebergType) -> None:
    assert parse_primitive(text) == expected


def test_parameters_are_written_as_java_does() -> None:
    assert (str(DecimalType(9, 2)), str(FixedType(16))) == ("decimal(9, 2)", "fixed[16]")


@pytest.mark.parametrize("text", ["strin", "", "decimal(39, 0)", "decimal(0, 0)", "decimal(2, 3)", "fixed[-1]", "INT"])
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


def test_walk_gives_every_level_its_dotted_name() -> None:
    assert [(name, field.id) for name, field in walk_fields(NESTED.fields)] == [
        ("id", 1),
        ("tags", 2),
        ("tags.element", 3),
        ("points", 4),
        ("points.key", 5),
        ("points.value", 6),
        ("points.value.x", 7),
    ]


def test_map_keys_are_always_required() -> None:
    key, value = child_fields(MapType(1, STRING, 2, INT, False))
    assert (key.required, value.required) == (True, False)


def test_types_are_compared_by_value_and_immutable() -> None:
    assert DecimalType(9, 2) == DecimalType(9, 2) != DecimalType(9, 3)
    assert hash(FixedType(3)) == hash(FixedType(3))
    with pytest.raises(AttributeError, match="immutable"):
        DecimalType(9, 2).precision = 3


def test_doc_is_written_only_where_there_is_one() -> None:
    assert encode_json(NestedField(1, "a", True, INT)) == b'{"id":1,"name":"a","required":true,"type":"int"}'
    assert b'"doc":"x"' in encode_json(NestedField(1, "a", True, INT, "x"))
