"""The one reader: a planned file to Arrow in the columns asked for, matched by field id."""

from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bergline.errors import FormatError, UnsupportedError
from bergline.expressions.predicate import (
    Always,
    And,
    Comparison,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
    columns_of,
)
from bergline.format.schema import Schema
from bergline.format.types import (
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
)
from bergline.io.fileio import FileIO
from bergline.parquet.arrow_schema import arrow_field, arrow_schema, arrow_type, file_field_id
from bergline.scan.plan import PlannedFile, ScanPlan


def read_plan(io: FileIO, plan: ScanPlan) -> pa.Table:
    """All rows of a plan."""
    tables = [read_file(io, file, plan) for file in plan.files]
    return pa.concat_tables(tables) if tables else arrow_schema(plan.schema).empty_table()


def read_file(io: FileIO, planned: PlannedFile, plan: ScanPlan) -> pa.Table:
    """The matching rows of one file."""
    path = planned.file.file_path
    if planned.file.file_format != "PARQUET":
        raise UnsupportedError(f"expected a Parquet file, found {planned.file.file_format} at {path}")
    wanted = _with_filter_columns(plan)
    try:
        with io.open_input(path) as stream, pq.ParquetFile(stream) as file:
            table = _read_columns(file, wanted, path)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"expected a Parquet file, found {error} in {path}") from error
    if plan.filter != Always(True):
        table = table.filter(arrow_filter(plan.filter, plan.table_schema))
    return table.select([f.name for f in plan.schema.fields])


def arrow_filter(predicate: Predicate, schema: Schema) -> pc.Expression:
    """A bound predicate as an Arrow expression; null counts as unknown."""
    match predicate:
        case Always(value):
            return pc.scalar(value)
        case Comparison(column, op, literal):
            return _COMPARE[op](_field(column), _scalar(literal, schema.names[column].type))
        case IsIn(column, literals):
            type_ = schema.names[column].type
            values = pa.array([_scalar(v, type_).as_py() for v in literals], arrow_type(type_))
            # isin answers false for null where SQL says unknown
            return pc.if_else(pc.is_null(_field(column)), pa.scalar(None, pa.bool_()), _field(column).isin(values))
        case IsNull(column):
            return _field(column).is_null()
        case Not(child):
            return ~arrow_filter(child, schema)
        case And(left, right):
            return arrow_filter(left, schema) & arrow_filter(right, schema)
        case Or(left, right):
            return arrow_filter(left, schema) | arrow_filter(right, schema)
        case _:
            assert_never(predicate)


_COMPARE: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _with_filter_columns(plan: ScanPlan) -> Schema:
    extra = {name.split(".")[0] for name in columns_of(plan.filter)} - {f.name for f in plan.schema.fields}
    return Schema(fields=(*plan.schema.fields, *(f for f in plan.table_schema.fields if f.name in extra)))


def _read_columns(file: pq.ParquetFile, wanted: Schema, path: str) -> pa.Table:
    by_id = {file_field_id(f): f for f in file.schema_arrow}
    if None in by_id:
        raise UnsupportedError(f"expected field ids in the Parquet file, found none for a column of {path}")
    present = [by_id[f.id].name for f in wanted.fields if f.id in by_id]
    table = file.read(columns=present, use_threads=True)
    columns = [
        _project(table.column(by_id[f.id].name).combine_chunks(), by_id[f.id], f)
        if f.id in by_id
        else _missing(f, file.metadata.num_rows, path)
        for f in wanted.fields
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(wanted))


def _missing(field: NestedField, rows: int, path: str) -> pa.Array:
    if field.required:
        raise FormatError(f"expected the required column `{field.name}` (id {field.id}), found none in {path}")
    return pa.nulls(rows, arrow_field(field).type)


def _project(array: pa.Array, file_field: pa.Field, field: NestedField) -> pa.Array:
    """A column as the table has it now: renamed, reordered, widened, missing parts null."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, file_field.type)
    target = arrow_type(field.type)
    match field.type:
        case StructType(fields):
            by_id = {file_field_id(c): i for i, c in enumerate(file_field.type)}
            parts = array.flatten()
            children = [
                _project(parts[by_id[f.id]], file_field.type[by_id[f.id]], f)
                if f.id in by_id
                else pa.nulls(len(array), arrow_type(f.type))
                for f in fields
            ]
            return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
        case ListType():
            offsets, first, length = _offsets(array)
            values = _project(
                array.values.slice(first, length), file_field.type.value_field, child_fields(field.type)[0]
            )
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


def _field(column: str) -> pc.Expression:
    return pc.field(*column.split("."))


def _scalar(literal: Any, type_: IcebergType) -> pa.Scalar:
    """A plain value as an Arrow scalar of the column's type."""
    target = arrow_type(type_)
    if type_ == DATE:
        return pa.scalar(literal, pa.int32()).cast(target)
    if type_ in (TIME, TIMESTAMP, TIMESTAMPTZ):
        return pa.scalar(literal, pa.int64()).cast(target)
    return pa.scalar(literal, target)
