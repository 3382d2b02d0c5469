"""Types and their text."""

import pytest

from bergline.format.encoding.wire import encode_json
from bergline.format.types.types import (
    INT,
    LONG,
    STRING,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
    walk_fields,
)

NESTED = StructType(
    (
        NestedField(1, "id", True, LONG),
        NestedField(2, "tags", False, ListType(3, STRING, True)),
        NestedField(4, "points", False, MapType(5, STRING, 6, StructType((NestedField(7, "x", False, INT),)), False)),
    )
)


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


def test_parameters_are_written_as_java_does() -> None:
    types = [DecimalType(9, 2), FixedType(16), GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "karney")]
    assert list(map(str, types)) == [
        "decimal(9, 2)",
        "fixed[16]",
        "geometry(OGC:CRS84)",
        "geography(OGC:CRS84, karney)",
    ]


def test_reference_systems_are_the_same_in_any_case() -> None:
    assert GeometryType("OGC:CRS84") == GeometryType("ogc:crs84") != GeometryType("EPSG:4326")
    assert len({GeographyType("A", "karney"), GeographyType("a", "karney"), GeographyType("a", "thomas")}) == 2
    assert GeometryType("a") != GeographyType("a", "karney")


def test_types_are_compared_by_value_and_immutable() -> None:
    assert DecimalType(9, 2) == DecimalType(9, 2) != DecimalType(9, 3)
    assert hash(FixedType(3)) == hash(FixedType(3))
    with pytest.raises(AttributeError, match="immutable"):
        DecimalType(9, 2).precision = 3


def test_doc_is_written_only_where_there_is_one() -> None:
    assert encode_json(NestedField(1, "a", True, INT)) == b'{"id":1,"name":"a","required":true,"type":"int"}'
    assert b'"doc":"x"' in encode_json(NestedField(1, "a", True, INT, "x"))
