"""Types in words."""

import pytest

from bergline.errors import InvalidInputError
from bergline.format.types.text import parse_type_text
from bergline.format.types.types import (
    LONG,
    MAX_NESTING,
    STRING,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    StructType,
    walk_fields,
)


def test_primitives_are_those_of_the_specification() -> None:
    assert parse_type_text("long") == LONG
    assert parse_type_text(" Decimal( 9 , 2 ) ") == DecimalType(9, 2)
    assert parse_type_text("fixed[16]") == FixedType(16)


@pytest.mark.parametrize(
    "text",
    [
        "list<string>",
        "map<string, list<long>>",
        "struct<x: int, y: struct<z: decimal(9, 2), g: geography(OGC:CRS84, spherical)>>",
        "list<map<int, fixed[3]>>",
    ],
)
def test_nested_types_read_back_as_they_are_shown(text: str) -> None:
    assert str(parse_type_text(text)) == text
    assert str(parse_type_text(text.upper().replace("X:", "x:").replace("Y:", "y:"))).casefold() == text.casefold()


def test_spaces_are_free_and_names_may_be_quoted() -> None:
    found = parse_type_text(" struct < `a b: c` :int,d :list<  string>  > ")
    assert isinstance(found, StructType)
    assert [f.name for f in found.fields] == ["a b: c", "d"]


def test_what_is_inside_may_be_null_and_has_ids_of_its_own() -> None:
    found = parse_type_text("struct<a: map<string, int>, b: list<int>>")
    assert isinstance(found, StructType)
    fields = [f for _, f in walk_fields(found.fields) if f.name != "key"]
    assert not any(f.required for f in fields)
    ids = [f.id for _, f in walk_fields(found.fields)]
    assert len(set(ids)) == len(ids)
    assert isinstance(found.fields[0].type, MapType)
    assert isinstance(found.fields[1].type, ListType)
    assert found.fields[0].type.key == STRING


def test_struct_may_have_no_fields() -> None:
    assert parse_type_text("struct<>") == parse_type_text("struct< >") == StructType(())


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "list", "list<>", "list<string", "list<string>>", "map<string>", "map<string, long, int>"),
        *(
            "struct<,>",
            "struct<a>",
            "struct<a: int,>",
            "struct<: int>",
            "int long",
            "list<int> x",
            "decimal(9",
            "<int>",
        ),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a type"):
        parse_type_text(text)


def test_nesting_has_an_end() -> None:
    assert parse_type_text("list<" * MAX_NESTING + "int" + ">" * MAX_NESTING)
    with pytest.raises(InvalidInputError, match="levels of nested types"):
        parse_type_text("list<" * 10_000 + "int" + ">" * 10_000)
