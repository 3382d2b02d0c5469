"""Types as Spark's SQL writes them, and Iceberg's types in that form."""

import re
from collections.abc import Callable, Iterator
from itertools import count

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DEFAULT_ALGORITHM,
    DEFAULT_CRS,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_NESTING,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.quoting import quoted_name, quoted_text
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import TokenKind

_NAMES: dict[str, IcebergType] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": INT,
    "BYTE": INT,
    "SMALLINT": INT,
    "SHORT": INT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": LONG,
    "LONG": LONG,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DOUBLE": DOUBLE,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMPTZ,
    "TIMESTAMP_LTZ": TIMESTAMPTZ,
    "TIMESTAMP_NTZ": TIMESTAMP,
    "STRING": STRING,
    "BINARY": BINARY,
    "VOID": UNKNOWN,
    "VARIANT": VARIANT,
}
DEFAULT_COLLATION = "UTF8_BINARY"
_LENGTHS = ("CHAR", "CHARACTER", "VARCHAR")
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_DEFAULT_SRID, _SRID = 4326, re.compile(r"srid:([0-9]+)", re.IGNORECASE)
_DEFAULT_PRECISION, _MOST_PRECISION = 10, 38
_MOST_LONG_DIGITS = 18
_SIZES: dict[IcebergType, int] = {
    BOOLEAN: 1,
    INT: 4,
    LONG: 8,
    FLOAT: 4,
    DOUBLE: 8,
    DATE: 4,
    TIMESTAMPTZ: 8,
    TIMESTAMP: 8,
    STRING: 20,
    UUID: 20,
    TIME: 20,
    TIMESTAMP_NS: 8,
    TIMESTAMPTZ_NS: 8,
    BINARY: 100,
    UNKNOWN: 1,
    VARIANT: 2048,
}
_WORDS: dict[IcebergType, str] = {
    BOOLEAN: "boolean",
    INT: "int",
    LONG: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    DATE: "date",
    TIMESTAMPTZ: "timestamp",
    TIMESTAMP: "timestamp_ntz",
    STRING: "string",
    UUID: "string",
    TIME: "string",
    TIMESTAMP_NS: "timestamp_ntz",
    TIMESTAMPTZ_NS: "timestamp",
    BINARY: "binary",
    UNKNOWN: "void",
    VARIANT: "variant",
}


def parse_spark_type(cursor: Cursor, column: str) -> IcebergType:
    """Parse a type as an Iceberg type; ids inside it only tell its fields apart."""
    return _Parser(cursor, column, count(1)).type(MAX_NESTING)


def check_collation(cursor: Cursor, of: str) -> None:
    """Take the name of a collation; UnsupportedError for any but that of bytes, which all text of Iceberg has."""
    name = ".".join(cursor.expect_dotted_name("a collation"))
    if name.upper() != DEFAULT_COLLATION:
        raise collation_refusal(name, of)


def collation_refusal(name: str, of: str) -> UnsupportedError:
    """The error for a collation that would have to be stored."""
    return UnsupportedError(
        f"cannot keep the collation `{name}` of {of}: text in Iceberg tables is compared by its bytes",
        hints=[f"store it without, and say it in queries, as in `WHERE name COLLATE {name} = 'a'`"],
    )


def type_text(type_: IcebergType) -> str:
    """A type as DESCRIBE shows it, such as `struct<x:double,y:int>`; those that Spark lacks in Iceberg's words."""
    match type_:
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case FixedType() | GeometryType() | GeographyType():
            return "binary"
        case StructType(fields):
            return f"struct<{','.join(f'{f.name}:{type_text(f.type)}' for f in fields)}>"
        case ListType(_, element, _):
            return f"array<{type_text(element)}>"
        case MapType(_, key, _, value, _):
            return f"map<{type_text(key)},{type_text(value)}>"
    return _WORDS.get(type_, str(type_))


def column_text(field: NestedField, colon: str = "", *, default: Callable[[NestedField], str | None]) -> str:
    """A column as CREATE TABLE writes it: `id BIGINT NOT NULL COMMENT 'the id'`."""
    pieces = [f"{quoted_name(field.name)}{colon} {_definition(field.type, default)}"]
    if field.required:
        pieces.append("NOT NULL")
    if (value := default(field)) is not None:
        pieces.append(f"DEFAULT {value}")
    if field.doc:
        pieces.append(f"COMMENT {quoted_text(field.doc)}")
    return " ".join(pieces)


def default_size(type_: IcebergType) -> int:
    """Spark's estimate of how many bytes a value takes."""
    match type_:
        case DecimalType(precision, _):
            return _SIZES[LONG] if precision <= _MOST_LONG_DIGITS else 2 * _SIZES[LONG]
        case StructType(fields):
            return sum(default_size(f.type) for f in fields)
        case ListType(_, element, _):
            return default_size(element)
        case MapType(_, key, _, value, _):
            return default_size(key) + default_size(value)
    return _SIZES.get(type_, _SIZES[BINARY])


