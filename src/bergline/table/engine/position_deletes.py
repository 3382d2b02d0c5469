"""Rows deleted by position (merge-on-read): finding the positions, and writing the delete files.

Format version 2 has position delete files, version 3 deletion vectors, those of a task in one Puffin file. Runs in this
process and in Spark's tasks.
"""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.read.reader import read_file
from bergline.datafiles.write.delete_writer import write_position_deletes
from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile, partition_key
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.scan.plan import PlannedFile
from bergline.table.engine.plans import DeletedPositions, DeleteFileSpec, DeleteJoin, PositionDeletePlan
from bergline.table.engine.row_engine import FileChanges

_WRITERS, _FEW_ROWS = 8, 1_000_000
"""Up to this many files, with at most this many positions in total, are written in parallel."""


def delete_matching(
    io: FileIO,
    plan: PositionDeletePlan,
    files: Sequence[PlannedFile],
    prefix: str,
    deletes: DeleteFiles | None = None,
) -> FileChanges:
    """Delete files for the rows of some data files of a plan; an error leaves no files behind."""
    deletes = deletes or DeleteFiles(io)
    found = []
    for planned in files:
        batches = read_file(io, planned, plan.read, deletes)
        positions = position_set(pa.chunked_array([b.column(0) for b in batches], pa.int64()))
        if positions:
            found.append(DeletedPositions(planned, positions))
    return write_deletes(io, plan.write, found, prefix, deletes)


def write_deletes(
    io: FileIO, spec: DeleteFileSpec, deleted: Sequence[DeletedPositions], prefix: str, deletes: DeleteFiles
) -> FileChanges:
    """Delete files, named with a prefix, that also contain the positions of the delete files that they replace."""
    if not deleted:
        return FileChanges()
    full = [(d.planned.file, _with_older(spec, d, deletes)) for d in deleted]
    write = _write_vectors if spec.kind == "vector" else _write_files
    return FileChanges(
        delete_files=write(io, spec, full, prefix),
        deleted_from=frozenset(d.planned.file.file_path for d in deleted),
        deleted_rows=sum(len(d.positions) for d in deleted),
    )


def join_deletes(io: FileIO, join: DeleteJoin, prefix: str, deletes: DeleteFiles | None = None) -> FileChanges:
    """Delete files that merge others for each data file; none for a data file without deleted rows."""
    deletes = deletes or DeleteFiles(io)
    found = [
        (
            planned.file,
            reduce(PositionSet.union, (deletes.positions(d, planned.file.file_path) for d in planned.deletes)),
        )
        for planned in join.files
    ]
    found = [(file, positions) for file, positions in found if positions]
    if not found:
        return FileChanges()
    write = _write_vectors if join.write.kind == "vector" else _write_files
    return FileChanges(
        delete_files=write(io, join.write, found, prefix), deleted_from=frozenset(f.file_path for f, _ in found)
    )


_FilePositions = Sequence[tuple[DataFile, PositionSet]]


def _with_older(spec: DeleteFileSpec, deleted: DeletedPositions, deletes: DeleteFiles) -> PositionSet:
    planned = deleted.planned
    older = (deletes.positions(delete, planned.file.file_path) for delete in spec.taken_over(planned))
    return reduce(PositionSet.union, older, deleted.positions)


def _write_vectors(io: FileIO, spec: DeleteFileSpec, found: _FilePositions, prefix: str) -> tuple[DataFile, ...]:
    location = join(spec.write.data_location, f"{prefix}-deletes.puffin")
    data, deletes = deletion_vector_file(location, found, "bergline")
    io.create(location, data)
    return deletes


def _write_files(io: FileIO, spec: DeleteFileSpec, found: _FilePositions, prefix: str) -> tuple[DataFile, ...]:
    groups: dict[Any, list[tuple[DataFile, PositionSet]]] = defaultdict(list)
    for data, positions in found:
        groups[data.file_path if spec.kind == "file" else partition_key(data)].append((data, positions))
    names = [f"{prefix}-{number:05d}-deletes.parquet" for number in range(1, len(groups) + 1)]
    writers = _WRITERS if sum(len(positions) for _, positions in found) <= _FEW_ROWS else 1
    writing: list[Future[DataFile]] = []
    try:
        with ThreadPoolExecutor(writers, "bergline-deletes") as threads:
            for group, name in zip(groups.values(), names, strict=True):
                writing.append(threads.submit(_write_file, io, spec, group, name))
        return tuple(each.result() for each in writing)
    except BaseException:
        io.delete([each.result().file_path for each in writing if each.exception() is None])
        raise


def _write_file(io: FileIO, spec: DeleteFileSpec, group: _FilePositions, name: str) -> DataFile:
    data, _ = group[0]
    partition_spec, schema = spec.partitioning[data.spec_id]
    directory = partition_spec.partition_path(schema, data.partition)
    return write_position_deletes(
        io,
        msgspec.structs.replace(spec.write, spec=partition_spec),
        join(spec.write.data_location, *([directory] if directory else []), name),
        {file.file_path: positions for file, positions in group},
        partition=data.partition,
    )
