"""Name mappings: JSON, finding ids by path, following the schema."""

import json
from collections.abc import Sequence

import pytest

from bergline.errors import FormatError
from bergline.format.evolution.columns import add_column, rename_column
from bergline.format.schema.name_mapping import (
    MappedField,
    NameMapping,
    create_name_mapping,
    parse_name_mapping,
    render_name_mapping,
    update_name_mapping,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, STRING, ListType, MapType, NestedField, StructType

# the example of the specification
TEXT = """[ { "field-id": 1, "names": ["id", "record_id"] },
   { "field-id": 2, "names": ["data"] },
   { "field-id": 3, "names": ["location"], "fields": [
       { "field-id": 4, "names": ["latitude", "lat"] },
       { "field-id": 5, "names": ["longitude", "long"] }
     ] } ]"""
POINT = StructType((NestedField(4, "x", False, INT), NestedField(5, "y", False, INT)))
SCHEMA = Schema(
    (
        NestedField(1, "id", True, INT),
        NestedField(2, "point", False, POINT),
        NestedField(3, "tags", False, ListType(6, STRING, False)),
        NestedField(7, "by.name", False, MapType(8, STRING, 9, ListType(10, INT, False), False)),
    )
)


def id_of(mapping: NameMapping, path: Sequence[str]) -> int | None:
    found = mapping.find(path)
    return None if found is None else found.field_id


@pytest.mark.parametrize(
    ("path", "field_id"),
    [
        (["id"], 1),
        (["record_id"], 1),
        (["location", "lat"], 4),
        (["location", "longitude"], 5),
        (["location.lat"], None),
        (["lat"], None),
        (["data", "x"], None),
        ([], None),
    ],
)
def test_id_is_found_by_each_name_of_its_path(path: list[str], field_id: int | None) -> None:
    assert id_of(parse_name_mapping(TEXT), path) == field_id


def test_json_survives_with_keys_in_order() -> None:
    assert json.loads(render_name_mapping(parse_name_mapping(TEXT))) == json.loads(TEXT)
    assert render_name_mapping(NameMapping((MappedField(1),))) == '[{"field-id":1,"names":[]}]'


def test_field_may_have_no_id_and_no_names() -> None:
    mapping = parse_name_mapping('[{"names": ["only in files"]}, {"field-id": null, "names": []}, {"field-id": 7}]')
    assert mapping.find(["only in files"]) == MappedField(None, ("only in files",))
    assert parse_name_mapping(render_name_mapping(mapping)) == mapping


def test_schema_gives_names_for_every_level() -> None:
    mapping = create_name_mapping(SCHEMA)
    ids = {path: id_of(mapping, path.split("/")) for path in ("point/y", "tags/element", "by.name/value/element")}
    assert ids == {"point/y": 5, "tags/element": 6, "by.name/value/element": 10}


def test_renamed_column_keeps_its_old_name_too() -> None:
    renamed = rename_column(SCHEMA, "point.x", "east")
    mapping = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, renamed)
    assert id_of(mapping, ["point", "x"]) == id_of(mapping, ["point", "east"]) == 4


def test_added_column_takes_a_name_over() -> None:
    renamed = rename_column(SCHEMA, "id", "key")
    added, _ = add_column(renamed, ("id",), INT, 10)
    first = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, renamed)
    mapping = update_name_mapping(first, renamed, added)
    assert (id_of(mapping, ["key"]), id_of(mapping, ["id"])) == (1, 11)


def test_added_column_with_fields_is_mapped_at_every_level() -> None:
    added, _ = add_column(SCHEMA, ("point", "box"), POINT, 10)
    mapping = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, added)
    assert [id_of(mapping, ["point", "box", *inner]) for inner in ([], ["x"], ["y"])] == [11, 12, 13]


def test_column_left_out_of_a_mapping_stays_out() -> None:
    partial = NameMapping((MappedField(1, ("id",)),))
    renamed = rename_column(SCHEMA, "tags", "labels")
    assert update_name_mapping(partial, SCHEMA, renamed) == partial


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "truncated"),
        ("{}", "expected `array`"),
        ("[1]", r"expected `object`, found `int` at \$\[0\]"),
        ('[{"names": "a"}]', r"at \$\[0\]\.names"),
        ('[{"field-id": "1", "names": []}]', r"at \$\[0\]\.field-id"),
        ('[{"field-id": 2147483648}]', "expected `int`"),
        ('[{"field-id": 1}, {"fields": [{"field-id": 1}]}]', "found 1 twice"),
        ('[{"fields": [{"names": ["a"]}, {"names": ["a"]}]}]', r"found `a` twice at \$\[0\]\.fields\[1\]"),
        ('[{"fields":' * 50_000, "recursion"),
        ('[{"fields":' * 101 + "[{}]" + "}]" * 101, "at most 100 levels"),
        ("\ud800", "malformed"),
    ],
)
def test_bad_mapping_is_a_format_error(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_name_mapping(text)
