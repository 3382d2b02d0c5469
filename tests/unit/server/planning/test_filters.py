"""Filters of the protocol."""

from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, LONG, NestedField
from bergline.server.planning import filters as wire_filters
from bergline.server.planning.fields import FieldNames
from bergline.server.planning.filters import FilterCache, FilterGroup, FilterPredicate, read_filter, reduced


def test_long_filters_are_read_once_for_each_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_filters, "_MAX_CACHED_TEXT", 100_000)
    kept = FilterCache()
    names, other = (
        FieldNames(Schema(fields=(NestedField(id=1, name="x", type=kind, required=False),))) for kind in (LONG, DATE)
    )
    wire = {"type": "in", "term": "x", "values": list(range(4_000))}
    first = kept.read(wire, names)
    assert kept.read(dict(wire), names) is first
    assert kept.read({**wire, "type": "not-in"}, names) is not first
    assert kept.read(wire, other) is not first
    for number in range(1, 6):
        kept.read({**wire, "values": list(range(number, number + 4_000))}, names)
    assert kept.read(wire, names) is not first  # in bounded memory


NAMES = FieldNames(Schema(fields=(NestedField(id=1, name="x", type=LONG, required=False),)))
EQ = {"type": "eq", "term": "x", "value": 3}


def test_negation_goes_down_to_the_predicates() -> None:
    other = {"type": "is-null", "term": "x"}
    read = read_filter({"type": "not", "child": {"type": "and", "left": EQ, "right": other}}, NAMES)
    assert isinstance(read, FilterGroup)
    assert read.kind == "or"
    assert [part.wire["type"] for part in read.parts if isinstance(part, FilterPredicate)] == ["not-eq", "not-null"]


def test_decided_predicates_are_left_out() -> None:
    group = read_filter({"type": "and", "left": EQ, "right": {"type": "gt", "term": "x", "value": 1}}, NAMES)
    assert reduced(group, lambda _: None) == group
    assert reduced(group, lambda _: True) is True
    assert reduced(group, lambda predicate: False if "=" in str(predicate) else None) is False


@pytest.mark.parametrize(
    ("wire", "place"),
    [
        ({"type": "like", "term": "x"}, r"found `like` at \$\.filter"),
        ({"type": "eq", "term": "x"}, r"expected a literal, found None at \$\.filter\.right"),
        ({"type": "not", "child": 7}, r"found 7 at \$\.filter\.child"),
        ({"type": "eq", "term": "y", "value": 1}, r"at \$\.filter\.term"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(wire: Any, place: str) -> None:
    with pytest.raises(InvalidInputError, match=place):
        read_filter(wire, NAMES)


def test_transformed_columns_select_every_file() -> None:
    term = {"type": "transform", "transform": "bucket[4]", "term": "x"}
    read = read_filter({"type": "eq", "term": term, "value": 3}, NAMES)
    assert isinstance(read, FilterPredicate)
    assert read.bound is None
