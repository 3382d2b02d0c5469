"""How much metrics say of each column."""

from typing import Any

import pytest

from bergline.datafiles.write.metrics_mode import (
    COUNTS,
    FULL,
    NONE,
    TRUNCATE_16,
    MetricsMode,
    metrics_modes,
    parse_mode,
)
from bergline.errors import InvalidInputError
from bergline.format.partition.sort_order import UNSORTED, SortField, SortOrder
from bergline.format.partition.transforms import IDENTITY, Bucket
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, STRING, ListType, MapType, NestedField, StructType


def optional(field_id: int, name: str, type_: Any) -> NestedField:
    return NestedField(field_id, name, False, type_)


SCHEMA = Schema(
    fields=(
        optional(1, "a", INT),
        optional(2, "s", StructType((optional(3, "x", INT), optional(4, "y", STRING)))),
        optional(5, "l", ListType(6, INT, False)),
        optional(7, "m", MapType(8, STRING, 9, StructType((optional(10, "z", INT),)), False)),
        optional(11, "b", STRING),
    )
)
ORDER = SortOrder(1, (SortField(11, IDENTITY, "asc", "nulls-first"), SortField(4, Bucket(4), "asc", "nulls-first")))
DEFAULT, COLUMN = "write.metadata.metrics.default", "write.metadata.metrics.column."
LIMIT = "write.metadata.metrics.max-inferred-column-defaults"


def modes(properties: dict[str, str], order: SortOrder = UNSORTED) -> dict[int, MetricsMode]:
    found = metrics_modes(properties, SCHEMA, order)
    return {i: found.mode(i) for i in (1, 3, 4, 6, 8, 10, 11)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", NONE),
        ("Counts", COUNTS),
        ("FULL", FULL),
        ("truncate(16)", TRUNCATE_16),
        ("Truncate(7)", MetricsMode(counted=True, bound_length=7)),
        ("truncate(0)", None),
        ("truncate( 7 )", None),
        ("truncate", None),
        ("", None),
    ],
)
def test_modes_are_parsed(text: str, expected: MetricsMode | None) -> None:
    assert parse_mode(text) == expected


def test_small_tables_have_short_bounds_of_every_column() -> None:
    assert set(modes({}).values()) == {TRUNCATE_16}


def test_default_and_columns_are_set_by_properties() -> None:
    found = modes({DEFAULT: "counts", f"{COLUMN}b": "full", f"{COLUMN}s.x": "none", f"{COLUMN}nowhere": "full"})
    assert found == dict.fromkeys((1, 4, 6, 8, 10), COUNTS) | {3: NONE, 11: FULL}


def test_mode_that_does_not_parse_counts_as_not_given() -> None:
    assert modes({DEFAULT: "some"}) == modes({})
    assert modes({DEFAULT: "counts", f"{COLUMN}b": "some"})[11] == COUNTS


# Java counts 1, 2, 3, 4, 6, 10 and 11 (no key, as the map's values are nested), and takes the top level first
@pytest.mark.parametrize(
    ("limit", "with_metrics"),
    [
        ("7", [1, 3, 4, 6, 8, 10, 11]),
        ("6", [1, 3, 4, 6, 8, 11]),
        ("3", [1, 3, 11]),
        ("1", [1]),
        ("0", []),
        ("-1", [1, 3, 4, 6, 8, 10, 11]),
    ],
)
def test_wide_tables_have_metrics_of_the_first_columns_only(limit: str, with_metrics: list[int]) -> None:
    found = modes({LIMIT: limit})
    assert [i for i, mode in found.items() if mode == TRUNCATE_16] == with_metrics
    assert all(mode in (TRUNCATE_16, NONE) for mode in found.values())


def test_limit_does_not_count_where_a_default_is_set() -> None:
    assert set(modes({LIMIT: "0", DEFAULT: "full"}).values()) == {FULL}


def test_limit_must_be_a_number() -> None:
    with pytest.raises(InvalidInputError, match="expected a whole number"):
        modes({LIMIT: "many"})


@pytest.mark.parametrize(("default", "expected"), [("none", TRUNCATE_16), ("counts", TRUNCATE_16), ("full", FULL)])
def test_sorted_columns_have_bounds(default: str, expected: MetricsMode) -> None:
    found = modes({DEFAULT: default}, ORDER)
    assert (found[11], found[4]) == (expected, parse_mode(default))
    assert modes({DEFAULT: default, f"{COLUMN}b": "none"}, ORDER)[11] == NONE
