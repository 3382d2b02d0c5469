"""The columns that a read requests from a data file: stored ones, defaults, and metadata columns."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_field
from bergline.datafiles.file.constants import constant_array
from bergline.datafiles.file.hidden_nulls import fill_hidden_nulls
from bergline.datafiles.file.projection import missing, project
from bergline.datafiles.file.schema import by_field_id, identified
from bergline.errors import FormatError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.paths import unknown_text
from bergline.format.partition.spec import PartitionSpec
from bergline.format.partition.transforms import Identity, UnknownTransform
from bergline.format.schema.name_mapping import NameMapping
from bergline.format.schema.reserved import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    POS,
    ROW_ID,
    SPEC_ID,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import encode_default
from bergline.format.types.types import LONG, NestedField, StructType


class RowSource:
    """What metadata columns need to know of a data file: its path, partition, and inherited values."""

    def __init__(self, file: DataFile, sequence_number: int | None = None, spec: PartitionSpec | None = None) -> None:
        self.path = file.file_path
        self._first_row_id = file.first_row_id
        self._sequence_number = sequence_number
        self._spec_id = file.spec_id
        fields = spec.fields if spec else ()
        values = file.partition if spec else ()
        if len(fields) != len(values):
            raise FormatError(f"expected {len(fields)} partition values, found {len(values)} for {self.path}")
        self._partition = {
            f.field_id: unknown_text(value) if isinstance(f.transform, UnknownTransform) else value
            for f, value in zip(fields, values, strict=True)
        }
        self.identity_values: dict[int, Any] = {
            f.source_id: self._partition[f.field_id] for f in fields if isinstance(f.transform, Identity)
        }

    def reserved(self, field: NestedField, stored: pa.Array | None, first: int, rows: int) -> pa.Array | None:
        """The values of a metadata column for rows from position `first`; None for other columns."""
        match field.id:
            case FILE.id:
                return constant_array(field.type, self.path, rows)
            case POS.id:
                return row_positions(first, rows)
            case DELETED.id:
                return constant_array(field.type, False, rows)
            case SPEC_ID.id:
                return constant_array(field.type, self._spec_id, rows)
            case ROW_ID.id | LAST_UPDATED_SEQUENCE_NUMBER.id:
                return self._lineage(field, stored, first, rows)
        if field.id == PARTITION_ID:
            return self._partition_column(field, rows)
        return None

    def _lineage(self, field: NestedField, stored: pa.Array | None, first: int, rows: int) -> pa.Array:
        if self._first_row_id is None:
            # spec: a file without a first row id has no row ids, whatever it stores
            return constant_array(LONG, None, rows)
        if field.id == ROW_ID.id:
            return _stored_or(stored, row_positions(self._first_row_id + first, rows))
        return _stored_or(stored, constant_array(LONG, self._sequence_number, rows))

    def _partition_column(self, field: NestedField, rows: int) -> pa.Array:
        fields = getattr(field.type, "fields", ())
        value = {f.name: self._partition.get(f.id) for f in fields} if fields else None
        return constant_array(field.type, value, rows)


class FileColumns:
    """Which columns of a file are read, and their conversion to the requested columns."""

    def __init__(
        self,
        schema: pa.Schema,
        wanted: Mapping[str, NestedField],
        source: RowSource,
        mapping: NameMapping | None = None,
    ) -> None:
        self._wanted = {name: _with_partition_values(f, source.identity_values) for name, f in wanted.items()}
        self._source = source
        self._stored = identified(schema, mapping)
        self._positions = by_field_id(self._stored)
        used = {self._positions[f.id] for f in wanted.values() if f.id in self._positions}
        self.names = [schema.field(position).name for position in sorted(used)]
        """The names of the columns to read, as in the file."""
        if len(set(schema.names)) != len(schema.names):
            raise FormatError("expected each column name once, found one twice")

    @property
    def stored(self) -> dict[int, pa.Field]:
        """The file's columns by field id."""
        return {field_id: self._stored.field(position) for field_id, position in self._positions.items()}

    def convert(self, batch: pa.RecordBatch, first: int) -> pa.Table:
        """Convert rows of the file, from position `first`, to the requested columns."""
        fields, columns = [], []
        for name, field in self._wanted.items():
            fields.append(arrow_field(field).with_name(name))
            columns.append(fill_hidden_nulls(self._column(batch, field, first), fields[-1]))
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _column(self, batch: pa.RecordBatch, field: NestedField, first: int) -> pa.Array:
        stored = self._stored.field(self._positions[field.id]) if field.id in self._positions else None
        values = None if stored is None else project(batch.column(stored.name), stored, field, field.name)
        reserved = self._source.reserved(field, values, first, batch.num_rows)
        if reserved is not None:
            return reserved
        if values is not None:
            return values
        if field.id in self._source.identity_values:
            return constant_array(field.type, self._source.identity_values[field.id], batch.num_rows)
        return missing(field, batch.num_rows, field.name)


def _with_partition_values(field: NestedField, values: Mapping[int, Any]) -> NestedField:
    """A column in which nested fields have their partition values as defaults."""
    if not isinstance(field.type, StructType) or not values:
        return field
    fields = tuple(
        msgspec.structs.replace(f, initial_default=encode_default(f.type, values[f.id]))
        if f.id in values
        else _with_partition_values(f, values)
        for f in field.type.fields
    )
    return msgspec.structs.replace(field, type=StructType(fields))


def row_positions(first: int, rows: int) -> pa.Array:
    """The positions of `rows` rows from `first`."""
    return pc.add(_numbers(rows), pa.scalar(first, pa.int64()))


@lru_cache(maxsize=4)
def _numbers(rows: int) -> pa.Array:
    return pa.array(range(rows), pa.int64())


def named(schema: Schema) -> dict[str, NestedField]:
    """The top-level columns of a schema by name."""
    return {f.name: f for f in schema.fields}


def _stored_or(stored: pa.Array | None, inherited: pa.Array) -> pa.Array:
    return inherited if stored is None else pc.coalesce(stored, inherited)
