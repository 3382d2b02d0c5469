"""Schemas: finding columns, unique ids and names, fresh ids."""

import pytest

from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.schema.schema import Schema, assign_fresh_ids
from bergline.format.types.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)


def column(field_id: int, name: str, type_: IcebergType = INT) -> NestedField:
    return NestedField(field_id, name, False, type_)


ROWS = StructType((column(20, "x"),))
SCHEMA = Schema(
    fields=(
        column(10, "id", LONG),
        column(11, "Name", STRING),
        column(12, "place", StructType((column(13, "city", STRING), column(14, "tags", ListType(15, INT, False))))),
        column(16, "scores", MapType(17, STRING, 18, StructType((column(19, "v"),)), False)),
    ),
    schema_id=4,
)


def test_fields_are_found_at_every_level() -> None:
    assert SCHEMA.find("place.city").id == 13
    assert SCHEMA.find("scores.value.v").id == 19
    assert SCHEMA.names_by_id[15] == "place.tags.element"
    assert SCHEMA.highest_id == 19


def test_find_ignores_case_where_it_is_not_ambiguous() -> None:
    assert SCHEMA.find("NAME").id == 11


def test_exact_spelling_wins_over_case() -> None:
    schema = Schema(fields=(column(1, "a"), column(2, "A")))
    assert (schema.find("a").id, schema.find("A").id) == (1, 2)


def test_ambiguous_case_is_not_found() -> None:
    schema = Schema(fields=(column(1, "ab"), column(2, "AB")))
    with pytest.raises(NotFoundError) as caught:
        schema.find("aB")
    assert caught.value.kind == "column"


def test_missing_column_suggests_near_ones() -> None:
    with pytest.raises(NotFoundError) as caught:
        SCHEMA.find("plase")
    assert caught.value.near[0] == "place"


def test_paths_leave_out_what_is_inside_lists_and_maps() -> None:
    assert SCHEMA.paths == {
        10: ("id",),
        11: ("Name",),
        12: ("place",),
        13: ("place", "city"),
        14: ("place", "tags"),
        16: ("scores",),
    }


def test_paths_keep_dots_in_names() -> None:
    assert Schema(fields=(column(1, "a.b"),)).paths == {1: ("a.b",)}


def test_select_keeps_ids_in_the_order_asked_for() -> None:
    assert [f.id for f in SCHEMA.select(["name", "id"]).fields] == [11, 10]


def test_select_refuses_nested_columns() -> None:
    with pytest.raises(InvalidInputError, match=r"top-level column, found the nested `place\.city`"):
        SCHEMA.select(["place.city"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((column(1, "a"), column(1, "b")), "found 1 for `a` and `b`"),
        ((column(1, "a"), column(2, "b", ListType(1, INT, False))), r"found 1 for `a` and `b\.element`"),
        ((column(1, "a"), column(2, "a")), "found `a` twice"),
        ((column(1, "s", StructType((column(2, "x"), column(3, "x")))),), "found `x` twice"),
    ],
)
def test_ids_and_names_are_unique(fields: tuple[NestedField, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Schema(fields=fields)


def test_fresh_ids_number_the_top_level_first() -> None:
    fresh = assign_fresh_ids(SCHEMA)
    assert {name: f.id for name, f in fresh.names.items()} == {
        "id": 1,
        "Name": 2,
        "place": 3,
        "scores": 4,
        "place.city": 5,
        "place.tags": 6,
        "place.tags.element": 7,
        "scores.key": 8,
        "scores.value": 9,
        "scores.value.v": 10,
    }
    assert fresh.schema_id == 0


def test_schema_survives_its_json() -> None:
    assert decode_json(encode_json(SCHEMA), Schema, "x") == SCHEMA


def test_duplicate_ids_in_json_name_the_file() -> None:
    field = b'{"id":1,"name":"%s","required":true,"type":"int"}'
    data = b'{"type":"struct","schema-id":0,"fields":[%s,%s]}' % (field % b"a", field % b"b")
    with pytest.raises(FormatError, match=r"unique column ids, found 1 for `a` and `b` at \$ in f\.json"):
        decode_json(data, Schema, "f.json")


ROW = Schema(
    fields=(
        NestedField(1, "id", True, LONG, "key", 7, 7),
        NestedField(2, "who", True, StructType((NestedField(3, "name", True, STRING), column(4, "nick", STRING)))),
        column(5, "maybe", StructType((NestedField(6, "x", True, INT),))),
        NestedField(7, "ratio", True, DOUBLE),
        NestedField(8, "tags", True, ListType(9, STRING, True)),
        NestedField(10, "points", True, MapType(11, STRING, 12, ListType(13, ROWS, True), True)),
    ),
    identifier_field_ids=(3, 1),
)


def test_fresh_ids_keep_identifier_fields_docs_and_defaults() -> None:
    fresh = assign_fresh_ids(Schema(fields=ROW.fields[1::-1], identifier_field_ids=(3, 1)))
    assert fresh.identifier_field_ids == (3, 2)
    assert fresh.fields[1] == NestedField(2, "id", True, LONG, "key", 7, 7)


def test_fresh_ids_follow_into_defaults() -> None:
    column = NestedField(5, "points", False, ListType(6, ROWS, False), None, [{"20": 1}], None)
    fresh = assign_fresh_ids(Schema(fields=(column,)))
    assert fresh.fields[0].initial_default == [{"3": 1}]


@pytest.mark.parametrize(
    ("field_id", "message"),
    [
        (99, "expected the ids of columns"),
        (4, "never null, found `who.nick`"),
        (6, "never null, found `maybe.x`"),
        (7, "compares exactly, found `ratio`"),
        (2, "compares exactly, found `who`"),
        (9, "never null, found `tags.element`"),
        (11, "never null, found `points.key`"),
    ],
)
def test_identifier_fields_are_exact_and_never_null(field_id: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Schema(fields=ROW.fields, identifier_field_ids=(field_id,))


def test_short_names_leave_out_element_and_value_before_structs() -> None:
    assert ROW.find("points.value.x").id == ROW.find("points.value.element.x").id == 20
    assert SCHEMA.find("scores.v").id == 19


@pytest.mark.parametrize(
    "type_", [UNKNOWN, ListType(2, UNKNOWN, True), MapType(2, UNKNOWN, 3, INT, False)], ids=["column", "element", "key"]
)
def test_unknown_is_optional(type_: IcebergType) -> None:
    with pytest.raises(InvalidInputError, match="expected a column that may be null"):
        Schema(fields=(NestedField(1, "u", True, type_),))


def test_bad_default_in_json_names_the_file() -> None:
    data = b'{"type":"struct","fields":[{"id":1,"name":"c","required":true,"type":"int","initial-default":"x"}]}'
    with pytest.raises(FormatError, match=r"expected a `int` value, found 'x' .* in the default of `c` .* in v1.json"):
        decode_json(data, Schema, "v1.json")
