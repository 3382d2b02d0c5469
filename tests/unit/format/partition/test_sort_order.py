"""Sort orders are kept as they were written."""

import pytest

from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.partition.sort_order import UNSORTED, SortField, SortOrder, parse_sort_by
from bergline.format.partition.transforms import IDENTITY, Bucket
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, GeometryType, ListType, NestedField


def test_order_survives_its_json() -> None:
    field = b'{"source-id":2,"transform":"bucket[4]","direction":"desc","null-order":"nulls-last"}'
    data = b'{"order-id":3,"fields":[%s]}' % field
    assert encode_json(decode_json(data, SortOrder, "x")) == data


def test_order_zero_is_unsorted() -> None:
    assert encode_json(UNSORTED) == b'{"order-id":0,"fields":[]}'


def test_unknown_direction_names_the_place() -> None:
    data = (
        b'{"order-id":1,"fields":[{"source-id":2,"transform":"identity","direction":"up","null-order":"nulls-last"}]}'
    )
    with pytest.raises(FormatError, match=r"expected asc or desc in a sort field, found `up` at \$\.fields\[0\] in x"):
        decode_json(data, SortOrder, "x")


SCHEMA = Schema(
    (
        NestedField(1, "id", True, LONG),
        NestedField(2, "region", False, STRING),
        NestedField(3, "desc", False, STRING),
        NestedField(4, "tags", False, ListType(5, STRING, False)),
        NestedField(6, "shape", False, GeometryType("OGC:CRS84")),
    )
)


@pytest.mark.parametrize(
    ("term", "field"),
    [
        ("region", SortField(2, IDENTITY, "asc", "nulls-first")),
        ("region DESC", SortField(2, IDENTITY, "desc", "nulls-last")),
        ("region desc  nulls  first", SortField(2, IDENTITY, "desc", "nulls-first")),
        ("region nulls last", SortField(2, IDENTITY, "asc", "nulls-last")),
        ("bucket(16, id) desc", SortField(1, Bucket(16), "desc", "nulls-last")),
        ("desc", SortField(3, IDENTITY, "asc", "nulls-first")),
        ("desc desc", SortField(3, IDENTITY, "desc", "nulls-last")),
    ],
)
def test_term_says_direction_and_nulls(term: str, field: SortField) -> None:
    assert parse_sort_by([term], SCHEMA) == SortOrder(1, (field,))


def test_no_terms_are_the_unsorted_order() -> None:
    assert parse_sort_by([], SCHEMA) == UNSORTED


@pytest.mark.parametrize("term", ["tags", "shape", "day(region)", "region up", "", "nulls last", "bucket(0, id)"])
def test_term_that_cannot_be_is_refused(term: str) -> None:
    with pytest.raises((InvalidInputError, NotFoundError)):
        parse_sort_by([term], SCHEMA)


def test_case_of_directions_does_not_count() -> None:
    data = b'{"source-id":2,"transform":"identity","direction":"DESC","null-order":"Nulls-First"}'
    assert decode_json(data, SortField, "x") == SortField(2, IDENTITY, "desc", "nulls-first")


def test_transform_of_several_columns_survives_its_json() -> None:
    data = b'{"transform":"zorder","direction":"asc","null-order":"nulls-first","source-ids":[1,2]}'
    assert encode_json(decode_json(data, SortField, "x")) == data


@pytest.mark.parametrize("missing", ["source-id", "transform", "direction", "null-order"])
def test_field_that_lacks_something_is_a_format_error(missing: str) -> None:
    field = {"source-id": 2, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    del field[missing]
    with pytest.raises(FormatError, match=r"expected .* in x"):
        decode_json(encode_json(field), SortField, "x")


@pytest.mark.parametrize("term", ["id descending", "bucket(4, id) ASCENDING", "id descending nulls last"])
def test_long_words_for_a_direction_are_refused_with_the_short_ones(term: str) -> None:
    with pytest.raises(InvalidInputError, match=r"(?i)expected asc or desc after a sort term, found `(de|a)scending`"):
        parse_sort_by([term], SCHEMA)


def test_column_may_have_such_a_word_in_its_name() -> None:
    schema = Schema((NestedField(1, "is descending", False, LONG),))
    assert parse_sort_by(["is descending desc"], schema).fields[0].direction == "desc"
