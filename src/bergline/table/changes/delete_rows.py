"""Delete rows where they are (merge on read): find their positions, and write delete files for a row delta.

Format version 2 has position delete files, one for each data file or, by `write.delete.granularity`, for each
partition; version 3 has deletion vectors, all in one Puffin file. What older delete files say of one data file goes
into the new ones, which take their place.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, Final

import msgspec
import pyarrow as pa

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile, is_deletion_vector, partition_key
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.reserved import POS
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.parquet.delete.delete_files import DeleteFiles
from bergline.parquet.read.reader import read_file
from bergline.parquet.write.delete_writer import write_position_deletes
from bergline.parquet.write.write_spec import WriteSpec, delete_write_spec
from bergline.scan.plan import PlannedFile, ScanPlan

GRANULARITY: Final = "write.delete.granularity"
GRANULARITIES: Final = ("file", "partition")
_FIRST_WITH_DELETES: Final = 2
_FIRST_WITH_VECTORS: Final = 3


class DeletesByPosition(msgspec.Struct, frozen=True):
    """What a row delta needs: `RowDelta(io, deletes, replaced, since=plan.snapshot_id, checks=…)`."""

    deletes: tuple[DataFile, ...] = ()
    """New delete files; none if no row matches."""
    replaced: tuple[DataFile, ...] = ()
    """Older delete files whose positions are in the new ones: to be removed."""
    referenced: frozenset[str] = frozenset()
    """The data files whose rows are deleted: they must still be there at the commit."""
    rows: int = 0
    """How many rows are deleted that were not before."""


class _Found(msgspec.Struct, frozen=True):
    file: DataFile
    positions: PositionSet
    replaced: tuple[DataFile, ...]


def write_deletes_by_position(io: FileIO, metadata: TableMetadata, plan: ScanPlan) -> DeletesByPosition:
    """Delete files for the rows of a planned scan: those that match its filter and are not deleted yet."""
    if metadata.format_version < _FIRST_WITH_DELETES:
        raise UnsupportedError(f"expected format version 2 or higher to delete rows, found {metadata.format_version}")
    vectors = metadata.format_version >= _FIRST_WITH_VECTORS
    by_file = vectors or granularity(metadata) == "file"
    matching = _matching(io, plan)
    known = DeleteFiles(io)
    rows, found = 0, []
    for planned, positions in matching:
        rows += len(positions)
        older = _older(planned, vectors=vectors) if by_file else ((), ())
        said = (known.positions(delete, planned.file.file_path) for delete in older[0])
        found.append(_Found(planned.file, reduce(PositionSet.union, said, positions), older[1]))
    if not found:
        return DeletesByPosition()
    write = _write_vectors if vectors else _write_files
    return DeletesByPosition(
        tuple(write(io, metadata, found)),
        tuple(delete for f in found for delete in f.replaced),
        frozenset(f.file.file_path for f in found),
        rows,
    )


def granularity(metadata: TableMetadata) -> str:
    """Whether a position delete file is about one data file or about a partition."""
    return check_granularity(GRANULARITY, metadata.properties.get(GRANULARITY, GRANULARITIES[0]))


def check_granularity(key: str, value: str) -> str:
    """The granularity of this name, in any case."""
    if value.lower() not in GRANULARITIES:
        raise InvalidInputError(f"expected {' or '.join(GRANULARITIES)} for property `{key}`, found `{value}`")
    return value.lower()


def _matching(io: FileIO, plan: ScanPlan) -> Iterator[tuple[PlannedFile, PositionSet]]:
    only_positions = msgspec.structs.replace(plan, schema=Schema(fields=(POS,)))
    deletes = DeleteFiles(io)
    for planned in plan.files:
        batches = read_file(io, planned, only_positions, deletes)
        positions = position_set(pa.chunked_array([b.column(0) for b in batches], pa.int64()))
        if positions:
            yield planned, positions


def _older(planned: PlannedFile, *, vectors: bool) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """The deletes by position whose positions the new file takes over, and those of them that it replaces.

    A deletion vector hides position delete files, so it must hold what they say; those of a whole partition stay for
    the partition's other data files.
    """
    by_position = planned.position_deletes
    of_one = tuple(d for d in by_position if is_deletion_vector(d) or only_data_file(d) is not None)
    return (by_position if vectors else of_one), of_one


def _write_vectors(io: FileIO, metadata: TableMetadata, found: Iterable[_Found]) -> Iterable[DataFile]:
    name = f"00000-0-{uuid.uuid4()}-deletes.puffin"
    location = join(delete_write_spec(metadata).data_location, name)
    data, deletes = deletion_vector_file(location, [(f.file, f.positions) for f in found], "bergline")
    io.create(location, data)
    return deletes


def _write_files(io: FileIO, metadata: TableMetadata, found: Iterable[_Found]) -> Iterable[DataFile]:
    by_file = granularity(metadata) == "file"
    groups: dict[Any, list[_Found]] = defaultdict(list)
    for one in found:
        groups[one.file.file_path if by_file else partition_key(one.file)].append(one)
    spec, prefix = delete_write_spec(metadata), f"00000-0-{uuid.uuid4()}"
    written: list[DataFile] = []
    try:
        for number, group in enumerate(groups.values(), start=1):
            name = f"{prefix}-{number:05d}-deletes.parquet"
            written.append(_write_file(io, metadata, spec, name, group))
    except BaseException:
        io.delete([f.file_path for f in written])
        raise
    return written


def _write_file(io: FileIO, metadata: TableMetadata, spec: WriteSpec, name: str, group: list[_Found]) -> DataFile:
    data = group[0].file
    partitioned = metadata.specs_by_id[data.spec_id]
    directory = partitioned.partition_path(metadata.schema_for(partitioned), data.partition)
    return write_position_deletes(
        io,
        msgspec.structs.replace(spec, spec=partitioned),
        join(spec.data_location, *([directory] if directory else []), name),
        {f.file.file_path: f.positions for f in group},
        partition=data.partition,
    )
