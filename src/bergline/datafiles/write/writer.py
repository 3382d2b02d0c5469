"""The writer: Arrow rows to Parquet files, split by partition and rolled at the target size."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Self

import msgspec
import pyarrow as pa

from bergline.datafiles.file.plain_values import distinct_values, leaf_array
from bergline.datafiles.write.fit import fit_to_schema
from bergline.datafiles.write.input_rows import ArrowRows
from bergline.datafiles.write.open_file import OpenFile, stored_schema
from bergline.datafiles.write.write_spec import WriteSpec, check_writable_types
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import PartitionField
from bergline.format.partition.transforms import Void
from bergline.format.schema.physical_schema import physical_schema
from bergline.format.types.types import StructType
from bergline.io.fileio import FileIO
from bergline.io.locations import join

_MAX_OPEN_FILES = 200
_MAX_WAITING_BYTES = 512 * 1024 * 1024


class DataFileWriter:
    """Writes rows to files whose names begin with `prefix`, which must be unique to this writer.

    Used as a context: leaving it with an error removes every file that it wrote. With a `partition`, all rows belong to
    it and need not have its source columns.
    """

    def __init__(self, io: FileIO, spec: WriteSpec, prefix: str, *, partition: tuple[Any, ...] | None = None) -> None:
        self._io = io
        self._partition = partition
        self._spec = spec
        self._prefix = prefix
        check_writable_types(spec.schema)
        self._open: dict[tuple[Any, ...], OpenFile] = {}
        self._done: list[DataFile] = []
        self._count = 0
        fields = [f for f in spec.spec.fields if not isinstance(f.transform, Void)]
        self._sources = {f.field_id: spec.schema.paths.get(f.source_id) for f in fields}
        if partition is None and None in self._sources.values():
            raise InvalidInputError("expected partition columns outside lists and maps")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is not None:
            self.abort()

    def write(self, rows: ArrowRows) -> None:
        """Add rows, which must fit the schema. A RecordBatchReader is consumed batch by batch."""
        if isinstance(rows, pa.RecordBatchReader):
            for batch in rows:
                self.write(batch)
            return
        table = fit_to_schema(rows, self._spec.schema)
        if table.num_rows == 0:
            return
        for partition, part in self._split(table):
            key = tuple(map(_file_key, partition))
            for piece in _pieces(part, self._spec.row_group_bytes):
                if key not in self._open:
                    if len(self._open) >= _MAX_OPEN_FILES:
                        self._finish(next(iter(self._open)))
                    self._open[key] = self._start(partition)
                file = self._open[key]
                file.write(piece)
                if file.size >= self._spec.target_file_size:
                    self._finish(key)
        self._limit_memory()

    def finish(self) -> list[DataFile]:
        """Close all files and return them."""
        for key in list(self._open):
            self._finish(key)
        return self._done

    def abort(self) -> None:
        """Remove every file."""
        for file in self._open.values():
            file.abort()
        self._open.clear()
        self._io.delete([f.file_path for f in self._done])
        self._done.clear()

    @cached_property
    def _physical_schema(self) -> StructType:
        return physical_schema(stored_schema(self._spec.schema).fields)

    def _finish(self, key: tuple[Any, ...]) -> None:
        self._done.append(msgspec.structs.replace(self._open[key].finish(), physical_schema=self._physical_schema))
        del self._open[key]

    def _limit_memory(self) -> None:
        """Flush the largest buffer when the buffers of all partitions exceed the limit."""
        while sum(file.waiting_bytes for file in self._open.values()) > _MAX_WAITING_BYTES:
            max(self._open.values(), key=lambda file: file.waiting_bytes).flush()

    def _start(self, partition: tuple[Any, ...]) -> OpenFile:
        self._count += 1
        directory = self._spec.spec.partition_path(self._spec.schema, partition)
        name = f"{self._prefix}-{self._count:05d}.parquet"
        location = join(self._spec.data_location, *([directory] if directory else []), name)
        return OpenFile(self._io, self._spec, partition, location)

    def _split(self, table: pa.Table) -> list[tuple[tuple[Any, ...], pa.Table]]:
        """Split rows by partition; `void` fields are null."""
        if self._partition is not None:
            return [(self._partition, table)]
        fields = self._spec.spec.fields
        columns = {
            str(f.field_id): _partition_column(table, path, self._transform(f))
            for f in fields
            if (path := self._sources.get(f.field_id)) is not None
        }
        if not columns:
            return [((None,) * len(fields), table)]
        # values are transformed once per distinct value; from here on rows are grouped by small numbers
        numbers = {name: positions for name, (_, positions) in columns.items()}
        keys = pa.table(numbers | {"row": pa.array(range(table.num_rows))})
        groups = keys.group_by(list(columns), use_threads=False).aggregate([("row", "list")])
        names = [str(f.field_id) for f in fields]
        return [
            (
                tuple(columns[name][0][group[name]] if name in columns else None for name in names),
                table.take(pa.array(group["row_list"])),
            )
            for group in groups.to_pylist()
        ]

    def _transform(self, field: PartitionField) -> Callable[[Any], Any]:
        source = self._spec.schema.ids[field.source_id].type
        return lambda value: field.transform.apply(source, value)


def _pieces(table: pa.Table, limit: int) -> Iterator[pa.Table]:
    """Slices of about `limit` bytes; the last one, which may be buffered, is copied so as not to keep the others."""
    rows = max(1, table.num_rows * limit // max(1, table.nbytes))
    last = (table.num_rows - 1) // rows * rows
    for start in range(0, last, rows):
        yield table.slice(start, rows)
    yield table.take(pa.array(range(last, table.num_rows), pa.int64())) if last else table


def _partition_column(
    table: pa.Table, path: tuple[str, ...], transform: Callable[[Any], Any]
) -> tuple[Mapping[int, Any], pa.Array]:
    """The distinct partition values, and the index of each row's value."""
    distinct, indices = distinct_values(leaf_array(table, path))
    partitions = [transform(v) for v in distinct]
    numbers: dict[Any, int] = {}
    mapping = pa.array([numbers.setdefault(_file_key(p), len(numbers)) for p in partitions], pa.int64())
    return dict(zip(mapping.to_pylist(), partitions, strict=True)), mapping.take(indices)


def _file_key(value: Any) -> Any:
    """The identity of a partition value: all NaNs are equal, -0.0 is not 0.0, as readers may use it for the rows."""
    return repr(value) if isinstance(value, float) else value
