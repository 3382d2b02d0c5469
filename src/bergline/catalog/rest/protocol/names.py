"""Names in addresses: percent-encoded, and the levels of a namespace joined by a separator."""

from typing import Final
from urllib.parse import quote, unquote_plus

from bergline.catalog.identifiers import Namespace
from bergline.errors import InvalidInputError

UNIT_SEPARATOR: Final = "\x1f"
"""What joins the levels of a namespace unless the server says otherwise; servers know it in any case."""
SEPARATOR_PROPERTY: Final = "namespace-separator"
"""The property of the configuration with the server's separator, percent-encoded."""


def encode_name(name: str) -> str:
    """A name as one segment of a path; one that is all dots would lead elsewhere if they stood there as they are."""
    try:
        encoded = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"expected a name without lone surrogates, found {name!r:.80}") from error
    return encoded.replace(".", "%2E") if name in {".", ".."} else encoded


def decode_name(segment: str) -> str:
    """The name in a segment of a path; a plus is a blank, because Java's clients write it so."""
    try:
        return unquote_plus(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"expected percent-encoded UTF-8 in the path, found `{segment[:80]}`") from error


def join_levels(namespace: Namespace, separator: str = UNIT_SEPARATOR) -> str:
    """The levels as one text; InvalidInputError for a level that would read as several."""
    for level in namespace:
        if separator in level:
            raise InvalidInputError(f"expected levels of a namespace without {separator!r}, found {level!r}")
    return separator.join(namespace)


def split_levels(text: str, separator: str = UNIT_SEPARATOR) -> Namespace:
    """The levels in a text; the unit separator counts beside the server's own."""
    return tuple(text.replace(separator, UNIT_SEPARATOR).split(UNIT_SEPARATOR))


def encode_namespace(namespace: Namespace, separator: str = UNIT_SEPARATOR) -> str:
    """A namespace as one segment of a path."""
    return encode_name(join_levels(namespace, separator))


def decode_namespace(segment: str, separator: str = UNIT_SEPARATOR) -> Namespace:
    """The namespace in a segment of a path."""
    return split_levels(decode_name(segment), separator)


def encode_separator(separator: str) -> str:
    """A separator as the configuration names it."""
    return "".join(f"%{byte:02X}" for byte in separator.encode())


def decode_separator(text: str) -> str:
    """The separator that a configuration names, percent-encoded or as it is."""
    separator = decode_name(text) if text != "+" else text
    if not separator:
        raise InvalidInputError(f"expected a separator of namespace levels, found `{text}`")
    return separator
