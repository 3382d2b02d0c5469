"""Sketches of the distinct values of columns; runs in this process and in Spark's tasks."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.file.plain_values import leaf_array, plain_array
from bergline.datafiles.read.reader import read_file
from bergline.format.encoding.theta_sketch import ThetaSketchBuilder
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import BINARY, STRING, FixedType, IcebergType, PrimitiveType
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan

_AS_STORED = frozenset(
    ("int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
)
"""Types that Arrow stores in their single-value encoding: little-endian, of fixed length."""


def sketch_files(io: FileIO, files: Sequence[PlannedFile], plan: ScanPlan, field_ids: Sequence[int]) -> list[bytes]:
    """A sketch of each column's values in the live rows of data files, in compact form."""
    deletes = DeleteFiles(io)
    columns = [(plan.schema.paths[i], plan.schema.ids[i].type, ThetaSketchBuilder()) for i in field_ids]
    for planned in files:
        for batch in read_file(io, planned, plan, deletes):
            rows = pa.Table.from_batches([batch])
            for path, type_, sketch in columns:
                sketch.add(encoded_values(type_, leaf_array(rows, path)))
    return [sketch.build().to_bytes() for *_, sketch in columns]


def encoded_values(type_: IcebergType, column: pa.ChunkedArray) -> Iterable[bytes]:
    """The distinct values of a column, without null, in the binary single-value encoding."""
    plain = plain_array(column)
    if isinstance(type_, PrimitiveType) and type_.name in _AS_STORED:
        return _stored_bytes(pc.unique(plain).drop_null())
    values = pc.unique(plain).drop_null()
    if type_ in (STRING, BINARY) or isinstance(type_, FixedType):
        return values.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
    return [encode_value(type_, value) for value in values.to_pylist()]


def _stored_bytes(values: pa.Array) -> list[bytes]:
    width = values.type.bit_width // 8
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(values), [None, values.buffers()[1]], offset=values.offset
    )
    return fixed.to_pylist()  # type: ignore[no-any-return]
