"""Applying deletes to the rows of one data file."""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.file.plain_values import leaf_array
from bergline.errors import FormatError
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.name_mapping import NameMapping
from bergline.scan.plan import KeyColumn


class DeletedRows:
    """Which rows of a data file are deleted."""

    def __init__(
        self,
        path: str,
        deletes: Sequence[DataFile],
        *,
        files: DeleteFiles,
        key_columns: Sequence[KeyColumn],
        mapping: NameMapping | None = None,
        more: PositionSet | None = None,
    ) -> None:
        """`more` are further deleted positions, in addition to those of the delete files."""
        by_position = [d for d in deletes if d.content is FileContent.POSITION_DELETES]
        self._positions = reduce(
            PositionSet.union, (files.positions(d, path) for d in by_position), more or PositionSet()
        )
        self._path = path
        self._keys: list[tuple[list[KeyColumn], KeySet]] = []
        for ids, together in _by_key([d for d in deletes if d.content is FileContent.EQUALITY_DELETES]).items():
            columns = [c for c in key_columns if c.field_id in ids]
            if len(columns) != len(ids):
                raise FormatError(f"expected columns with ids {ids}, found others for {together[0].file_path}")
            parts = [files.keys(d, columns, mapping) for d in together]
            self._keys.append((columns, KeySet([pa.concat_arrays(same) for same in zip(*parts, strict=True)])))

    @property
    def positions(self) -> PositionSet:
        """The positions deleted by position deletes."""
        return self._positions

    @property
    def key_columns(self) -> list[KeyColumn]:
        """The columns that `deleted` needs."""
        return list({c.field_id: c for columns, _ in self._keys for c in columns}.values())

    def check_positions(self, rows: int) -> None:
        """Refuse positions beyond the end of the file."""
        last = self._positions.last
        if last is not None and last >= rows:
            raise FormatError(f"expected deletes at positions below {rows}, found {last} for {self._path}")

    def deleted(self, rows: pa.Table, first: int) -> pa.Array | None:
        """A mask over rows from position `first`, true for deleted ones; None if no row can be deleted."""
        masks = [self._positions.to_mask(rows.num_rows, first)] if self._positions else []
        for columns, keys in self._keys:
            masks.append(keys.matches([leaf_array(rows, (c.name, *c.path[1:])) for c in columns]))
        if not masks:
            return None
        result = masks[0]
        for mask in masks[1:]:
            result = pc.or_(result, mask)
        return result


def _by_key(deletes: list[DataFile]) -> dict[tuple[int, ...], list[DataFile]]:
    by_key: dict[tuple[int, ...], list[DataFile]] = {}
    for delete in deletes:
        if not delete.equality_ids:
            raise FormatError(f"expected equality ids, found none for {delete.file_path}")
        by_key.setdefault(tuple(sorted(set(delete.equality_ids))), []).append(delete)
    return by_key


class KeySet:
    """Keys of one or more columns: null equals null, NaN equals NaN, -0.0 is not 0.0.

    Each column's values are numbered, then pairs of numbers are numbered again, until a row is a single number.
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
        """A mask of the rows that equal a key; `rows` holds the same columns."""
        own = [_position(_comparable(c), values) for c, values in zip(columns, self._values, strict=True)]
        codes = own[0]
        for values, pairs, other in zip(self._values[1:], self._pairs, own[1:], strict=True):
            codes = _position(_pair(codes, other, values), pairs)
        return pc.is_valid(codes)


def _pair(left: pa.Array, right: pa.Array, right_values: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(left, pa.scalar(len(right_values), pa.int64())), right)


def _position(column: pa.Array, values: pa.Array) -> pa.Array:
    """The index of each value in `values`; null if it is not among them."""
    return pc.index_in(column, value_set=values).cast(pa.int64())


def _comparable(column: pa.Array) -> pa.Array:
    """Values in a form that Arrow compares bitwise."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        return column.storage
    if pa.types.is_floating(column.type):
        bits = pa.int32() if pa.types.is_float32(column.type) else pa.int64()
        one_nan = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
        return one_nan.view(bits)
    return column
