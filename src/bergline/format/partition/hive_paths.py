"""Hive's way to name partitions by directories: `region=eu/day=2026-01-01`, with `%3A` for a colon."""

import re
from typing import Any, Final

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.types.defaults import decode_default
from bergline.format.types.types import DecimalType, IcebergType, PrimitiveType

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""The text of a partition whose value is null."""

_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?Infinity")
_BITS: Final = {"int": 32, "long": 64}
_HIDDEN: Final = ("_", ".")


def split_partition_path(path: str) -> list[tuple[str, str]] | None:
    """The names and texts of values in a relative path of directories; None if one of them names no value."""
    found = []
    for directory in filter(None, path.split("/")):
        name, equals, text = directory.partition("=")
        if not equals or not name:
            return None
        found.append((unescape(name), unescape(text)))
    return found


def unescape(text: str) -> str:
    """A name or value without the escapes of its directory; as in Spark, only of single characters."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def is_hidden(path: str) -> bool:
    """Whether Spark ignores a file, given by its path below a table: `_SUCCESS`, `.tmp/x`, but not `_col=1/x`."""
    return any(part.startswith(_HIDDEN) and "=" not in part for part in path.split("/"))


def parse_partition_text(type_: IcebergType, text: str, column: str) -> Any:
    """The plain value of a partition column; InvalidInputError if the text is none of its type."""
    if text == NULL_PARTITION:
        return None
    try:
        return _parse(type_, text)
    except UnsupportedError as error:
        raise UnsupportedError(f"cannot read partition values of type `{type_}`, found column `{column}`") from error
    except (ValueError, ArithmeticError, InvalidInputError) as error:
        raise InvalidInputError(f"expected a `{type_}` for partition column `{column}`, found `{text}`") from error


def _parse(type_: IcebergType, text: str) -> Any:
    match type_:
        case PrimitiveType("string"):
            return text
        case PrimitiveType("boolean") if text.lower() in {"true", "false"}:
            return text.lower() == "true"
        case PrimitiveType("int" | "long" as name) if _WHOLE.fullmatch(text):
            number = int(text)
            if -(1 << _BITS[name] - 1) <= number < 1 << _BITS[name] - 1:
                return number
        case PrimitiveType("float" | "double") if _NUMBER.fullmatch(text):
            return float(text)
        case PrimitiveType("date" | "uuid"):
            return decode_default(type_, text)
        case DecimalType(_, scale) if _NUMBER.fullmatch(text):
            whole, _, digits = text.partition(".")
            return decode_default(type_, f"{whole}.{digits.ljust(scale, '0')}" if scale else whole)
        case PrimitiveType("binary"):
            return text.encode()
        case PrimitiveType("boolean" | "int" | "long" | "float" | "double") | DecimalType():
            pass
        case _:
            raise UnsupportedError(str(type_))
    raise ValueError(text)
