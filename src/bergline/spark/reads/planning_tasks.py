"""Tasks that look up the files of a scan: they plan runs of manifests, and return what they found or pass it on."""

import pickle
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from bergline.errors import BerglineError
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.manifest_runs import FrozenScan
from bergline.scan.plan import ScanPlan
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.shipped_files import ship
from bergline.spark.reads.arrow import ReadTask, pack
from bergline.spark.reads.partial_aggregates import partial_values
from bergline.spark.runtime.backend import Aggregate

ManifestRun = tuple[int, tuple[ManifestFile, ...]]
"""Manifests that one task plans, with the number of the run."""

_PACKS_OF_RUN = 32
"""The bits for the packs of a run in their keys."""


class FoundFiles(msgspec.Struct, frozen=True):
    """What a run of manifests has: the files themselves only if they are few."""

    run: int
    files: int = 0
    rows: int = 0
    size: int = 0
    shipped: bytes | None = None
    error: BerglineError | None = None


class FindFilesTask(msgspec.Struct, frozen=True):
    """Plans runs, and gives back their files where a run has no more than `most`; if `paths` are given, those alone."""

    io: FileIO
    scan: FrozenScan
    most: int
    paths: tuple[str, ...] | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is found for each run, as bytes."""
        for run in _runs(batches):
            found = pickle.dumps(self.find(run))
            yield pa.record_batch([pa.array([found], pa.binary())], names=["found"])

    def find(self, run: ManifestRun) -> FoundFiles:
        """What a run has; what is wrong with it is given back too."""
        number, manifests = run
        try:
            planned = self.scan.plan(self.io, manifests)
        except BerglineError as error:
            return FoundFiles(number, error=error)
        files = planned.without_metrics if self.paths is None else planned.at(self.paths)
        rows = sum(int(group.frame["record_count"].sum()) for group in files.groups)
        size = sum(int(group.frame["file_size_in_bytes"].sum()) for group in files.groups)
        return FoundFiles(number, len(files), rows, size, ship(files) if len(files) <= self.most else None)


class AggregateTask(msgspec.Struct, frozen=True):
    """Plans runs, and gives back what aggregates are of their files; None where manifests do not tell."""

    io: FileIO
    scan: FrozenScan
    asked: tuple[Aggregate, ...]
    schema: Schema

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The values for each run, as bytes."""
        for _, manifests in _runs(batches):
            values = pickle.dumps(partial_values(self.scan.plan(self.io, manifests), self.asked, self.schema))
            yield pa.record_batch([pa.array([values], pa.binary())], names=["values"])


class PackTask(msgspec.Struct, frozen=True):
    """Plans runs, and passes their files on to tasks that read them, in packs of as much as one task reads."""

    io: FileIO
    scan: FrozenScan

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work for reading tasks as bytes, each with a key of its own."""
        for number, manifests in _runs(batches):
            files = self.scan.plan(self.io, manifests).without_metrics
            for place, task in enumerate(self.packed(files)):
                key = pa.array([number << _PACKS_OF_RUN | place], pa.int64())
                yield pa.record_batch([key, pa.array([task], pa.binary())], names=["key", "task"])

    def packed(self, files: PlannedFiles) -> Iterator[bytes]:
        """Files in parts for reading tasks, with the columns that their deletes compare."""
        keys = self.scan.keys(files)
        return (pickle.dumps((keys, tuple(parts))) for parts in pack(files, 1))


class ReadPackedTask(msgspec.Struct, frozen=True):
    """Reads what a `PackTask` passed on."""

    io: FileIO
    plan: ScanPlan
    """Without files, and without the columns that deletes compare."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, in Spark's types."""
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                keys, parts = pickle.loads(blob)  # noqa: S301  (our own tasks wrote it)
                yield from ReadTask(self.io, msgspec.structs.replace(self.plan, key_columns=keys), parts).read()


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[ManifestRun]:
    for batch in batches:
        for blob in batch.column(0).to_pylist():
            yield pickle.loads(blob)  # noqa: S301  (we pickled it)
