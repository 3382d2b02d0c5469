"""Spark's words for types, and Iceberg's types in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.errors import BerglineError, InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
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
from bergline.sql.grammar.spark_types import column_text, default_size, parse_spark_type, type_text
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Dialect, SqlText
from support.fixtures.sql_statements import meaning


def parsed(text: str) -> IcebergType:
    cursor = Cursor(SqlText(text))
    type_ = parse_spark_type(cursor, "c")
    cursor.expect_end()
    return type_


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("boolean", BOOLEAN),
        ("TINYINT", INT),
        ("SmallInt", INT),
        ("INTEGER", INT),
        ("BIGINT", LONG),
        ("REAL", FLOAT),
        ("DOUBLE", DOUBLE),
        ("DATE", DATE),
        ("TIMESTAMP", TIMESTAMPTZ),
        ("TIMESTAMP_LTZ", TIMESTAMPTZ),
        ("TIMESTAMP_NTZ", TIMESTAMP),
        ("VARCHAR(10)", STRING),
        ("CHAR(3)", STRING),
        ("BINARY", BINARY),
        ("VOID", UNKNOWN),
        ("VARIANT", VARIANT),
        ("GEOMETRY(4326)", GeometryType("OGC:CRS84")),
        ("geometry(3857)", GeometryType("srid:3857")),
        ("GEOGRAPHY(4326)", GeographyType("OGC:CRS84", "spherical")),
        ("DECIMAL", DecimalType(10, 0)),
        ("NUMERIC(38)", DecimalType(38, 0)),
        ("DEC(9, 2)", DecimalType(9, 2)),
        ("STRUCT<>", StructType(())),
        ("ARRAY<ARRAY<INT>>", ListType(1, ListType(2, INT, False), False)),
        ("MAP<STRING, ARRAY<INT>>", MapType(1, STRING, 2, ListType(3, INT, False), False)),
        (
            "STRUCT<a: INT NOT NULL COMMENT 'x', `b c` STRING>",
            StructType((NestedField(1, "a", True, INT, "x"), NestedField(2, "b c", False, STRING))),
        ),
    ],
)
def test_types_are_read(text: str, type_: IcebergType) -> None:
    assert parsed(text) == type_


def test_timestamp_is_of_the_type_that_the_session_says() -> None:
    cursor = Cursor(SqlText("ARRAY<TIMESTAMP>", Dialect(timestamp_ntz=True)))
    assert parse_spark_type(cursor, "c") == ListType(1, TIMESTAMP, False)
    cursor = Cursor(SqlText("TIMESTAMP_LTZ", Dialect(timestamp_ntz=True)))
    assert parse_spark_type(cursor, "c") == TIMESTAMPTZ


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("FOO", UnsupportedError, "found `FOO`"),
        ("STRING COLLATE UTF8_LCASE", UnsupportedError, "cannot keep the collation `UTF8_LCASE` of column `c`"),
        ("ARRAY<VARCHAR(3) COLLATE sr_CI>", UnsupportedError, "cannot keep the collation `sr_CI` of column `c`"),
        ("INTERVAL DAY", UnsupportedError, "expected a type that Iceberg has for column `c`, found `INTERVAL`"),
        ("DECIMAL(39, 2)", InvalidInputError, "expected 1 to 38 digits"),
        ("DECIMAL(5, 6)", InvalidInputError, r"found decimal\(5, 6\)"),
        ("ARRAY", SqlSyntaxError, "expected `<`, found the end of the statement"),
        ("MAP<INT>", SqlSyntaxError, "expected `,`, found `>` at line 1, column 8"),
        ("STRUCT<a: INT", SqlSyntaxError, "expected `,`"),
        ("VARCHAR", SqlSyntaxError, r"expected `\(`"),
        ("5", SqlSyntaxError, "expected a type for column `c`, found `5`"),
        ("ARRAY<" * 2000, InvalidInputError, "levels of types"),
    ],
)
def test_bad_types_say_what_was_expected(text: str, error: type[BerglineError], message: str) -> None:
    with pytest.raises(error, match=message):
        parsed(text)


def test_types_that_spark_lacks_are_shown_as_they_are_read() -> None:
    assert type_text(PrimitiveType("time")) == "string"
    assert type_text(PrimitiveType("timestamp_ns")) == "timestamp_ntz"
    assert type_text(PrimitiveType("uuid")) == "string"
    assert type_text(FixedType(3)) == type_text(GeometryType("x")) == "binary"


@pytest.mark.parametrize("text", ["GEOMETRY(4326)", "GEOMETRY(3857)", "GEOGRAPHY(4326)", "VARIANT"])
def test_new_types_are_written_as_they_are_parsed(text: str) -> None:
    assert column_text(NestedField(1, "c", False, parsed(text)), default=lambda _: None) == f"c {text}"


def test_columns_are_written_as_create_table_has_them() -> None:
    field = NestedField(1, "a b", True, ListType(2, DecimalType(9, 2), False), "it's")
    assert column_text(field, default=lambda _: None) == "`a b` ARRAY<DECIMAL(9,2)> NOT NULL COMMENT 'it\\'s'"
    assert column_text(NestedField(1, "a", False, INT), default=lambda _: "5") == "a INT DEFAULT 5"


def test_sizes_are_those_that_spark_guesses() -> None:
    fields = [STRING, DecimalType(18, 0), DecimalType(19, 0), ListType(9, INT, False), MapType(8, INT, 7, LONG, False)]
    type_ = StructType(tuple(NestedField(i, f"c{i}", False, t) for i, t in enumerate(fields)))
    assert default_size(type_) == 20 + 8 + 16 + 4 + 12


primitives = st.sampled_from(
    [BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY, DecimalType(9, 2)]
)
names = st.text(min_size=1, max_size=8).filter(lambda n: "\0" not in n)
types = st.recursive(
    primitives,
    lambda inner: st.one_of(
        inner.map(lambda t: ListType(0, t, False)),
        st.tuples(inner, inner).map(lambda kv: MapType(0, kv[0], 0, kv[1], False)),
        st.lists(st.tuples(names, st.booleans(), inner, st.none() | names), max_size=3).map(
            lambda fields: StructType(tuple(NestedField(0, n, r, t, d) for n, r, t, d in fields))
        ),
    ),
    max_leaves=6,
)


@pytest.mark.long
@given(type_=types)
def test_what_is_written_is_read_again(type_: IcebergType) -> None:
    text = column_text(NestedField(1, "c", False, type_), default=lambda _: None).removeprefix("c ")
    assert without_ids(parsed(text)) == without_ids(type_)


def without_ids(type_: IcebergType) -> IcebergType:
    match type_:
        case StructType(fields):
            return StructType(tuple(NestedField(0, f.name, f.required, without_ids(f.type), f.doc) for f in fields))
        case ListType(_, element, required):
            return ListType(0, without_ids(element), required)
        case MapType(_, key, _, value, required):
            return MapType(0, without_ids(key), 0, without_ids(value), required)
    return type_


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE db.t (id INT, s STRING) USING iceberg DEFAULT COLLATION {}",
        "ALTER TABLE db.t DEFAULT COLLATION {}",
        "CREATE NAMESPACE db DEFAULT COLLATION {}",
        "ALTER TABLE db.t ADD COLUMN s STRING COLLATE {}",
    ],
)
def test_only_the_collation_of_bytes_is_kept(text: str) -> None:
    assert isinstance(meaning(text.format("utf8_binary")), LakeStatement)
    refused = meaning(text.format("UTF8_LCASE"))
    assert isinstance(refused, OtherStatement)
    assert "cannot keep the collation `UTF8_LCASE` of " in str(refused.error)
