"""Table properties: reserved ones, and typed access to the others."""

from collections.abc import Mapping
from typing import Final

from bergline.errors import InvalidInputError
from bergline.format.encoding.integers import MAX_LONG

FORMAT_VERSION: Final = "format-version"
_MOST_DIGITS = 100  # Python limits the digits of an integer
RESERVED_PROPERTIES: Final = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)


def stored_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without the reserved ones, which are never stored in a table."""
    return {k: v for k, v in properties.items() if k not in RESERVED_PROPERTIES}


def asked_format_version(properties: Mapping[str, str], default: int) -> int:
    """The format version requested by the properties, or the default."""
    return whole_number(properties, FORMAT_VERSION, default)


def whole_number(properties: Mapping[str, str], key: str, default: int) -> int:
    """A non-negative integer property, or its default."""
    text = properties.get(key)
    if text is None:
        return default
    if not text.strip().isdecimal():
        raise InvalidInputError(f"expected a whole number of 0 or more for property `{key}`, found `{text}`")
    if len(text) > _MOST_DIGITS or int(text) > MAX_LONG:
        raise InvalidInputError(f"expected a whole number up to {MAX_LONG} for property `{key}`, found a greater one")
    return int(text)


def boolean_property(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """A boolean property, or its default; as in Java, everything but `true` is false."""
    text = properties.get(key)
    return default if text is None else text.lower() == "true"
