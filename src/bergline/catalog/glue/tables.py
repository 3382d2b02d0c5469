"""The representation of a table in AWS Glue: its pointer, and what other tools see.

The columns are for people and consoles; engines read the metadata file.
"""

import re
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.types import (
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

GlueTable = dict[str, Any]

_TABLE_TYPE, _ICEBERG = "table_type", "ICEBERG"
_POINTER, _PREVIOUS = "metadata_location", "previous_metadata_location"
_REMOVED, _RENAMED_FROM = "bergline.removed", "bergline.renamed-from"
_LEFT_AFTER_S = 900  # by then, whoever removed a table has deleted it or never will
_LONGEST_NAME = _LONGEST_COMMENT = 255  # in bytes, like all limits of Glue
_LONGEST_DESCRIPTION = 2048
_KEPT = (  # the fields that Glue accepts in updates; others are read-only
    "Description",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Name",
    "Owner",
    "Parameters",
    "PartitionKeys",
    "Retention",
    "StorageDescriptor",
    "TableType",
    "TargetTable",
    "ViewExpandedText",
    "ViewOriginalText",
)
_TYPES = {
    "int": "int",
    "long": "bigint",
    "time": "string",
    "uuid": "string",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_nano",
    "timestamptz_ns": "timestamp_nano",
}


def pointer_of(table: GlueTable) -> str | None:
    """The table's pointer; None if it is not an Iceberg table."""
    parameters = table.get("Parameters") or {}
    if str(parameters.get(_TABLE_TYPE)).upper() != _ICEBERG:
        return None
    return parameters.get(_POINTER) or None


def is_removed(table: GlueTable) -> bool:
    """Whether this is the remains of a dropped or renamed table."""
    return _removal(table) is not None


def is_left(table: GlueTable) -> bool:
    """Whether the remains are so old that nobody is still going to delete them."""
    match = re.match("[0-9]+", _removal(table) or "")
    return is_removed(table) and (match is None or time.time() - int(match[0]) > _LEFT_AFTER_S)


def removed_by(table: GlueTable, removed: GlueTable) -> bool:
    """Whether a table was removed by this very update."""
    return is_removed(table) and _removal(table) == _removal(removed)


def renamed_from(table: GlueTable) -> tuple[str, str] | None:
    """The database and name before a rename, if nothing was committed since."""
    note = (table.get("Parameters") or {}).get(_RENAMED_FROM)
    if note is None:
        return None
    database, _, name = note.partition(".")
    return database, name


def new_table(name: str, pointer: str, metadata: TableMetadata | None) -> GlueTable:
    """A table with its first pointer."""
    table = {"Name": name, "TableType": "EXTERNAL_TABLE", "Parameters": {_TABLE_TYPE: _ICEBERG, _POINTER: pointer}}
    return _shown(table, metadata)


def moved_table(table: GlueTable, pointer: str, metadata: TableMetadata | None) -> GlueTable:
    """The table with another pointer; everything set by others stays."""
    parameters = {k: v for k, v in table["Parameters"].items() if k != _RENAMED_FROM}
    moved = {_TABLE_TYPE: _ICEBERG, _PREVIOUS: parameters[_POINTER], _POINTER: pointer}
    return _shown(_input(table, Parameters=parameters | moved), metadata)


def renamed_table(table: GlueTable, name: str) -> GlueTable:
    """The table under another name, with a marker for whoever finds both."""
    old = f"{table['DatabaseName']}.{table['Name']}"
    return _input(table, Name=name, Parameters=table["Parameters"] | {_RENAMED_FROM: old})


def is_renamed(table: GlueTable, old: GlueTable) -> bool:
    """Whether this is the new name of `old` after an interrupted rename."""
    note = (table.get("Parameters") or {}).get(_RENAMED_FROM)
    return note == f"{old['DatabaseName']}.{old['Name']}" and pointer_of(table) == pointer_of(old)


def restored_table(table: GlueTable) -> GlueTable:
    """The table exactly as it was read."""
    return _input(table)


def removed_table(table: GlueTable) -> GlueTable:
    """What remains until it is deleted: no longer an Iceberg table, so nobody can commit to it."""
    gone = {_TABLE_TYPE, _POINTER, _PREVIOUS}
    parameters = {k: v for k, v in table["Parameters"].items() if k not in gone}
    return _input(table, Parameters=parameters | {_REMOVED: f"{int(time.time())} {uuid4()}"})


def _removal(table: GlueTable) -> str | None:
    return (table.get("Parameters") or {}).get(_REMOVED)


def _input(table: GlueTable, **changed: Any) -> GlueTable:
    return {k: table[k] for k in _KEPT if k in table} | changed


def _shown(table: GlueTable, metadata: TableMetadata | None) -> GlueTable:
    """The table with location, columns and description from the metadata, or unchanged without it."""
    if metadata is None:
        return table
    storage = table.get("StorageDescriptor", {})
    comments = {c["Name"]: c["Comment"] for c in reversed(storage.get("Columns", [])) if c.get("Comment")}
    shown = {"StorageDescriptor": storage | {"Location": metadata.location, "Columns": _columns(metadata, comments)}}
    if comment := metadata.properties.get("comment"):
        shown["Description"] = _cut(comment, _LONGEST_DESCRIPTION, breaks="\r\n")
    return table | shown


def _columns(metadata: TableMetadata, comments: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of the current schema, then those of other schemas with other names, as in Java and PyIceberg."""
    columns: dict[str, dict[str, Any]] = {}
    for schema in sorted(metadata.schemas, key=lambda s: s.schema_id != metadata.current_schema_id):
        for field in schema.fields:
            if field.name not in columns and field.name == _cut(field.name, _LONGEST_NAME):
                current = schema.schema_id == metadata.current_schema_id
                columns[field.name] = _column(field, comments.get(field.name), current=current)
    return list(columns.values())


def _column(field: NestedField, comment: str | None, *, current: bool) -> dict[str, Any]:
    column = {
        "Name": field.name,
        "Type": _type_text(field.type),
        "Parameters": {
            "iceberg.field.id": str(field.id),
            "iceberg.field.optional": str(not field.required).lower(),
            "iceberg.field.current": str(current).lower(),
        },
    }
    if shown := field.doc or comment:
        column["Comment"] = _cut(" ".join(shown.split()), _LONGEST_COMMENT)
    return column


def _cut(text: str, longest: int, *, breaks: str = "") -> str:
    """A text truncated to Glue's limit."""
    plain = "".join(c for c in text if c >= " " or c == "\t" or c in breaks)
    return plain.encode(errors="ignore")[:longest].decode(errors="ignore")


def _type_text(type_: IcebergType) -> str:
    match type_:
        case PrimitiveType(name):
            return _TYPES.get(name, name)
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case FixedType():
            return "binary"
        case StructType(fields):
            return f"struct<{','.join(f'{f.name}:{_type_text(f.type)}' for f in fields)}>"
        case ListType(_, element):
            return f"array<{_type_text(element)}>"
        case MapType(_, key, _, value):
            return f"map<{_type_text(key)},{_type_text(value)}>"
        case GeometryType():
            return "geometry"
        case GeographyType():
            return "geography"
    raise AssertionError(type_)
