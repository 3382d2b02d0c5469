"""Pairs of matching target and source rows, for a part of the target at a time."""

from collections import ChainMap
from collections.abc import Iterator
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from bergline.arguments import shown
from bergline.errors import InvalidInputError
from bergline.format.types.types import UUID, FixedType, IcebergType
from bergline.table.row_expressions.rows import Rows
from bergline.table.row_merges.bind import BoundMerge
from bergline.table.row_merges.source import SourceRows

_MOST_PAIRS: Final = 1 << 20
"""How many pairs are examined at a time if the join has no keys."""
_ROW: Final = "row"


class Pairs:
    """Target and source rows by their indexes, in a part of the target and in all source rows."""

    def __init__(self, target: pa.Array, source: pa.Array) -> None:
        self.target = target
        self.source = source

    def filter(self, mask: pa.Array) -> "Pairs":
        """Some of the pairs."""
        return Pairs(self.target.filter(mask), self.source.filter(mask))


class SourceIndex:
    """The source rows by their keys; a null key is equal to nothing, and NaN to itself, as in Spark."""

    def __init__(self, merge: BoundMerge, source: SourceRows) -> None:
        self.merge = merge
        self.rows = Rows.of({merge.source_alias: source.table}, source.table.num_rows)
        self._keys = self._frame(self.rows, [key.source.evaluate(self.rows) for key in merge.keys])
        if merge.unique_source:
            self._check_unique()

    def pairs(self, target: Rows) -> Pairs:
        """The pairs of some target rows, at most one for each of them if the merge changes matched rows."""
        if not self.rows.count:
            return Pairs(pa.array([], pa.int64()), pa.array([], pa.int64()))
        found = list(self._joined(target))
        pairs = Pairs(
            pa.concat_arrays([pair.target for pair in found] or [pa.array([], pa.int64())]),
            pa.concat_arrays([pair.source for pair in found] or [pa.array([], pa.int64())]),
        )
        if self.merge.one_source_row:
            self._check_one_source_row(pairs, target)
        return pairs

    def side_by_side(self, target: Rows, pairs: Pairs) -> Rows:
        """The columns of both sides for some pairs."""
        left, right = target.take(pairs.target), self.rows.take(pairs.source)
        return Rows(len(pairs.target), ChainMap(left.columns, right.columns))  # type: ignore[arg-type]

    def _joined(self, target: Rows) -> Iterator[Pairs]:
        if self.merge.keys:
            keys = self._frame(target, [key.target.evaluate(target) for key in self.merge.keys])
            on = [name for name in keys.columns if name != _ROW]
            joined = keys.join(self._keys, on=on, how="inner", suffix="_source")
            yield self._holding(target, Pairs(_numbers(joined[_ROW]), _numbers(joined[f"{_ROW}_source"])))
            return
        size = max(1, _MOST_PAIRS // self.rows.count)
        for start in range(0, target.count, size):
            part = pl.DataFrame({_ROW: pl.arange(start, min(start + size, target.count), dtype=pl.Int64, eager=True)})
            crossed = part.join(self._keys, how="cross", suffix="_source")
            yield self._holding(target, Pairs(_numbers(crossed[_ROW]), _numbers(crossed[f"{_ROW}_source"])))

    def _holding(self, target: Rows, pairs: Pairs) -> Pairs:
        """The pairs for which the rest of the condition holds."""
        if self.merge.condition is None or not len(pairs.target):
            return pairs
        return pairs.filter(self.merge.condition.is_true(self.side_by_side(target, pairs)))

    def _frame(self, rows: Rows, keys: list[pa.Array]) -> pl.DataFrame:
        types = [key.source.type for key in self.merge.keys]
        columns = {f"key{n}": pl.Series(_hashable(k, t)) for n, (k, t) in enumerate(zip(keys, types, strict=True))}
        return pl.DataFrame({**columns, _ROW: pl.arange(rows.count, dtype=pl.Int64, eager=True)})

    def _check_unique(self) -> None:
        names = [name for name in self._keys.columns if name != _ROW]
        columns = ", ".join(f"`{'.'.join(key.source.column or (key.text,))}`" for key in self.merge.keys)
        for key, name in zip(self.merge.keys, names, strict=True):
            if self._keys[name].null_count():
                raise InvalidInputError(
                    f"expected a key in every row of the source, found null in column "
                    f"`{'.'.join(key.source.column or (key.text,))}`"
                )
        twice = self._keys.filter(pl.struct(names).is_duplicated())
        if twice.height:
            shown_key = self._shown(self.rows, int(twice[_ROW][0]), source=True)
            raise InvalidInputError(
                f"expected each key ({columns}) once in the source, found several rows with {shown_key}",
                hints=["keep one row for each key"],
            )

    def _check_one_source_row(self, pairs: Pairs, target: Rows) -> None:
        if len(pc.unique(pairs.target)) == len(pairs.target):
            return
        counts = pc.value_counts(pairs.target)
        several = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
        row = self._shown(target, several["values"], source=False)
        raise InvalidInputError(
            f"expected at most one source row for each target row, found {several['counts']} for the row with {row}",
            hints=["keep one source row for each target row, or make the condition stricter"],
            condition="MERGE_CARDINALITY_VIOLATION",
        )

    def _shown(self, rows: Rows, number: int, *, source: bool) -> str:
        one = rows.take(pa.array([number], pa.int64()))
        sides = [key.source if source else key.target for key in self.merge.keys]
        parts = [f"{side.text} = {shown(side.evaluate(one)[0].as_py())}" for side in sides]
        return ", ".join(parts) or f"number {number}"


def _hashable(keys: pa.Array, type_: IcebergType) -> pa.Array:
    """Keys in a form that polars can join."""
    if type_ == UUID:
        keys = keys.cast(pa.binary(16))
    return keys.cast(pa.binary()) if type_ == UUID or isinstance(type_, FixedType) else keys


def _numbers(series: pl.Series) -> pa.Array:
    return series.cast(pl.Int64).to_arrow()
