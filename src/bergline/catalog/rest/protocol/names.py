"""Names in URLs: percent-encoded, with the levels of a namespace joined by a separator."""

from typing import Final
from urllib.parse import quote, unquote_plus

from bergline.catalog.identifiers import Namespace
from bergline.errors import InvalidInputError

UNIT_SEPARATOR: Final = "\x1f"
"""The default separator of namespace levels, which servers always accept."""
SEPARATOR_PROPERTY: Final = "namespace-separator"
"""The configuration property with the server's separator, percent-encoded."""


def encode_name(name: str) -> str:
    """Encode a name as a path segment; dots are encoded if the name is nothing but dots."""
    try:
        encoded = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"expected a name without lone surrogates, found {name!r:.80}") from error
    return encoded.replace(".", "%2E") if name in {".", ".."} else encoded


def decode_name(segment: str) -> str:
    """Decode a path segment; a plus is a space, as encoded by Java's clients."""
    try:
        return unquote_plus(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"expected percent-encoded UTF-8 in the path, found `{segment[:80]}`") from error


def join_levels(namespace: Namespace, separator: str = UNIT_SEPARATOR) -> str:
    """Join levels; InvalidInputError for a level that would read as several."""
    for level in namespace:
        if separator in level:
            raise InvalidInputError(f"expected levels of a namespace without {separator!r}, found {level!r}")
    return separator.join(namespace)


def split_levels(text: str, separator: str = UNIT_SEPARATOR) -> Namespace:
    """Split levels at the server's separator or the unit separator."""
    return tuple(text.replace(separator, UNIT_SEPARATOR).split(UNIT_SEPARATOR))


def encode_namespace(namespace: Namespace, separator: str = UNIT_SEPARATOR) -> str:
    """Encode a namespace as a path segment."""
    return encode_name(join_levels(namespace, separator))


def decode_namespace(segment: str, separator: str = UNIT_SEPARATOR) -> Namespace:
    """Decode a namespace from a path segment."""
    return split_levels(decode_name(segment), separator)


def encode_separator(separator: str) -> str:
    """Encode a separator for the configuration."""
    return "".join(f"%{byte:02X}" for byte in separator.encode())


def decode_separator(text: str) -> str:
    """Decode the separator of a configuration, percent-encoded or not."""
    separator = decode_name(text) if text != "+" else text
    if not separator:
        raise InvalidInputError(f"expected a separator of namespace levels, found `{text}`")
    return separator
