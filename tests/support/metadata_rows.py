"""Metadata tables of both sides in one form: Spark's JSON for types, plain JSON for rows, in an order of their own."""

import datetime as dt
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from peers import OfficialRuntime

from bergline import Table

Answer = tuple[list[dict[str, Any]], list[str]]
"""Columns and rows."""

_ASK = """
import json

def plain(value, kind):
    name = kind.typeName()
    if value is None:
        return None
    if name == "struct":
        return {f.name: plain(value[i], f.dataType) for i, f in enumerate(kind.fields)}
    if name == "array":
        return [plain(v, kind.elementType) for v in value]
    if name == "map":
        return sorted([plain(k, kind.keyType), plain(v, kind.valueType)] for k, v in value.items())
    if name == "binary":
        return bytes(value).hex()
    if name == "timestamp":
        return kind.toInternal(value)
    if name in ("timestamp_ntz", "date"):
        return value.isoformat()
    return str(value) if name == "decimal" else repr(value) if name in ("float", "double") else value

result = {}
for name in names:
    frame = spark.sql(f"SELECT * FROM {table}.{name} {version}")
    result[name] = [json.loads(frame.schema.json()), [plain(row, frame.schema) for row in frame.collect()]]
"""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAMES = {
    pa.bool_(): "boolean",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.uuid(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.null(): "void",
}


def official_tables(runtime: OfficialRuntime, table: str, names: Iterable[str], version: str = "") -> dict[str, Answer]:
    """What the official runtime says."""
    found = runtime.python(_ASK, names=list(names), table=table, version=version)
    return {name: (_without_comments(schema)["fields"], _ordered(rows)) for name, (schema, rows) in found.items()}


def our_tables(table: Table, names: Iterable[str], **version: Any) -> dict[str, Answer]:
    """What bergline says."""
    return {name: _answer(table.inspect(name, **version)) for name in names}


def _answer(rows: pa.Table) -> Answer:
    rows.validate(full=True)
    whole = pa.struct(list(rows.schema))
    return _type(whole)["fields"], _ordered([_plain(row, whole) for row in rows.to_pylist()])


def _ordered(rows: list[Any]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def _without_comments(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_comments(value) for key, value in schema.items() if key != "metadata"}
    return [_without_comments(item) for item in schema] if isinstance(schema, list) else schema


def _type(type_: pa.DataType) -> Any:
    if pa.types.is_struct(type_):
        fields = [{"name": f.name, "nullable": f.nullable, "type": _type(f.type)} for f in type_]
        return {"type": "struct", "fields": fields}
    if pa.types.is_list(type_):
        element = type_.value_field
        return {"type": "array", "elementType": _type(element.type), "containsNull": element.nullable}
    if pa.types.is_map(type_):
        inside = {"keyType": _type(type_.key_type), "valueType": _type(type_.item_type)}
        return {"type": "map", **inside, "valueContainsNull": type_.item_field.nullable}
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return "binary" if pa.types.is_fixed_size_binary(type_) else _NAMES[type_]


def _plain(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {f.name: _plain(value[f.name], f.type) for f in type_}
    if pa.types.is_list(type_):
        return [_plain(v, type_.value_type) for v in value]
    if pa.types.is_map(type_):
        return sorted([_plain(k, type_.key_type), _plain(v, type_.item_type)] for k, v in value)
    if isinstance(value, bytes):
        return value.hex()
    if pa.types.is_timestamp(type_) and type_.tz:
        return (value - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal) or isinstance(type_, pa.UuidType):
        return str(value)
    return repr(value) if isinstance(value, float) else value
