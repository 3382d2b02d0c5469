"""Rows that are taken in part, and choices among branches."""

import pyarrow as pa
import pytest

from bergline.errors import InvalidInputError
from bergline.format.types.types import LONG
from bergline.table.row_expressions.rows import ColumnPlace, Rows, choose, literal_expression
from support.fixtures.expression_rows import bound

TABLE = pa.table({"l": pa.array([5, None, 7], pa.int64()), "b": pa.array([True, False, None])})


def test_rows_are_taken_by_column() -> None:
    rows = Rows.of({"target": TABLE}).take(pa.array([2, 0]))
    assert rows.count == 2
    assert rows.columns[ColumnPlace("target", "l")].to_pylist() == [7, 5]
    assert set(rows.columns) == {ColumnPlace("target", "l"), ColumnPlace("target", "b")}


def test_the_first_branch_that_holds_is_taken() -> None:
    rows = Rows.of({"target": TABLE})
    one, two = literal_expression(LONG, 1, "1"), bound("l")
    assert choose(rows, [(bound("b"), one), (bound("l = 7"), two)], LONG).to_pylist() == [1, None, 7]
    assert choose(rows, [(bound("b"), one), (None, two)], LONG).to_pylist() == [1, None, 7]
    assert choose(rows, [], LONG).to_pylist() == [None] * 3


def test_an_error_of_arrow_names_the_expression() -> None:
    broken = literal_expression(LONG, 1, "x").__class__(LONG, lambda _: pa.array(["a"]).cast(pa.int64()), text="x")
    with pytest.raises(InvalidInputError, match="cannot compute `x`"):
        broken.evaluate(Rows(1, {}))
