"""The Avro schemas of manifests and manifest lists, with the field ids of the specification."""

import re
from typing import Any

from bergline.errors import UnsupportedError
from bergline.format.types.single_values import signed_bytes
from bergline.format.types.types import (
    UNKNOWN,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    PrimitiveType,
    StructType,
)

AvroSchema = dict[str, Any]

_PRIMITIVES: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "string": "string",
    "binary": "bytes",
    "unknown": "null",
}
_NAME_START = re.compile(r"[A-Za-z_]")
_NAME_PART = re.compile(r"[A-Za-z0-9_]")


def manifest_schema(partition: StructType, format_version: int = 2) -> AvroSchema:
    """The Avro schema of a manifest with this partition struct."""
    numbers = [_optional(3, "sequence_number", "long"), _optional(4, "file_sequence_number", "long")]
    snapshot_id = _field(1, "snapshot_id", "long") if format_version == 1 else _optional(1, "snapshot_id", "long")
    return _record(
        "manifest_entry",
        [
            _field(0, "status", "int"),
            snapshot_id,
            *([] if format_version == 1 else numbers),
            _field(2, "data_file", _record("r2", _data_file(partition, format_version))),
        ],
    )


def manifest_list_schema(format_version: int = 2) -> AvroSchema:
    """The Avro schema of a manifest list."""
    first = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
    ]
    if format_version == 1:
        counts = [_optional(i, name, kind) for i, name, kind in _LIST_COUNTS]
        fields = [_field(503, "added_snapshot_id", "long"), *counts[:3], _PARTITIONS, *counts[3:], _LIST_KEY]
        return _record("manifest_file", [*first, *fields])
    fields = [
        *first,
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long"),
        *(_field(i, name, kind) for i, name, kind in _LIST_COUNTS),
        _PARTITIONS,
        _LIST_KEY,
    ]
    row_id = [_optional(520, "first_row_id", "long")] if format_version >= 3 else []  # noqa: PLR2004
    return _record("manifest_file", [*fields, *row_id])


def _data_file(partition: StructType, format_version: int) -> list[AvroSchema]:
    own = {
        1: (
            [],
            [_field(105, "block_size_in_bytes", "long")],
            [_optional(140, "sort_order_id", "int")],
        ),
        2: (
            [_field(134, "content", "int")],
            [],
            [_EQUALITY_IDS, _optional(140, "sort_order_id", "int"), _optional(143, "referenced_data_file", "string")],
        ),
        3: (
            [_field(134, "content", "int")],
            [],
            [
                _EQUALITY_IDS,
                _optional(140, "sort_order_id", "int"),
                _optional(142, "first_row_id", "long"),
                _optional(143, "referenced_data_file", "string"),
                _optional(144, "content_offset", "long"),
                _optional(145, "content_size_in_bytes", "long"),
            ],
        ),
    }
    content, block_size, last = own[format_version]
    return [
        *content,
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", _record("r102", [_partition_field(f) for f in partition.fields])),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        *block_size,
        _optional(108, "column_sizes", _int_map(117, 118, "long")),
        _optional(109, "value_counts", _int_map(119, 120, "long")),
        _optional(110, "null_value_counts", _int_map(121, 122, "long")),
        _optional(137, "nan_value_counts", _int_map(138, 139, "long")),
        _optional(125, "lower_bounds", _int_map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _int_map(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
        *last,
    ]


def _field(field_id: int, name: str, type_: Any) -> AvroSchema:
    return {"name": name, "type": type_, "field-id": field_id}


def _optional(field_id: int, name: str, type_: Any) -> AvroSchema:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": field_id}


def _record(name: str, fields: list[AvroSchema]) -> AvroSchema:
    return {"type": "record", "name": name, "fields": fields}


def _int_map(key_id: int, value_id: int, value: str) -> AvroSchema:
    entry = _record(f"k{key_id}_v{value_id}", [_field(key_id, "key", "int"), _field(value_id, "value", value)])
    return {"type": "array", "logicalType": "map", "items": entry}


def _partition_field(field: NestedField) -> AvroSchema:
    name = avro_name(field.name)
    avro = _optional(field.id, name, avro_type(field.type, field.id))
    if field.type == UNKNOWN:
        avro["type"] = "null"
    return avro if name == field.name else avro | {"iceberg-field-name": field.name}


def avro_type(type_: IcebergType, field_id: int) -> Any:
    """The Avro type of a primitive type; `fixed` types are named after their field."""
    match type_:
        case PrimitiveType("uuid"):
            return {"type": "fixed", "name": f"uuid_{field_id}", "size": 16, "logicalType": "uuid"}
        case PrimitiveType(name) if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        case FixedType(length):
            return {"type": "fixed", "name": f"fixed_{field_id}", "size": length}
        case DecimalType(precision, scale):
            return {
                "type": "fixed",
                "name": f"decimal_{field_id}",
                "size": len(signed_bytes(10**precision - 1)),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
    raise UnsupportedError(f"expected a primitive partition type, found `{type_}`")


def avro_name(name: str) -> str:
    """A valid Avro name: other characters become `_x` and their hexadecimal code, a leading digit gets a `_`."""
    digit = name[0].isascii() and name[0].isdigit()
    first = name[0] if _NAME_START.fullmatch(name[0]) else f"_{name[0]}" if digit else _escape(name[0])
    return first + "".join(c if _NAME_PART.fullmatch(c) else _escape(c) for c in name[1:])


def _escape(char: str) -> str:
    return f"_x{ord(char):X}"


_EQUALITY_IDS = _optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136})
_LIST_COUNTS = (
    (504, "added_files_count", "int"),
    (505, "existing_files_count", "int"),
    (506, "deleted_files_count", "int"),
    (512, "added_rows_count", "long"),
    (513, "existing_rows_count", "long"),
    (514, "deleted_rows_count", "long"),
)
_LIST_KEY = _optional(519, "key_metadata", "bytes")
_PARTITIONS = _optional(
    507,
    "partitions",
    {
        "type": "array",
        "element-id": 508,
        "items": _record(
            "r508",
            [
                _field(509, "contains_null", "boolean"),
                _optional(518, "contains_nan", "boolean"),
                _optional(510, "lower_bound", "bytes"),
                _optional(511, "upper_bound", "bytes"),
            ],
        ),
    },
)