def _definition(type_: IcebergType, default: Callable[[NestedField], str | None]) -> str:
    match type_:
        case StructType(fields):
            return f"STRUCT<{', '.join(column_text(f, ':', default=default) for f in fields)}>"
        case ListType(_, element, _):
            return f"ARRAY<{_definition(element, default)}>"
        case MapType(_, key, _, value, _):
            return f"MAP<{_definition(key, default)}, {_definition(value, default)}>"
    if isinstance(type_, GeometryType | GeographyType):
        kind = "GEOMETRY" if isinstance(type_, GeometryType) else "GEOGRAPHY"
        known = _SRID.fullmatch(type_.crs)
        srid = _DEFAULT_SRID if type_.crs == DEFAULT_CRS else int(known[1]) if known else None
        return str(type_).upper() if srid is None else f"{kind}({srid})"
    return type_text(type_).upper()


class _Parser:
    def __init__(self, cursor: Cursor, column: str, ids: Iterator[int]) -> None:
        self._cursor, self._column, self._ids = cursor, column, ids

    def type(self, levels: int) -> IcebergType:
        cursor = self._cursor
        if not levels:
            raise InvalidInputError(f"expected at most {MAX_NESTING} levels of types in `{self._column}`, found more")
        if cursor.token.kind is not TokenKind.WORD:
            cursor.fail(f"a type for column `{self._column}`")
        name = cursor.token.text.upper()
        if name in _DECIMALS:
            cursor.advance()
            return self._decimal()
        if name in _LENGTHS:
            cursor.advance()
            self._length()
            self._collation()
            return STRING
        if name in {"GEOMETRY", "GEOGRAPHY"}:
            cursor.advance()
            return self._shapes(name)
        match name:
            case "ARRAY":
                cursor.advance()
                cursor.expect_symbol("<")
                element_id, element = next(self._ids), self.type(levels - 1)
                cursor.expect_symbol(">")
                return ListType(element_id, element, False)
            case "MAP":
                cursor.advance()
                cursor.expect_symbol("<")
                key_id, value_id = next(self._ids), next(self._ids)
                key = self.type(levels - 1)
                cursor.expect_symbol(",")
                value = self.type(levels - 1)
                cursor.expect_symbol(">")
                return MapType(key_id, key, value_id, value, False)
            case "STRUCT":
                cursor.advance()
                return self._struct(levels)
        if name not in _NAMES:
            raise UnsupportedError(
                f"expected a type that Iceberg has for column `{self._column}`, found `{cursor.token.text}`",
                hints=[
                    f"there are {', '.join(_NAMES)}, DECIMAL, VARCHAR, CHAR, GEOMETRY, GEOGRAPHY, ARRAY, MAP and STRUCT"
                ],
                condition="UNSUPPORTED_DATATYPE",
            )
        cursor.advance()
        if name == "STRING":
            self._collation()
        if name == "TIMESTAMP" and cursor.sql.dialect.timestamp_ntz:
            return TIMESTAMP
        return _NAMES[name]

    def _collation(self) -> None:
        if self._cursor.accept("COLLATE"):
            check_collation(self._cursor, f"column `{self._column}`")

    def _decimal(self) -> DecimalType:
        precision, scale = _DEFAULT_PRECISION, 0
        if self._cursor.accept_symbol("("):
            precision = self._cursor.expect_whole_number()
            if self._cursor.accept_symbol(","):
                scale = self._cursor.expect_whole_number()
            self._cursor.expect_symbol(")")
        if not 1 <= precision <= _MOST_PRECISION or scale > precision:
            raise InvalidInputError(
                f"expected 1 to {_MOST_PRECISION} digits, and no more of them after the point, for column "
                f"`{self._column}`, found decimal({precision}, {scale})"
            )
        return DecimalType(precision, scale)

    def _shapes(self, name: str) -> IcebergType:
        self._cursor.expect_symbol("(")
        srid = self._cursor.expect_whole_number()
        self._cursor.expect_symbol(")")
        crs = DEFAULT_CRS if srid == _DEFAULT_SRID else f"srid:{srid}"
        return GeometryType(crs) if name == "GEOMETRY" else GeographyType(crs, DEFAULT_ALGORITHM)

    def _length(self) -> None:
        self._cursor.expect_symbol("(")
        self._cursor.expect_whole_number()
        self._cursor.expect_symbol(")")

    def _struct(self, levels: int) -> StructType:
        cursor = self._cursor
        if cursor.accept_symbol("<>"):
            return StructType(())
        cursor.expect_symbol("<")
        fields: list[NestedField] = []
        while not cursor.accept_symbol(">"):
            if fields:
                cursor.expect_symbol(",")
            name = cursor.expect_name(f"a field of struct `{self._column}`")
            cursor.accept_symbol(":")
            field_id, type_ = next(self._ids), self.type(levels - 1)
            required = cursor.accept("NOT", "NULL")
            doc = cursor.expect_text("a comment in quotes") if cursor.accept("COMMENT") else None
            fields.append(NestedField(field_id, name, required, type_, doc))
        return StructType(tuple(fields))
