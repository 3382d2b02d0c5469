"""Writing delete files: position deletes and equality deletes.

Deletion vectors, the position deletes of format version 3, are Puffin files (`format.deletes.deletion_vector`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.write.fit import fit_to_schema
from bergline.datafiles.write.input_rows import ArrowRows
from bergline.datafiles.write.metrics_mode import FULL, MetricsModes
from bergline.datafiles.write.open_file import OpenFile
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.errors import InvalidInputError
from bergline.format.deletes.delete_files import POSITION_DELETE_SCHEMA
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.schema import Schema
from bergline.format.types.types import VARIANT, NestedField, StructType, child_fields
from bergline.io.fileio import FileIO


def write_position_deletes(
    io: FileIO,
    spec: WriteSpec,
    location: str,
    positions: Mapping[str, PositionSet | Iterable[int]],
    *,
    partition: tuple[Any, ...] = (),
) -> DataFile:
    """Write a position delete file for rows of data files in one partition."""
    found = {path: _positions(positions[path]) for path in sorted(positions)}
    paths = [path for path in found if found[path]]
    if not paths:
        raise InvalidInputError("expected positions to delete, found none")
    schema = arrow_schema(POSITION_DELETE_SCHEMA)
    table = pa.concat_tables(
        pa.table([pa.repeat(pa.scalar(path, schema.types[0]), len(found[path])), found[path].to_arrow()], schema=schema)
        for path in paths
    )
    of_deletes = msgspec.structs.replace(spec, schema=POSITION_DELETE_SCHEMA, metrics=MetricsModes(FULL))
    file = _write(io, of_deletes, location, partition, table)
    return msgspec.structs.replace(
        file,
        content=FileContent.POSITION_DELETES,
        sort_order_id=None,
        referenced_data_file=paths[0] if len(paths) == 1 else None,
    )


def write_equality_deletes(
    io: FileIO,
    spec: WriteSpec,
    location: str,
    rows: ArrowRows,
    equality_ids: Sequence[int],
    *,
    partition: tuple[Any, ...] = (),
) -> DataFile:
    """Write an equality delete file for rows equal to one of `rows` in the columns with these ids."""
    keys = key_schema(spec.schema, equality_ids)
    table = fit_to_schema(rows, keys)
    if not table.num_rows:
        raise InvalidInputError("expected keys to delete, found none")
    file = _write(io, msgspec.structs.replace(spec, schema=keys), location, partition, table)
    return msgspec.structs.replace(file, content=FileContent.EQUALITY_DELETES, equality_ids=tuple(equality_ids))


def key_schema(schema: Schema, ids: Sequence[int]) -> Schema:
    """The schema of only the columns with these ids, inside their structs."""
    if not ids:
        raise InvalidInputError("expected columns to compare, found none")
    for field_id in ids:
        field = schema.ids.get(field_id)
        if field is None or field_id not in schema.paths or child_fields(field.type) or field.type == VARIANT:
            found = "none" if field is None else f"`{schema.names_by_id[field_id]}` of type `{field.type}`"
            raise InvalidInputError(
                f"expected a primitive column outside lists and maps with id {field_id}, found {found}"
            )
    return Schema(fields=_only(schema.fields, frozenset(ids)), schema_id=schema.schema_id)


def _positions(positions: PositionSet | Iterable[int]) -> PositionSet:
    return positions if isinstance(positions, PositionSet) else position_set(list(positions))


def _only(fields: tuple[NestedField, ...], ids: frozenset[int]) -> tuple[NestedField, ...]:
    kept = []
    for field in fields:
        if field.id in ids:
            kept.append(field)
        elif isinstance(field.type, StructType) and (inside := _only(field.type.fields, ids)):
            kept.append(msgspec.structs.replace(field, type=StructType(inside)))
    return tuple(kept)


def _write(io: FileIO, spec: WriteSpec, location: str, partition: tuple[Any, ...], table: pa.Table) -> DataFile:
    file = OpenFile(io, spec, partition, location)
    try:
        file.write(table)
        return file.finish()
    except BaseException:
        file.abort()
        raise
