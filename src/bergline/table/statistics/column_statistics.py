"""Distinct values of the columns of a snapshot: theta sketches in a Puffin file."""

import functools
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from bergline.catalog.metadata_files import metadata_directory
from bergline.errors import InvalidInputError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.deletes.puffin import Blob, footer_size, render_puffin
from bergline.format.encoding.theta_sketch import ThetaSketch, join_sketches, parse_theta_sketch
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import BlobMetadata, StatisticsFile, TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    UNKNOWN,
    VARIANT,
    GeographyType,
    GeometryType,
    NestedField,
    StructType,
    child_fields,
)
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.planner import plan_scan
from bergline.table.engine.row_engine import RowEngine
from bergline.table.engine.sketches import sketch_files

THETA_SKETCH: Final = "apache-datasketches-theta-v1"
NDV: Final = "ndv"
_CREATED_BY: Final = {"created-by": "bergline"}
_PART_BYTES: Final = 32 * 1024 * 1024
_OPENING: Final = 4 * 1024 * 1024
"""The cost of opening a file, in bytes that could be read in that time."""
_MOST_SKETCHES: Final = 4096
"""The most sketches that are returned, of 32 KiB each."""


def write_column_statistics(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, columns: Sequence[str] | None, engine: RowEngine
) -> StatisticsFile:
    """Compute the sketches of columns, by default all that can have one, and write them to a new file."""
    fields = _fields(_schema(metadata, snapshot), columns)
    sketches = _sketches(io, metadata, snapshot, fields, engine)
    blobs = [
        Blob(
            type=THETA_SKETCH,
            fields=(field.id,),
            content=sketch.to_bytes(),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            compression_codec="zstd",
            properties={NDV: str(int(sketch.estimate))},
        )
        for field, sketch in zip(fields, sketches, strict=True)
    ]
    data, _ = render_puffin(blobs, dict(_CREATED_BY))
    location = join(metadata_directory(metadata), f"{snapshot.snapshot_id}-{uuid.uuid4()}.stats")
    io.create(location, data)
    return StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        file_size_in_bytes=len(data),
        file_footer_size_in_bytes=footer_size(data, len(data), location),
        blob_metadata=tuple(
            BlobMetadata(b.type, b.snapshot_id, b.sequence_number, b.fields, b.properties) for b in blobs
        ),
    )


def _sketches(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, fields: Sequence[NestedField], engine: RowEngine
) -> list[ThetaSketch]:
    schema = _schema(metadata, snapshot)
    top = {schema.paths[field.id][0] for field in fields}
    read = Schema(fields=tuple(f for f in schema.fields if f.name in top), schema_id=schema.schema_id)
    plan = plan_scan(io, metadata, snapshot.snapshot_id, table_schema=schema, columns=read, row_filter=ALWAYS_TRUE)
    files = plan.files.without_metrics if isinstance(plan.files, PlannedFiles) else plan.files
    parts = list(_parts(files, max(1, _MOST_SKETCHES // len(fields))))
    work = functools.partial(
        sketch_files, plan=msgspec.structs.replace(plan, files=()), field_ids=[f.id for f in fields]
    )
    what = f"compute statistics of {len(fields)} columns of snapshot {snapshot.snapshot_id}"
    found = engine.compute(io, what, work, parts, metadata.location)
    place = f"a sketch of snapshot {snapshot.snapshot_id}"
    return [join_sketches(parse_theta_sketch(sketches[n], place) for sketches in found) for n in range(len(fields))]


def _parts(files: Sequence[PlannedFile], most: int) -> Iterator[list[PlannedFile]]:
    """Files in order, in parts that are large enough for a task."""
    costs = [planned.file.file_size_in_bytes + _OPENING for planned in files]
    limit = max(_PART_BYTES, sum(costs) // most)
    waiting: list[PlannedFile] = []
    size = 0
    for planned, cost in zip(files, costs, strict=True):
        waiting.append(planned)
        size += cost
        if size >= limit:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _schema(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    return metadata.schema if snapshot.schema_id is None else metadata.schema_by_id(snapshot.schema_id)


def _fields(schema: Schema, columns: Sequence[str] | None) -> list[NestedField]:
    if columns is None:
        fields = [f for f in schema.fields if _has_sketch(f)]
        if not fields:
            raise InvalidInputError("expected a column of a primitive type to compute statistics of, found none")
        return fields
    if not columns:
        raise InvalidInputError("expected at least one column to compute statistics of, found none")
    found = {field.id: field for field in map(schema.find, columns)}
    for field_id, field in found.items():
        name = schema.names_by_id[field_id]
        if not _has_sketch(field):
            raise InvalidInputError(f"expected a column of a primitive type, found `{field.type}` in column `{name}`")
        if field_id not in schema.paths:
            raise InvalidInputError(f"expected a column outside of lists and maps, found `{name}`")
    return list(found.values())


def _has_sketch(field: NestedField) -> bool:
    """Whether values have a binary single-value encoding."""
    return not child_fields(field.type) and not (
        isinstance(field.type, StructType | GeometryType | GeographyType) or field.type in (UNKNOWN, VARIANT)
    )
