"""Columns of manifests as Arrow arrays."""

import datetime as dt

import polars as pl
import pyarrow as pa
import pytest

from bergline.errors import FormatError
from bergline.format.types.types import DATE, LONG, FixedType
from bergline.table.inspection.arrow_columns import COUNTS, INTS, column_array, struct_array, value_array


def test_lists_of_pairs_become_maps_and_nulls_stay_null() -> None:
    pairs = pl.List(pl.Struct({"key": pl.Int32, "value": pl.Int64}))
    series = pl.Series("value_counts", [[{"key": 1, "value": 5}], None, []], dtype=pairs)
    assert column_array(series, COUNTS).to_pylist() == [[(1, 5)], None, []]


def test_column_that_does_not_fit_names_itself() -> None:
    assert column_array(pl.Series("ids", [[1, 2]]), INTS).to_pylist() == [[1, 2]]
    with pytest.raises(FormatError, match="expected `int32` in `spec_id`"):
        column_array(pl.Series("spec_id", [2**40]), pa.int32())


def test_values_get_the_type_of_their_column() -> None:
    assert value_array(pl.Series([2, None]), DATE).to_pylist() == [dt.date(1970, 1, 3), None]
    assert value_array(pl.Series([None, None]), LONG) == pa.nulls(2, pa.int64())
    assert value_array(pl.Series([b"ab"]), FixedType(2)).type == pa.binary(2)


def test_structs_without_fields_are_not_null() -> None:
    assert struct_array([], pa.struct([]), 2).to_pylist() == [{}, {}]
    assert struct_array([pa.array([1])], pa.struct([("a", pa.int64())]), 1).to_pylist() == [{"a": 1}]
