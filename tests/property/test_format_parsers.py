"""Whatever stands in JSON and in terms, parsers give a value or one of our errors."""

import copy
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bergline.errors import BerglineError, FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding import iso
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.partition.sort_order import SortOrder, parse_sort_by
from bergline.format.partition.spec import PartitionSpec, parse_partition_by
from bergline.format.partition.transforms import parse_transform
from bergline.format.schema.name_mapping import NameMapping, parse_name_mapping, render_name_mapping
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import decode_default, encode_default
from bergline.format.types.types import (
    PRIMITIVES,
    DecimalType,
    FixedType,
    GeographyType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    parse_primitive,
    parse_type,
)

texts = st.text(max_size=12)
numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False))
words = st.sampled_from(
    [
        *("int", "decimal(9, 2)", "decimal(99, 2)", "fixed[4]", "fixed[99999999999]", "geometry(a)", "geography(a, b)"),
        *(
            "struct",
            "list",
            "map",
            "identity",
            "bucket[4]",
            "bucket[0]",
            "void",
            "zorder",
            "asc",
            "desc",
            "nulls-first",
        ),
        *("2017-11-16", "22:31:08", "2017-11-16T22:31:08+00:00", "14.20", "00ff", "id", "unknown", "variant"),
    ]
)
keys = st.sampled_from(
    [
        *(
            "type",
            "fields",
            "id",
            "name",
            "required",
            "doc",
            "initial-default",
            "write-default",
            "element",
            "element-id",
        ),
        *("element-required", "key", "key-id", "value", "value-id", "value-required", "schema-id"),
        *("identifier-field-ids", "spec-id", "order-id", "source-id", "source-ids", "field-id", "transform"),
        *("direction", "null-order", "names", "keys", "values"),
    ]
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys | texts, inner, max_size=4)),
    max_leaves=8,
)

SCHEMA: Any = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "d", "required": False, "type": "decimal(9, 2)", "initial-default": "1.50"},
        {
            "id": 3,
            "name": "l",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 4,
                "element-required": False,
                "element": {
                    "type": "map",
                    "key-id": 5,
                    "key": "string",
                    "value-id": 6,
                    "value": "int",
                    "value-required": True,
                },
            },
        },
    ],
}
SPEC: Any = {
    "spec-id": 1,
    "fields": [
        {"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[4]"},
        {"source-ids": [1, 2], "field-id": 1001, "name": "z", "transform": "zorder"},
    ],
}
ORDER: Any = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
MAPPING: Any = [{"field-id": 1, "names": ["a", "b"], "fields": [{"field-id": 2, "names": ["c"]}, {"names": []}]}]
DOCUMENTS: list[tuple[Any, Callable[[bytes], Any]]] = [
    (SCHEMA, lambda data: decode_json(data, Schema, "x")),
    (SPEC, lambda data: decode_json(data, PartitionSpec, "x")),
    (ORDER, lambda data: decode_json(data, SortOrder, "x")),
    (MAPPING, parse_name_mapping),
]
TYPES: list[IcebergType] = [
    *PRIMITIVES.values(),
    *(DecimalType(9, 2), DecimalType(38, 38), FixedType(4), GeographyType("a", "karney")),
    *(ListType(1, PRIMITIVES["date"], False), MapType(1, PRIMITIVES["string"], 2, PRIMITIVES["uuid"], False)),
    StructType((NestedField(1, "a", False, PRIMITIVES["int"]), NestedField(2, "b", False, PRIMITIVES["time"]))),
]
COLUMNS = Schema(tuple(NestedField(n + 1, f"c{n}", False, t) for n, t in enumerate(PRIMITIVES.values())))


