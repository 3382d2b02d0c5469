"""Types as text: `long`, `decimal(9, 2)`, `list<string>`, `map<string, long>`, `struct<x: int>`."""

import re
from itertools import count

from bergline.errors import InvalidInputError
from bergline.format.types.types import (
    MAX_NESTING,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    parse_primitive,
)

_PRIMITIVE = re.compile(r"\s*([^\s<>,()\[\]:`]+\s*(?:\([^()]*\)|\[[^\[\]]*\])?)")
_NESTED = re.compile(r"\s*(list|map|struct)\s*<", re.IGNORECASE)
_NAME = re.compile(r"\s*(?:`([^`]+)`|([^\s<>,()\[\]:`]+))")


def parse_type_text(text: str) -> IcebergType:
    """Parse a type; everything nested is optional and gets placeholder ids."""
    parser = _Parser(text)
    type_ = parser.type(MAX_NESTING)
    parser.end()
    return type_


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ids = count(1)

    def type(self, levels: int) -> IcebergType:
        match = _NESTED.match(self._text, self._at)
        if match is None:
            return parse_primitive(self._match(_PRIMITIVE)[1].rstrip())
        if not levels:
            raise InvalidInputError(f"expected at most {MAX_NESTING} levels of nested types, found more")
        self._at = match.end()
        match match[1].lower():
            case "list":
                nested: IcebergType = ListType(next(self._ids), self.type(levels - 1), False)
            case "map":
                key_id, value_id = next(self._ids), next(self._ids)
                key = self.type(levels - 1)
                self._expect(",")
                nested = MapType(key_id, key, value_id, self.type(levels - 1), False)
            case _:
                nested = self._struct(levels)
        self._expect(">")
        return nested

    def end(self) -> None:
        if self._text[self._at :].strip():
            raise self._unexpected()

    def _struct(self, levels: int) -> StructType:
        if self._next() == ">":
            return StructType(())
        fields = [self._field(levels)]
        while self._next() == ",":
            self._expect(",")
            fields.append(self._field(levels))
        return StructType(tuple(fields))

    def _field(self, levels: int) -> NestedField:
        field_id, match = next(self._ids), self._match(_NAME)
        self._expect(":")
        return NestedField(field_id, match[1] or match[2], False, self.type(levels - 1))

    def _next(self) -> str:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self._unexpected()
        self._at = match.end()
        return match

    def _expect(self, sign: str) -> None:
        if self._next() != sign:
            raise self._unexpected()
        self._at += 1

    def _unexpected(self) -> InvalidInputError:
        return InvalidInputError(
            "expected a type like `long`, `list<string>`, `map<string, long>` or `struct<x: int>`, "
            f"found `{self._text[:80]}`"
        )
