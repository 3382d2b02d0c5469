"""Where the files of a scan are looked up: by this process, or on the executors if there are too many for it.

A driver holds no more than `MOST_IN_DRIVER` files. If a scan needs more, nobody ever has all of them: tasks look them
up by runs of manifests, and pass them on to tasks that read them.
"""

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Row

from bergline.arguments import counted
from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of
from bergline.scan.manifest_runs import FrozenScan, files_in, freeze_scan, read_deletes, runs_of
from bergline.scan.plan import ScanPlan
from bergline.scan.shipped_files import unship
from bergline.spark.reads.partial_aggregates import combined
from bergline.spark.reads.planning_tasks import AggregateTask, FindFilesTask, FoundFiles, PackTask, ReadPackedTask
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.backend import Aggregate, SparkBackend
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.runtime.tasks import task_frame
from bergline.spark.runtime.types import read_schema
from bergline.table.scans.planning_mode import DATA_MODE, DELETE_MODE, PlanningMode, check_planning_mode
from bergline.table.scans.scan import TableScan

MOST_IN_DRIVER = 200_000
"""A driver lists no more files than these, of which Spark's own reader makes a list of its own."""
MOST_LOOKED_AT_HERE = 2_000_000
"""So many files are looked at by this process where its executors have no more cores than it has."""
SETTINGS = "spark.sql.iceberg."
"""What the names of session settings begin with, which count before table properties."""

_FEWEST_IN_RUN, _MOST_IN_RUN = 2_000, 50_000
_RUNS_PER_CORE = 4
_READ_BY_TASK = 128 * 1024 * 1024
_OPENING = 4 * 1024 * 1024
_MOST_READING_TASKS = 20_000
_KEPT: WeakKeyDictionary[TableScan, ScanPlan] = WeakKeyDictionary()
_MOST_KEPT = 1000
"""Plans of so many files are kept with their scans: statements that change rows ask twice."""
_TOTAL_FILES, _TOTAL_SIZE = "total-data-files", "total-files-size"


class ExecutorWork(NamedTuple):
    """A scan whose files only tasks look up; how many there are may be an estimate."""

    scan: FrozenScan
    runs: Sequence[tuple[ManifestFile, ...]]
    files: int
    rows: int
    size: int


class ReadPlan(NamedTuple):
    """How a scan is read: by its files, or by work for tasks that look them up."""

    plan: ScanPlan
    """Without files if there is work."""
    work: ExecutorWork | None = None
    on_executors: bool = False
    """Whether the files of the plan were looked up by tasks."""


def plan_read(scan: TableScan, backend: SparkBackend | None) -> ReadPlan:
    """Look up the files of a scan, or leave it to the tasks that will read them."""
    if type(scan) is not TableScan or backend is None or scan.snapshot_id is None:
        return ReadPlan(scan.plan())
    if scan in _KEPT:
        return ReadPlan(_KEPT[scan])
    settings = backend.settings_under(SETTINGS)
    mode = _mode(scan, DATA_MODE, settings)
    if mode is PlanningMode.LOCAL or (mode is PlanningMode.AUTO and _has_few_files(scan)):
        plan = scan.plan()
        if len(plan.files) <= _MOST_KEPT:
            _KEPT[scan] = plan
        return ReadPlan(plan)
    outline = scan.outline()
    frozen, manifests = freeze_scan(scan.io, scan.metadata, outline)
    if not manifests or not _reach(backend, scan, mode):
        return ReadPlan(scan.plan())
    files = sum(map(files_in, manifests))
    is_exact = outline.filter == ALWAYS_TRUE
    if mode is PlanningMode.AUTO:
        here = MOST_LOOKED_AT_HERE if backend.has_local_executors and not is_exact else MOST_IN_DRIVER
        if files <= here:
            plan = scan.plan()
            if len(plan.files) <= MOST_IN_DRIVER:
                return ReadPlan(plan)
            files, is_exact = len(plan.files), True
    if _mode(scan, DELETE_MODE, settings) is PlanningMode.LOCAL:
        frozen = read_deletes(scan.io, frozen)
    runs = list(runs_of(manifests, _files_in_run(files, backend, scan)))
    work = ExecutorWork(frozen, runs, files, _rows_in(manifests), files * _usual_size(scan))
    if is_exact and files > MOST_IN_DRIVER:
        return ReadPlan(outline, work)
    return _found(outline, work, backend, scan.io)


def plan_of_files(planned: ReadPlan, paths: Sequence[str], backend: SparkBackend, io: FileIO) -> ScanPlan:
    """The plan, with at least the files at these paths: only those if tasks have to look for them."""
    if planned.work is None:
        return planned.plan
    found = _ask(planned.work, len(paths), backend, io, tuple(paths))
    return _with_files(planned.plan, planned.work, found)


