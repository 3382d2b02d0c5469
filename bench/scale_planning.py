"""Many files: scans planned by this process and by Spark's tasks, with what they take of the driver's memory.

The files exist in manifests only.
"""

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.scan.manifest_cache import forget_files
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.planning import plan_read
from bergline.table.scans.planning_mode import DATA_MODE
from made_up_manifests import many_files
from results import Scaled

FEW, SOME, MANY = 20_000, 1_000_000, 10_000_000
IN_MANIFEST = 10_000
FILTER = "c3 >= 100000 AND c3 < 110000"
EVERY_FILE = "c3 >= 0"
"""A filter that all files pass, which only a look at each of them shows."""


class Peak:
    """The memory of processes in megabytes, before a block and the most in it."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._ended = threading.Event()
        self.before = self.most = 0.0
        self.seconds = 0.0

    @property
    def growth(self) -> float:
        """By how much it grew at the most."""
        return self.most - self.before

    def __enter__(self) -> Self:
        self.before = self.most = self._now()
        self._started = time.perf_counter()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._started
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, self._now())

    def _now(self) -> float:
        pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._pids)
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cases(small: bool) -> Iterator[Scaled]:
    """Planning in this process beside PyIceberg, then on executors beside this process."""
    some, many = (5 * FEW, 10 * FEW) if small else (SOME, MANY)
    with tempfile.TemporaryDirectory() as directory:
        lake = bergline.connect(f"sqlite:///{directory}/catalog.db", warehouse=f"{directory}/warehouse", create=True)
        lake.create_namespace("db")
        few = many_files(lake, "db.few", FEW, FEW // IN_MANIFEST)
        ours, found = planned_here(few)
        peer = SqlCatalog("lake", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"{directory}/warehouse")
        theirs = peer.load_table("db.few")
        with Peak(os.getpid()) as other:
            assert found == len(list(theirs.scan(FILTER).plan_files()))
        yield Scaled(f"plan {FEW:,} files by a filter", "s", ours.seconds, other.seconds, "PyIceberg")
        ours, _ = planned_here(many_files(lake, "db.some", some, some // IN_MANIFEST))
        yield Scaled(f"plan {some:,} files by a filter", "s", ours.seconds)
        yield Scaled(f"memory to plan {some:,} files", "MB", ours.growth)
        yield from on_executors(lake, many_files(lake, "db.many", many, many // IN_MANIFEST), many)


def planned_here(table: Table) -> tuple[Peak, int]:
    """A filter on metrics, cold, and how many files it leaves."""
    forget_files()
    with Peak(os.getpid()) as peak:
        found = len(table.scan(FILTER).plan().files)
    return peak, found


def on_executors(lake: Lake, table: Table, files: int) -> Iterator[Scaled]:
    """A filter that few files pass, and one that all do."""
    here, expected = planned_here(table)
    forget_files()
    table.set_properties({DATA_MODE: "distributed"})
    with session(lake) as spark:
        backend = backend_of(spark)
        driver = os.getpid(), spark.sparkContext._gateway.proc.pid  # noqa: SLF001  (nothing public tells)
        spark.range(2).mapInArrow(lambda batches: batches, "id bigint").collect()  # workers are started
        with Peak(*driver) as there:
            found = plan_read(table.scan(FILTER), backend)
        assert found.on_executors
        assert len(found.plan.files) == expected
        yield Scaled(f"plan {files:,} files on executors by a filter", "s", there.seconds, here.seconds, "the driver")
        yield Scaled(
            f"memory of the driver for {files:,} files, its JVM included", "MB", there.growth, here.growth, "all"
        )
        with Peak(*driver) as all_of_them:
            work = plan_read(table.scan(EVERY_FILE), backend).work
        assert work is None or work.files == files
        yield Scaled(f"plan {files:,} files on executors, all of which match", "s", all_of_them.seconds)
        yield Scaled("memory of the driver for that, its JVM included", "MB", all_of_them.growth)


@contextlib.contextmanager
def session(lake: Lake) -> Iterator[SparkSession]:
    """A session on this machine."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    bergline.spark.attach(spark, lake)
    yield spark
    spark.stop()
