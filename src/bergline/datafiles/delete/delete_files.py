"""Delete files, read once and cached for the data files that they apply to."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_field, arrow_schema
from bergline.datafiles.file.columns import FileColumns, RowSource, named
from bergline.datafiles.file.constants import constant_array
from bergline.datafiles.file.plain_values import leaf_array
from bergline.datafiles.formats.data_input import open_data_file
from bergline.errors import FormatError
from bergline.format.deletes.delete_files import POSITION_DELETE_SCHEMA
from bergline.format.deletes.deletion_vector import parse_deletion_vector
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile, is_deletion_vector
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.name_mapping import NameMapping
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.plan import KeyColumn

_CACHE_BYTES = 128 * 1024 * 1024
_MAX_ROWS = 2**40
_Positions = dict[str, PositionSet]


class DeleteFiles:
    """The contents of delete files, cached for further data files in bounded memory."""

    def __init__(self, io: FileIO, *, cache_bytes: int = _CACHE_BYTES) -> None:
        self._io = io
        self._cache_bytes = cache_bytes
        self._kept: OrderedDict[Any, tuple[int, Any]] = OrderedDict()

    def positions(self, delete: DataFile, path: str) -> PositionSet:
        """The deleted positions of a data file."""
        if delete.file_format.upper() == "PUFFIN":
            return self._deletion_vector(delete, path)
        by_path: _Positions = self._remember((delete.file_path,), lambda: self._read_positions(delete))
        return by_path.get(path, PositionSet())

    def keys(self, delete: DataFile, columns: Sequence[KeyColumn], mapping: NameMapping | None) -> list[pa.Array]:
        """The key columns of an equality delete file."""
        key = (delete.file_path, *(c.field_id for c in columns))
        found: list[pa.Array] = self._remember(key, lambda: self._read_keys(delete, columns, mapping))
        return found

    def _remember(self, key: Any, load: Callable[[], tuple[int, Any]]) -> Any:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        self._kept[key] = loaded = load()
        while len(self._kept) > 1 and sum(size for size, _ in self._kept.values()) > self._cache_bytes:
            self._kept.popitem(last=False)
        return loaded[1]

    def _read_positions(self, delete: DataFile) -> tuple[int, _Positions]:
        chunks: dict[str, list[pa.Array]] = {}
        with open_data_file(self._io, delete) as file:
            columns = FileColumns(file.schema, named(POSITION_DELETE_SCHEMA), RowSource(delete))
            for first, batch in file.batches(columns.names):
                table = columns.convert(batch, first)
                if any(column.null_count for column in table.columns):
                    raise FormatError("expected a path and a position in every row, found null")
                grouped = table.group_by("file_path", use_threads=False).aggregate([("pos", "list")])
                positions = grouped.column("pos_list").combine_chunks()
                for data_path, found in zip(grouped.column("file_path").to_pylist(), positions, strict=True):
                    chunks.setdefault(data_path, []).append(found.values)
        by_path = {data_path: _position_set(found, data_path) for data_path, found in chunks.items()}
        # a bitmap takes no more memory than the positions themselves
        return sum(len(p) + sum(c.nbytes for c in found) for p, found in chunks.items()), by_path

    def _read_keys(
        self, delete: DataFile, columns: Sequence[KeyColumn], mapping: NameMapping | None
    ) -> tuple[int, list[pa.Array]]:
        wanted = {c.name: c.column for c in columns}
        table = pa.schema([arrow_field(c.column).with_name(c.name) for c in columns]).empty_table()
        with open_data_file(self._io, delete) as file:
            stored = FileColumns(file.schema, wanted, RowSource(delete), mapping)
            for column in columns:
                if column.column.id not in stored.stored:
                    raise FormatError(f"expected the key column `{column.path[0]}` of an equality delete, found none")
            parts = [stored.convert(batch, first) for first, batch in file.batches(stored.names)]
            table = pa.concat_tables([table, *parts])
        keys = [leaf_array(table, (c.name, *c.path[1:])).combine_chunks() for c in columns]
        return sum(k.nbytes for k in keys), keys

    def _deletion_vector(self, delete: DataFile, path: str) -> PositionSet:
        place = f"the deletion vector for {path} in {delete.file_path}"
        if delete.referenced_data_file != path:
            raise FormatError(f"expected {path}, found {delete.referenced_data_file} as the data file of {place}")
        if delete.content_offset is None or delete.content_size_in_bytes is None:
            raise FormatError(f"expected an offset and a size, found none for {place}")
        blob = self._io.read_range(delete.file_path, delete.content_offset, delete.content_size_in_bytes)
        return parse_deletion_vector(blob, place, delete.record_count)


def _position_set(chunks: list[pa.Array], path: str) -> PositionSet:
    positions = pa.chunked_array(chunks, pa.int64())
    found = pc.min_max(positions).as_py()
    # bitmaps of scattered positions would take much more memory than the file
    if found["min"] < 0 or found["max"] >= _MAX_ROWS:
        raise FormatError(f"expected deletes at positions of rows, found {found['min']} to {found['max']} for {path}")
    return position_set(positions)


def read_position_deletes(io: FileIO, delete: DataFile, spec: PartitionSpec, columns: Schema) -> Iterator[pa.Table]:
    """The rows of one delete file, in its columns and metadata columns; a deletion vector has no `row` column."""
    wanted, source = named(columns), RowSource(delete, spec=spec)
    if is_deletion_vector(delete):
        batch = _vector_rows(io, delete)
        yield FileColumns(batch.schema, wanted, source).convert(batch, 0)
        return
    with open_data_file(io, delete) as file:
        file_columns = FileColumns(file.schema, wanted, source)
        for first, batch in file.batches(file_columns.names):
            yield file_columns.convert(batch, first)


def _vector_rows(io: FileIO, delete: DataFile) -> pa.RecordBatch:
    path = delete.referenced_data_file
    if path is None:
        raise FormatError(f"expected the data file of a deletion vector, found none in {delete.file_path}")
    positions = DeleteFiles(io).positions(delete, path).to_arrow().combine_chunks()
    file_path, _ = POSITION_DELETE_SCHEMA.fields
    paths = constant_array(file_path.type, path, len(positions))
    return pa.record_batch([paths, positions], schema=arrow_schema(POSITION_DELETE_SCHEMA))