def places(wire: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = wire.items() if isinstance(wire, dict) else enumerate(wire) if isinstance(wire, list) else ()
    return [place, *(p for key, value in inner for p in places(value, (*place, key)))]


def replaced(wire: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(wire)
    target = changed
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return changed


def attempt(action: Callable[[], Any], *errors: type[BerglineError]) -> tuple[Any, str]:
    """What the action gives, or the words of its error; any other error is a failure."""
    try:
        return action(), ""
    except errors as error:
        return None, str(error) or "no words"


@given(st.sampled_from(DOCUMENTS), st.data())
def test_changed_document_is_read_or_is_a_format_error(
    document: tuple[Any, Callable[[bytes], Any]], data: st.DataObject
) -> None:
    wire, parse = document
    changed = replaced(wire, data.draw(st.sampled_from(places(wire))), data.draw(anything))
    value, refused = attempt(lambda: parse(json.dumps(changed).encode()), FormatError)
    if refused:
        assert " in " in refused
        return
    written = render_name_mapping(value).encode() if isinstance(value, NameMapping) else encode_json(value)
    assert parse(written) == value


@given(st.sampled_from(DOCUMENTS), st.data())
def test_cut_or_damaged_bytes_are_read_or_are_a_format_error(
    document: tuple[Any, Callable[[bytes], Any]], data: st.DataObject
) -> None:
    wire, parse = document
    whole = json.dumps(wire).encode()
    at = data.draw(st.integers(0, len(whole)))
    rest = whole[at + data.draw(st.integers(0, 3)) :] if data.draw(st.booleans()) else b""
    damaged = whole[:at] + data.draw(st.binary(max_size=3)) + rest
    _, refused = attempt(lambda: parse(damaged), FormatError)
    assert refused != "no words"


@given(anything)
def test_any_json_is_a_type_or_is_refused(wire: Any) -> None:
    type_, refused = attempt(lambda: parse_type(wire), InvalidInputError)
    assert "expected" in refused or "missing" in refused or parse_type(json.loads(encode_json(type_))) == type_


@given(st.sampled_from(TYPES), anything)
def test_any_json_is_a_default_or_is_refused(type_: IcebergType, wire: Any) -> None:
    value, refused = attempt(lambda: decode_default(type_, wire), InvalidInputError)
    assert "$" in refused or decode_default(type_, encode_default(type_, value)) == value


@given(st.sampled_from(TYPES), st.one_of(anything, st.binary(), st.decimals(), st.uuids(), st.floats(), st.dates()))
def test_any_value_is_a_default_or_is_refused(type_: IcebergType, value: Any) -> None:
    wire, refused = attempt(lambda: encode_default(type_, value), InvalidInputError)
    read = None if refused else decode_default(type_, json.loads(encode_json(wire)))
    # what was too fine for the type is cut once, and then stays
    assert refused or decode_default(type_, encode_default(type_, read)) == read


@given(texts | st.text("()[],.`0123456789 abcdeghiklmnoprstuxy:_-+TZ", max_size=30))
def test_any_text_is_read_or_is_refused(text: str) -> None:
    parsers: list[Callable[[str], Any]] = [
        parse_primitive,
        parse_transform,
        iso.parse_date,
        lambda t: iso.parse_time(t, per_second=10**6),
        lambda t: iso.parse_timestamp(t, per_second=10**9, zone=True),
    ]
    for parse in parsers:
        value, refused = attempt(partial(parse, text), InvalidInputError)
        assert "expected" in refused or value is not None


terms = st.one_of(
    texts,
    st.builds(
        "{}({}c{}{}){}".format,
        st.sampled_from(["day", "hours", "bucket", "truncate", "identity", "zorder", ""]),
        st.sampled_from(["", "4, ", "0, ", "x, "]),
        st.integers(0, 20),
        st.sampled_from(["", ", 4", ", "]),
        st.sampled_from(["", " desc", " nulls last", " asc nulls first", " up", " nulls"]),
    ),
)


@given(st.lists(terms, max_size=3))
def test_any_terms_are_a_spec_and_an_order_or_are_refused(given_terms: list[str]) -> None:
    for parse in (parse_partition_by, parse_sort_by):
        value, refused = attempt(partial(parse, given_terms, COLUMNS), InvalidInputError, NotFoundError)
        assert refused or len(value.fields) == len(given_terms)
