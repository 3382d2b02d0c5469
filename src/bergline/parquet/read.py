"""The one reader: a planned file to Arrow in the columns asked for, matched by field id."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bergline.errors import FormatError, UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.schema import Schema
from bergline.format.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
)
from bergline.io.fileio import FileIO
from bergline.parquet.arrow_schema import arrow_field, arrow_schema, arrow_type, file_field_id
from bergline.parquet.deletes import rows_to_keep
from bergline.parquet.filter import arrow_filter
from bergline.scan.plan import PlannedFile, ScanPlan, columns_to_read


def read_plan(io: FileIO, plan: ScanPlan) -> pa.Table:
    """All rows of a plan."""
    tables = [read_file(io, file, plan) for file in plan.files]
    return pa.concat_tables(tables) if tables else arrow_schema(plan.schema).empty_table()


def read_file(io: FileIO, planned: PlannedFile, plan: ScanPlan) -> pa.Table:
    """The matching rows of one file."""
    path = planned.file.file_path
    if planned.file.file_format != "PARQUET":
        raise UnsupportedError(f"expected a Parquet file, found {planned.file.file_format} at {path}")
    wanted = columns_to_read(plan)
    table = _read_by_id(io, path, wanted)
    if planned.deletes:
        mask = rows_to_keep(
            table.num_rows,
            path,
            planned.deletes,
            keys=lambda columns: _read_by_id(io, path, columns),
            key_columns=plan.key_columns,
            read=lambda delete, columns: _read_by_id(io, delete, columns),
        )
        table = table.filter(mask)
    if plan.filter != ALWAYS_TRUE:
        table = table.filter(arrow_filter(plan.filter, plan.table_schema))
    return table.select([f.name for f in plan.schema.fields])


def _read_by_id(io: FileIO, path: str, columns: Schema) -> pa.Table:
    """All rows of a file in these columns."""
    try:
        with io.open_input(path) as stream, pq.ParquetFile(stream) as file:
            return _read_columns(file, columns, path)
    except FormatError as error:
        raise FormatError(f"{error} in {path}") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"expected a Parquet file, found {error} in {path}") from error


def _read_columns(file: pq.ParquetFile, wanted: Schema, path: str) -> pa.Table:
    by_id = {file_field_id(f): f for f in file.schema_arrow}
    if None in by_id:
        raise UnsupportedError(f"expected field ids in the Parquet file, found none for a column of {path}")
    present = [by_id[f.id].name for f in wanted.fields if f.id in by_id]
    table = file.read(columns=present, use_threads=True)
    columns = [
        _project(table.column(by_id[f.id].name).combine_chunks(), by_id[f.id], f)
        if f.id in by_id
        else _missing(f, file.metadata.num_rows)
        for f in wanted.fields
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(wanted))


def _missing(field: NestedField, rows: int) -> pa.Array:
    if field.required:
        raise FormatError(f"expected the required column `{field.name}` (id {field.id}), found none")
    return pa.nulls(rows, arrow_field(field).type)


def _project(array: pa.Array, file_field: pa.Field, field: NestedField) -> pa.Array:
    """A column as the table has it now: renamed, reordered, widened, missing parts null."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, file_field.type)
    target = arrow_type(field.type)
    _check_kind(array.type, field)
    match field.type:
        case StructType(fields):
            by_id = {file_field_id(c): i for i, c in enumerate(file_field.type)}
            parts = array.flatten()
            children = [
                _project(parts[by_id[f.id]], file_field.type[by_id[f.id]], f)
                if f.id in by_id
                else _missing(f, len(array))
                for f in fields
            ]
            return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
        case ListType():
            # a file may ask for large lists or lists of one length
            array = array.cast(pa.list_(array.type.value_field))
            offsets, first, length = _offsets(array)
            values = _project(array.values.slice(first, length), array.type.value_field, child_fields(field.type)[0])
            return pa.ListArray.from_arrays(offsets, values, type=target, mask=array.is_null())
        case MapType():
            offsets, first, length = _offsets(array)
            key, value = child_fields(field.type)
            keys = _project(array.keys.slice(first, length), file_field.type.key_field, key)
            items = _project(array.items.slice(first, length), file_field.type.item_field, value)
            return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=array.is_null())
    return array if array.type == target else pc.cast(array, target)


def _offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Offsets from zero, and the range of child values that they cover."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return pc.subtract(array.offsets, pa.scalar(first, pa.int32())), first, last - first


def _check_kind(found: pa.DataType, field: NestedField) -> None:
    types = pa.types
    kinds: dict[type, Callable[[pa.DataType], bool]] = {
        StructType: types.is_struct,
        ListType: lambda t: any(is_kind(t) for is_kind in _LISTS),
        MapType: types.is_map,
    }
    fits = kinds.get(type(field.type), lambda t: not types.is_nested(t))
    if not fits(found):
        raise FormatError(f"expected `{field.type}` in column `{field.name}`, found `{found}`")


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
