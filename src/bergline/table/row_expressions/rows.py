"""Rows on which expressions are evaluated, and expressions bound to their columns.

An expression knows its type before any row is read. Branches of CASE and the like are evaluated only on the rows that
take them, so that an error in another branch does not matter, as in SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.datafiles.file.constants import constant_array
from bergline.errors import InvalidInputError
from bergline.format.types.types import UNKNOWN, IcebergType


class ColumnPlace(msgspec.Struct, frozen=True):
    """A top-level column of one side of a statement: the target, or the source."""

    side: str
    name: str


class Rows:
    """Columns of equal length, by place."""

    def __init__(self, count: int, columns: Mapping[ColumnPlace, pa.Array]) -> None:
        self.count = count
        self.columns = columns

    @classmethod
    def of(cls, sides: Mapping[str, pa.Table | pa.RecordBatch], count: int | None = None) -> "Rows":
        """Tables side by side; the row count is needed only if there may be no columns."""
        columns = {
            ColumnPlace(side, name): _whole(table.column(name))
            for side, table in sides.items()
            for name in table.schema.names
        }
        found = next((table.num_rows for table in sides.values()), 0)
        return cls(found if count is None else count, columns)

    def take(self, indices: pa.Array) -> "Rows":
        """The rows at some positions."""
        return Rows(len(indices), _Taken(self.columns, indices))


class RowExpression(msgspec.Struct, frozen=True):
    """An expression with a value for each row: its type, the columns that it reads, and how to compute it."""

    type: IcebergType
    run: Callable[[Rows], pa.Array]
    places: frozenset[ColumnPlace] = frozenset()
    text: str = ""
    """For messages."""
    literal: Any = msgspec.UNSET
    """The value, if it was written as a literal."""
    column: tuple[str, ...] | None = None
    """The path of names, if it is a plain column."""

    @property
    def is_literal(self) -> bool:
        """Whether it was written as a literal."""
        return self.literal is not msgspec.UNSET

    def evaluate(self, rows: Rows) -> pa.Array:
        """The values, in the Arrow type of the expression; InvalidInputError for overflow and the like."""
        try:
            return self.run(rows)
        except pa.ArrowException as error:
            raise InvalidInputError(f"cannot compute `{self.text}`: {error}") from error

    def is_true(self, rows: Rows) -> pa.Array:
        """Where a condition holds; unknown counts as false."""
        return pc.fill_null(self.evaluate(rows), False)


def column_expression(place: ColumnPlace, path: Sequence[str], type_: IcebergType, text: str) -> RowExpression:
    """A column, or a field inside structs."""

    def run(rows: Rows) -> pa.Array:
        values = rows.columns[place]
        return pc.struct_field(values, list(path)) if path else values

    return RowExpression(type_, run, frozenset((place,)), text, column=(place.name, *path))


def literal_expression(type_: IcebergType, value: Any, text: str) -> RowExpression:
    """One plain value for all rows (see `constant_array`); NULL is of type unknown."""
    return RowExpression(type_, lambda rows: constant_array(type_, value, rows.count), text=text, literal=value)


def null_expression(text: str = "NULL") -> RowExpression:
    """NULL, which fits every type."""
    return literal_expression(UNKNOWN, None, text)


def places_of(*expressions: RowExpression) -> frozenset[ColumnPlace]:
    """The columns that some expressions read."""
    return frozenset().union(*(e.places for e in expressions))


def choose(rows: Rows, branches: Sequence[tuple[RowExpression | None, RowExpression]], type_: IcebergType) -> pa.Array:
    """The value of the first branch whose condition holds, null if none does; each is evaluated only if reached.

    A branch without a condition takes all remaining rows.
    """
    remaining = pa.array(range(rows.count), pa.int64())
    found: list[pa.Array] = []
    positions: list[pa.Array] = []
    for condition, value in branches:
        reached = rows.take(remaining)
        holds = pa.repeat(True, len(remaining)) if condition is None else condition.is_true(reached)
        taken = remaining.filter(holds)
        if len(taken):
            found.append(value.evaluate(rows.take(taken)))
            positions.append(taken)
        remaining = remaining.filter(pc.invert(holds))
    found.append(pa.nulls(len(remaining), arrow_type(type_)))
    positions.append(remaining)
    order = pc.sort_indices(pa.concat_arrays(positions))
    return pa.concat_arrays(found).take(order)


class _Taken(Mapping[ColumnPlace, pa.Array]):
    """Columns whose rows are taken lazily, when a column is used."""

    def __init__(self, columns: Mapping[ColumnPlace, pa.Array], indices: pa.Array) -> None:
        self._columns = columns
        self._indices = indices
        self._known: dict[ColumnPlace, pa.Array] = {}

    def __getitem__(self, place: ColumnPlace) -> pa.Array:
        if place not in self._known:
            self._known[place] = self._columns[place].take(self._indices)
        return self._known[place]

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
