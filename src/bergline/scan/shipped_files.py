"""Planned files as bytes, in columns, to send them from tasks that planned them to the driver."""

import io
import pickle
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import polars as pl

from bergline.format.manifest.columns import PHYSICAL_SCHEMA
from bergline.format.manifest.inheritance import entries_together
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.physical_schema import number_of, schema_of
from bergline.format.types.types import IcebergType, StructType
from bergline.scan.planned_files import FileGroup, PlannedFiles


class _ShippedGroup(msgspec.Struct, frozen=True):
    """The files of one partition spec."""

    frame: bytes
    spec_id: int
    partition: Mapping[int, IcebergType]
    deletes: Sequence[tuple[DataFile, ...]]
    schemas: Mapping[int, StructType]
    """Physical schemas by their numbers in the process that planned the files."""


def ship(files: PlannedFiles) -> bytes:
    """Planned files as bytes."""
    return pickle.dumps([_shipped(group) for group in files.groups])


def unship(blobs: Iterable[bytes]) -> PlannedFiles:
    """Files that were planned in parts, in the order of the parts; only bytes of our own tasks may be given."""
    by_spec: dict[int, list[FileGroup]] = {}
    for blob in blobs:
        for shipped in pickle.loads(blob):  # noqa: S301  (our own tasks wrote it)
            by_spec.setdefault(shipped.spec_id, []).append(_unshipped(shipped))
    return PlannedFiles([_together(groups) for groups in by_spec.values()])


def _shipped(group: FileGroup) -> _ShippedGroup:
    out = io.BytesIO()
    group.frame.write_ipc(out, compression="lz4")
    found = {n: schema_of(n) for n in group.frame[PHYSICAL_SCHEMA].unique().to_list() if n is not None}
    schemas = {number: schema for number, schema in found.items() if schema is not None}
    return _ShippedGroup(out.getvalue(), group.spec_id, group.partition, group.deletes, schemas)


def _unshipped(shipped: _ShippedGroup) -> FileGroup:
    frame = pl.read_ipc(io.BytesIO(shipped.frame))
    numbers = {theirs: number_of(schema) for theirs, schema in shipped.schemas.items()}
    here = pl.col(PHYSICAL_SCHEMA).replace_strict(numbers, default=None, return_dtype=pl.Int64)
    return FileGroup(frame.with_columns(here), shipped.spec_id, shipped.partition, shipped.deletes)


def _together(groups: Sequence[FileGroup]) -> FileGroup:
    if len(groups) == 1:
        return groups[0]
    deletes: list[tuple[DataFile, ...]] = []
    if any(group.deletes for group in groups):
        for group in groups:
            deletes += group.deletes or [()] * group.frame.height
    frame = entries_together([group.frame for group in groups])
    return FileGroup(frame, groups[0].spec_id, groups[0].partition, deletes)
