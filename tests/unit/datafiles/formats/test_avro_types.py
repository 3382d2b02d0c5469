"""Avro schemas as physical schemas with field ids."""

import json
from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import file_field_id
from bergline.datafiles.formats.avro_types import parse_avro_schema
from bergline.errors import FormatError


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def columns(schema: Any) -> list[pa.Field]:
    return list(parse_avro_schema(json.dumps(schema).encode()).physical)


def test_ids_and_logical_types_are_found_at_every_level() -> None:
    pairs = record(
        {"name": "key", "type": "int", "field-id": 5}, {"name": "value", "type": "string", "field-id": 6}, name="k"
    )
    (a, b, c, d) = columns(
        record(
            {"name": "a_x20b", "iceberg-field-name": "a b", "type": ["null", "int"], "field-id": 1},
            {
                "name": "l",
                "type": {"type": "array", "element-id": 3, "items": ["null", {"type": "int", "logicalType": "date"}]},
                "field-id": 2,
            },
            {"name": "m", "type": {"type": "array", "logicalType": "map", "items": pairs}, "field-id": 4},
            {
                "name": "n",
                "type": ["null", {"type": "map", "values": "double", "key-id": 8, "value-id": 9}],
                "field-id": 7,
            },
        )
    )
    assert (a.name, a.type, a.nullable, file_field_id(a)) == ("a b", pa.int32(), True, 1)
    assert (b.type, file_field_id(b), file_field_id(b.type.value_field)) == (
        pa.list_(pa.field("element", pa.date32())),
        2,
        3,
    )
    assert [file_field_id(f) for f in (c, c.type.key_field, c.type.item_field)] == [4, 5, 6]
    assert (d.type, d.nullable) == (pa.map_(pa.string(), pa.field("value", pa.float64(), nullable=False)), True)
    assert [file_field_id(f) for f in (d, d.type.key_field, d.type.item_field)] == [7, 8, 9]


def test_named_types_are_resolved_in_their_namespace() -> None:
    fixed = {
        "type": "fixed",
        "name": "f",
        "namespace": "x.y",
        "size": 4,
        "logicalType": "decimal",
        "precision": 9,
        "scale": 2,
    }
    fields = columns(record({"name": "a", "type": fixed}, {"name": "b", "type": "x.y.f"}))
    assert [f.type for f in fields] == [pa.decimal128(9, 2)] * 2


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ("long", "expected an Avro record, found long"),
        (record({"name": "a", "type": ["int", "string"]}), "unions of null and one type"),
        (record({"name": "a", "type": "other"}), "found other"),
        (record({"name": "a", "type": {"type": "array", "items": "null"}}), "items without bytes"),
        (record({"name": "a", "type": {"type": "map", "values": "null"}}), "values without bytes"),
        (record({"name": "a", "type": {"type": "array", "logicalType": "map", "items": "int"}}), "Avro schema"),
        (record({"name": "a", "type": ["null", "r"]}), "levels"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "each column name once"),
        (record({"name": "a", "type": {"type": "fixed", "name": "f", "size": 0}}), "size of an Avro fixed type"),
        (record({"type": "int"}), "expected an Avro schema"),
    ],
)
def test_what_iceberg_does_not_allow_is_a_format_error(schema: Any, found: str) -> None:
    with pytest.raises(FormatError, match=found):
        parse_avro_schema(json.dumps(schema).encode())
