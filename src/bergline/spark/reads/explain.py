"""How the lake tables of a frame are read: which files, by which reader, and why."""

import weakref
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from bergline.arguments import counted, shown
from bergline.errors import InvalidInputError
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.planning import plan_read
from bergline.spark.reads.scan import Used, all_columns, choose_groups
from bergline.spark.runtime.late_frames import LateMethods
from bergline.table.scans.scan import TableScan

Reads = Sequence[tuple[str, TableScan, Used]]
"""The tables of a query by name, which may stand in it several times, and which of their columns it uses."""

_READS: "weakref.WeakKeyDictionary[DataFrame, Reads]" = weakref.WeakKeyDictionary()


def remember_reads(frame: DataFrame, reads: Reads) -> DataFrame:
    """The same frame, of which `explain_read` knows now what it reads."""
    _READS[frame] = tuple(reads)
    return frame


def explain_read(source: DataFrame | TableScan) -> str:
    """What is read for a scan, for `spark.table(…)` with its filters, or for the result of `spark.sql`."""
    if isinstance(source, TableScan):
        return _described("scan", source, SparkSession.getActiveSession())
    if isinstance(source, LateMethods):
        late = source._late  # noqa: SLF001  (a class of ours)
        return _described(late.label, late.pruned(), source.sparkSession)
    if not isinstance(source, DataFrame):
        raise InvalidInputError(f"expected a DataFrame or a scan to explain, found {shown(source)}")
    if source not in _READS:
        raise InvalidInputError(
            "expected a frame that reads a lake table, found one of something else, or one made of such a frame",
            hints=[
                "explain the result of spark.table or spark.sql itself; metadata tables are read when a frame is made"
            ],
        )
    return "\n".join(_described(name, scan, source.sparkSession, used) for name, scan, used in _READS[source])


def _described(name: str, scan: TableScan, spark: SparkSession | None, used: Used = all_columns) -> str:
    backend = None if spark is None else backend_of(spark)
    planned = plan_read(scan, backend)
    plan, work = planned.plan, planned.work
    if work is not None:
        return (
            f"{name}: about {counted(work.files, 'file')} of snapshot {plan.snapshot_id}, planned on the executors\n"
            "  arrow: all files, because there are too many for the driver to list"
        )
    where = ", planned on the executors" if planned.on_executors else ""
    lines = [f"{name}: {counted(len(plan.files), 'file')} of snapshot {plan.snapshot_id}{where}"]
    for group in choose_groups(plan, backend, scan.io, used)[1]:
        deletes = " with deletes" if group.reader == "native" and group.has_deletes else ""
        lines.append(f"  {group.reader}{deletes}: {counted(len(group.files), 'file')}, because {group.reason}")
    return "\n".join(lines)
