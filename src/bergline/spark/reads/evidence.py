"""What is known of the columns that data files store: from our own manifests, or from the files' footers.

Footers are read once, since files never change: a few by threads here, many by tasks on the executors.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from bergline.datafiles.file.footer import read_physical_schemas
from bergline.format.schema.physical_schema import number_of, schema_of
from bergline.format.types.types import StructType
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of
from bergline.scan.manifest_cache import FileCache
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.tasks import task_frame

MOST_READ_HERE = {"file": 20_000}
"""So many footers are read here, by the scheme of their files: local ones take less time than tasks to start."""
MOST_READ_HERE_BY_DEFAULT = 256
_FILES_PER_TASK = 512
_KEPT_BYTES = 128 * 1024 * 1024
_ENTRY_BYTES = 256

_KNOWN: FileCache[int] = FileCache(_KEPT_BYTES)


class FileEvidence:
    """Finds the physical schemas of files in one storage, by their numbers."""

    def __init__(self, io: FileIO, backend: SparkBackend | None = None) -> None:
        self._io = io
        self._backend = backend

    def known(self, paths: Iterable[str]) -> dict[str, int]:
        """What was found out before."""
        found = ((path, _KNOWN.find(self._io, path)) for path in paths)
        return {path: number for path, number in found if number is not None and schema_of(number) is not None}

    def look_up(self, paths: Sequence[str]) -> dict[str, int]:
        """The same, with the footers of other files read now; files that cannot be read are left out."""
        found = self.known(paths)
        unknown = [path for path in paths if path not in found]
        if unknown:
            for schema, places in self._read(unknown):
                number = number_of(schema)
                for path in (unknown[place] for place in places):
                    found[path] = number
                    _KNOWN.keep(self._io, path, number, len(path) + _ENTRY_BYTES)
        return found

    def _read(self, paths: Sequence[str]) -> Iterable[tuple[StructType, list[int]]]:
        """Each different schema, and which of the files have it."""
        most = MOST_READ_HERE.get(scheme_of(paths[0]), MOST_READ_HERE_BY_DEFAULT)
        if self._backend is None or len(paths) <= most:
            return read_physical_schemas(self._io, paths).items()
        return _read_on_executors(self._io, paths, self._backend)


def forget_footers() -> None:
    """Read every footer again; for those who change what must not change."""
    _KNOWN.clear()


def _read_on_executors(
    io: FileIO, paths: Sequence[str], backend: SparkBackend
) -> Iterator[tuple[StructType, list[int]]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                first, part = pickle.loads(blob)  # noqa: S301  (we pickled it)
                found = pickle.dumps((first, read_physical_schemas(io, part)))
                yield pa.record_batch([pa.array([found], pa.binary())], names=["found"])

    parts = [(n, paths[n : n + _FILES_PER_TASK]) for n in range(0, len(paths), _FILES_PER_TASK)]
    tasks = [pickle.dumps(part) for part in parts]
    for row in map_in_arrow(task_frame(backend, tasks, paths[0]), read, "found binary").collect():
        first, schemas = pickle.loads(row.found)  # noqa: S301  (our own tasks wrote it)
        for schema, places in schemas.items():
            yield schema, [first + place for place in places]
