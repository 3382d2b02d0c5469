"""Deletes applied to the rows of one data file."""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from bergline.errors import FormatError
from bergline.format.manifest import DataFile, FileContent
from bergline.format.name_mapping import NameMapping
from bergline.format.position_set import PositionSet
from bergline.parquet.delete_files import DeleteFiles
from bergline.parquet.equality import KeySet
from bergline.parquet.plain import leaf_array
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
    ) -> None:
        by_position = [d for d in deletes if d.content is FileContent.POSITION_DELETES]
        self._positions = reduce(PositionSet.union, (files.positions(d, path) for d in by_position), PositionSet())
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
        """The rows that are deleted by position."""
        return self._positions

    @property
    def key_columns(self) -> list[KeyColumn]:
        """The columns that `deleted` must be given."""
        return list({c.field_id: c for columns, _ in self._keys for c in columns}.values())

    def check_positions(self, rows: int) -> None:
        """Refuse positions beyond the rows that the file has."""
        last = self._positions.last
        if last is not None and last >= rows:
            raise FormatError(f"expected deletes at positions below {rows}, found {last} for {self._path}")

    def deleted(self, rows: pa.Table, first: int) -> pa.Array | None:
        """A mask over rows from position `first` on, true for the deleted ones; None if none can be."""
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
