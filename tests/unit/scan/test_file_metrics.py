"""Metrics of one column over many files."""

import polars as pl
import pytest

from bergline.errors import FormatError
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import LONG
from bergline.scan.pruning import column_metrics, values_of

PAIRS = pl.List(pl.Struct({"key": pl.Int32, "value": pl.Int64}))


def maps(*values: dict[int, int] | None) -> pl.Series:
    pairs = [None if v is None else [{"key": k, "value": n} for k, n in v.items()] for v in values]
    return pl.Series(pairs, dtype=PAIRS)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (maps({1: 10, 2: 20}, {1: 11, 2: 21}), [20, 21]),
        (maps({2: 20, 1: 10}, {1: 11, 2: 21}), [20, 21]),
        (maps(None, {}, {1: 11, 2: 21}, {1: 5}), [None, None, 21, None]),
        (maps({1: 1}, {2: 2, 1: 1}), [None, 2]),
        (maps({1: 1, 2: 2}, {2: 3}), [2, 3]),
        (maps(None, None), [None, None]),
        (maps({}, {}), [None, None]),
        (maps(), []),
    ],
)
def test_value_of_a_key_is_found_wherever_it_stands(column: pl.Series, expected: list[int | None]) -> None:
    assert values_of(column, 2).to_list() == expected


def test_first_pair_counts_where_a_key_stands_twice() -> None:
    column = pl.Series([[{"key": 1, "value": 1}], [{"key": 2, "value": 5}, {"key": 2, "value": 6}]], dtype=PAIRS)
    assert values_of(column, 2).to_list() == [None, 5]


def files(*bounds: bytes | None) -> pl.DataFrame:
    bound_type = pl.List(pl.Struct({"key": pl.Int32, "value": pl.Binary}))
    counts = maps(*({1: 3} for _ in bounds))
    return pl.DataFrame(
        {
            "file_path": [f"memory:/{n}" for n in range(len(bounds))],
            "lower_bounds": pl.Series([[{"key": 1, "value": b}] for b in bounds], dtype=bound_type),
            "upper_bounds": pl.Series([None for _ in bounds], dtype=bound_type),
            "null_value_counts": counts,
            "value_counts": counts,
            "nan_value_counts": maps(*(None for _ in bounds)),
        }
    )


def test_metrics_are_null_where_entries_say_nothing() -> None:
    found = column_metrics(files(encode_value(LONG, 5), None), 1, LONG)
    assert (found.lower.to_list(), found.upper.to_list()) == ([5, None], [None, None])
    assert (found.null_count.to_list(), found.nan_count.to_list()) == ([3, 3], [None, None])


def test_bound_that_is_no_value_is_refused_with_its_file() -> None:
    with pytest.raises(FormatError, match="`lower_bounds` of column 1 for memory:/1"):
        column_metrics(files(encode_value(LONG, 5), b"123"), 1, LONG)
