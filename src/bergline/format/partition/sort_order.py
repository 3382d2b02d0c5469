"""Sort orders: the declared order of rows within files."""

from collections.abc import Sequence
from typing import Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.encoding.integers import Int
from bergline.format.partition.spec import NO_SOURCE, check_sources, check_transforms
from bergline.format.partition.terms import parse_term
from bergline.format.partition.transforms import Transform, UnknownTransform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import child_fields

FIRST_SORT_ORDER_ID: Final = 1
_DIRECTIONS = ("asc", "desc")
_LONG_DIRECTIONS = {"ascending", "descending"}
_NULL_ORDERS = ("nulls-first", "nulls-last")


class SortField(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One term of a sort order: `asc` or `desc`, with `nulls-first` or `nulls-last`.

    Without a source id the transform takes several columns.
    """

    source_id: Int = NO_SOURCE
    transform: Transform = msgspec.field(default_factory=lambda: UnknownTransform(""))
    direction: str = msgspec.field(default_factory=str)
    null_order: str = msgspec.field(default_factory=str)
    source_ids: tuple[Int, ...] = ()

    def __post_init__(self) -> None:
        if self.transform == UnknownTransform(""):
            raise InvalidInputError("expected a transform for each sort field, found none")
        check_sources(self, "each sort field")
        for name, known in (("direction", _DIRECTIONS), ("null_order", _NULL_ORDERS)):
            text = getattr(self, name)
            if text.lower() not in known:
                raise InvalidInputError(f"expected {' or '.join(known)} in a sort field, found `{text[:40]}`")
            if text not in known:
                msgspec.structs.force_setattr(self, name, text.lower())


class SortOrder(msgspec.Struct, frozen=True, rename="kebab"):
    """Sort fields in order; order 0 is unsorted."""

    order_id: Int
    fields: tuple[SortField, ...]


UNSORTED = SortOrder(order_id=0, fields=())


def parse_sort_by(terms: Sequence[str], schema: Schema) -> SortOrder:
    """Parse `["region desc nulls last", "bucket(16, id)"]`; nulls default to first if ascending, last if descending."""
    fields = tuple(_parse_field(term, schema) for term in terms)
    return SortOrder(FIRST_SORT_ORDER_ID, fields) if fields else UNSORTED


def _parse_field(text: str, schema: Schema) -> SortField:
    term, nulls = _cut(text.strip(), {"nulls first": _NULL_ORDERS[0], "nulls last": _NULL_ORDERS[1]})
    term, direction = _cut(term, {"asc": "asc", "desc": "desc"})
    if (last := term.rpartition(" ")[2]).lower() in _LONG_DIRECTIONS and term not in schema.names:
        raise InvalidInputError(f"expected asc or desc after a sort term, found `{last}` in `{text[:80]}`")
    transform, column = parse_term(term)
    source = schema.find(column)
    if child_fields(source.type):
        raise InvalidInputError(f"expected a primitive column to sort by, found `{source.type}` in `{text[:80]}`")
    check_transforms(transform, source.type, schema.names_by_id[source.id])
    default = _NULL_ORDERS[0] if direction in (None, "asc") else _NULL_ORDERS[1]
    return SortField(source.id, transform, direction or "asc", nulls or default)


def _cut(text: str, endings: dict[str, str]) -> tuple[str, str | None]:
    """Split off a suffix of whole words; returns the rest and the meaning of the suffix."""
    for ending, meaning in endings.items():
        parts = text.rsplit(None, ending.count(" ") + 1)
        if " ".join(parts[1:]).lower() == ending:
            return parts[0], meaning
    return text, None