def read_on_executors(plan: ScanPlan, work: ExecutorWork, backend: SparkBackend, io: FileIO) -> DataFrame:
    """The rows of a scan whose files only tasks look up; the plan has none."""
    tasks = min(_MOST_READING_TASKS, max(len(work.runs), (work.size + work.files * _OPENING) // _READ_BY_TASK))
    packed = map_in_arrow(_dealt(work, backend), PackTask(io, work.scan).run, "key bigint, task binary")
    columns = read_schema(plan.schema)
    dealt = backend.with_estimate(packed.repartition(tasks, "key").select("task"), work.rows, columns)
    return map_in_arrow(dealt, ReadPackedTask(io, plan).run, columns)


def aggregate_on_executors(
    work: ExecutorWork, asked: Sequence[Aggregate], schema: Schema, backend: SparkBackend, io: FileIO
) -> tuple[int | None, ...] | None:
    """The values of aggregates on files that only tasks look up; None if manifests do not tell all of them."""
    rows = _run(AggregateTask(io, work.scan, tuple(asked), schema).run, "values binary", work, backend)
    values = [pickle.loads(row["values"]) for row in rows]  # noqa: S301  (our own tasks wrote it)
    known = [each for each in values if each is not None]
    return functools.reduce(functools.partial(combined, asked), known) if len(known) == len(values) else None


def _found(outline: ScanPlan, work: ExecutorWork, backend: SparkBackend, io: FileIO) -> ReadPlan:
    """The files that tasks find if they are few enough, else work for others that look them up again.

    Every run may give back its share of the files that a driver holds; runs with more are asked again once it is known
    that all of them are few enough.
    """
    found = _ask(work, MOST_IN_DRIVER // len(work.runs), backend, io)
    total = sum(each.files for each in found.values())
    if total > MOST_IN_DRIVER:
        rows, size = sum(each.rows for each in found.values()), sum(each.size for each in found.values())
        runs = [run for number, run in enumerate(work.runs) if found[number].files]
        return ReadPlan(outline, work._replace(runs=runs, files=total, rows=rows, size=size))
    late = {number: run for number, run in enumerate(work.runs) if found[number].shipped is None}
    if late:
        again = _ask(work._replace(runs=list(late.values())), MOST_IN_DRIVER, backend, io)
        found |= {number: again[place] for place, number in enumerate(late)}
    return ReadPlan(_with_files(outline, work, found), on_executors=True)


def _with_files(outline: ScanPlan, work: ExecutorWork, found: Mapping[int, FoundFiles]) -> ScanPlan:
    shipped = (found[number].shipped for number in range(len(work.runs)))
    files = unship(blob for blob in shipped if blob is not None)
    return msgspec.structs.replace(outline, files=files, key_columns=work.scan.keys(files))


def _ask(
    work: ExecutorWork, most: int, backend: SparkBackend, io: FileIO, paths: tuple[str, ...] | None = None
) -> dict[int, FoundFiles]:
    """What each run has, by its number; if paths are given, of these files."""
    found: dict[int, FoundFiles] = {}
    for row in _run(FindFilesTask(io, work.scan, most, paths).run, "found binary", work, backend):
        each: FoundFiles = pickle.loads(row.found)  # noqa: S301  (our own tasks wrote it)
        if each.error is not None:
            raise each.error
        found[each.run] = each
    return found


def _run(
    task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: str,
    work: ExecutorWork,
    backend: SparkBackend,
) -> list[Row]:
    """What tasks give back for the runs."""
    with backend.described_jobs(f"bergline: plan {counted(work.files, 'file')} of {work.scan.metadata.location}"):
        return map_in_arrow(_dealt(work, backend), task, schema).collect()


def _dealt(work: ExecutorWork, backend: SparkBackend) -> DataFrame:
    """The runs, each for a task of its own."""
    blobs = [pickle.dumps(run) for run in enumerate(work.runs)]
    return task_frame(backend, blobs, work.scan.metadata.location, len(blobs))


def _mode(scan: TableScan, name: str, settings: dict[str, str]) -> PlanningMode:
    """The mode that the session or the table asks for, by Iceberg's names."""
    key = name.removeprefix("read.")
    if key in settings:
        return check_planning_mode(f"{SETTINGS}{key}", settings[key])
    return check_planning_mode(name, scan.metadata.properties.get(name, PlanningMode.AUTO))


def _has_few_files(scan: TableScan) -> bool:
    number = _summary(scan).get(_TOTAL_FILES, "")
    return number.isdecimal() and int(number) <= MOST_IN_DRIVER


def _summary(scan: TableScan) -> dict[str, str]:
    return {} if scan.snapshot_id is None else dict(scan.metadata.snapshot(scan.snapshot_id).summary)


def _usual_size(scan: TableScan) -> int:
    """How large a file of the table is on average, as its summary says."""
    summary = _summary(scan)
    files, size = summary.get(_TOTAL_FILES, ""), summary.get(_TOTAL_SIZE, "")
    return int(size) // max(1, int(files)) if files.isdecimal() and size.isdecimal() else 0


def _rows_in(manifests: Sequence[ManifestFile]) -> int:
    return sum((m.added_rows_count or 0) + (m.existing_rows_count or 0) for m in manifests)


def _reach(backend: SparkBackend, scan: TableScan, mode: PlanningMode) -> bool:
    """Whether tasks can look up files; an error if they must, and a package is missing."""
    location = scan.metadata.location
    if scheme_of(location) == "memory":
        return False
    try:
        prepare_executors(backend, location, for_planning=True)
    except UnsupportedError:
        if mode is PlanningMode.DISTRIBUTED:
            raise
        return False
    return True


def _files_in_run(files: int, backend: SparkBackend, scan: TableScan) -> int:
    cores = prepare_executors(backend, scan.metadata.location, for_planning=True)
    return min(_MOST_IN_RUN, max(_FEWEST_IN_RUN, files // (_RUNS_PER_CORE * cores)))
