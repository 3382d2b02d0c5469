"""Rows compared with the keys of equality deletes, as Iceberg compares them."""

import pyarrow as pa
import pyarrow.compute as pc


class KeySet:
    """Keys of one or more columns: null equals null, NaN equals NaN, -0.0 is not 0.0.

    Each column's values are numbered, and pairs of numbers are numbered again, so that a row is one number in the end.
    """

    def __init__(self, columns: list[pa.Array]) -> None:
        self._values: list[pa.Array] = []
        self._pairs: list[pa.Array] = []
        codes: pa.Array | None = None
        for column in map(_comparable, columns):
            values = pc.unique(column)
            self._values.append(values)
            own = _position(column, values)
            if codes is None:
                codes = own
                continue
            both = _pair(codes, own, values)
            self._pairs.append(pc.unique(both))
            codes = _position(both, self._pairs[-1])

    def matches(self, columns: list[pa.Array]) -> pa.Array:
        """Which rows are equal to a key, given the same columns of them."""
        own = [_position(_comparable(c), values) for c, values in zip(columns, self._values, strict=True)]
        codes = own[0]
        for values, pairs, other in zip(self._values[1:], self._pairs, own[1:], strict=True):
            codes = _position(_pair(codes, other, values), pairs)
        return pc.is_valid(codes)


def _pair(left: pa.Array, right: pa.Array, right_values: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(left, pa.scalar(len(right_values), pa.int64())), right)


def _position(column: pa.Array, values: pa.Array) -> pa.Array:
    """The position of each value in `values`; null for those that are not there."""
    return pc.index_in(column, value_set=values).cast(pa.int64())


def _comparable(column: pa.Array) -> pa.Array:
    """Values that Arrow compares by their bits."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        return column.storage
    if pa.types.is_floating(column.type):
        bits = pa.int32() if pa.types.is_float32(column.type) else pa.int64()
        one_nan = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
        return one_nan.view(bits)
    return column
