"""A schema as the tree that Spark's `printSchema` shows."""

from collections.abc import Iterator

from bergline.format.schema import Schema
from bergline.format.types import INT, LONG, IcebergType, ListType, MapType, NestedField, StructType
from bergline.sql.spark_types import type_text

_NAMES: dict[IcebergType, str] = {INT: "integer", LONG: "long"}


def schema_tree(schema: Schema) -> str:
    """The tree, which ends in a line break."""
    return "".join(f"{line}\n" for line in ["root", *_fields(schema.fields, " |")])


def _fields(fields: tuple[NestedField, ...], indent: str) -> Iterator[str]:
    for field in fields:
        yield f"{indent}-- {field.name}: {_name(field.type)} (nullable = {_word(not field.required)})"
        yield from _inside(field.type, f"{indent}    |")


def _inside(type_: IcebergType, indent: str) -> Iterator[str]:
    match type_:
        case StructType(fields):
            yield from _fields(fields, indent)
        case ListType(_, element, required):
            yield f"{indent}-- element: {_name(element)} (containsNull = {_word(not required)})"
            yield from _inside(element, f"{indent}    |")
        case MapType(_, key, _, value, required):
            yield f"{indent}-- key: {_name(key)}"
            yield from _inside(key, f"{indent}    |")
            yield f"{indent}-- value: {_name(value)} (valueContainsNull = {_word(not required)})"
            yield from _inside(value, f"{indent}    |")


def _name(type_: IcebergType) -> str:
    match type_:
        case StructType():
            return "struct"
        case ListType():
            return "array"
        case MapType():
            return "map"
    return _NAMES.get(type_) or type_text(type_)


def _word(value: bool) -> str:
    return str(value).lower()
