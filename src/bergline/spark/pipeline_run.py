"""A pipeline's run: where its writes go, what its snapshots say, and which of its steps history has already.

Each step writes to a branch of its own, which comes into the run's branch in one commit to all tables: a step is there
whole, or not at all, whenever a process dies and however many run at once.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bergline.errors import NotFoundError
from bergline.format.refs import MAIN
from bergline.format.snapshot import Snapshot
from bergline.lake import Lake
from bergline.parquet.fit import ArrowRows
from bergline.spark.patched_classes import session_id
from bergline.spark.write_goal import PIPELINE, WAP_BRANCH, WAP_ID
from bergline.table.table import Table

PIPELINE_NAME = "bergline.pipeline"
RUN_ID = "bergline.run-id"
STEP = "bergline.step"
_SUMMARY = "spark.sql.iceberg.snapshot-property."
_LOCKS: dict[str, threading.RLock] = {}

Step = str | Callable[["Run"], Any]


class Run(msgspec.Struct, frozen=True):
    """What a step or an audit is given. In it the whole session reads from and writes to `branch`."""

    spark: SparkSession
    lake: Lake
    pipeline: str
    run_id: str
    branch: str
    tables: tuple[str, ...]
    step: str | None = None

    def sql(self, text: str, args: Any = None) -> DataFrame:
        """The session's `sql`."""
        return self.spark.sql(text, args)

    def table(self, name: str) -> DataFrame:
        """A table of the session, at the branch."""
        return self.spark.table(name)

    def append(self, table: str, rows: ArrowRows) -> None:
        """Add Arrow rows to a table of the pipeline, without Spark."""
        if table not in self.tables:
            raise NotFoundError(f"no table `{table}` in the pipeline", kind="table", name=table, known=self.tables)
        self.lake.load_table(table).append(rows, branch=self.branch, summary=self.stamp)

    @property
    def stamp(self) -> dict[str, str]:
        """What the summary of every snapshot says."""
        told = {PIPELINE_NAME: self.pipeline, RUN_ID: self.run_id}
        return told if self.step is None else told | {STEP: self.step}

    @contextlib.contextmanager
    def session(self, tables: Mapping[str, Table]) -> Iterator[None]:
        """The session at the branch, for these tables only; its settings come back."""
        scope = {"branch": self.branch, "tables": {t.metadata.table_uuid: name for name, t in tables.items()}}
        wanted: dict[str, str | None] = {WAP_BRANCH: self.branch, WAP_ID: None, PIPELINE: json.dumps(scope)}
        # one at a time: settings are the session's, and a run in another thread would write where this one's end
        with (
            _lock_of(self.spark),
            _settings(self.spark, wanted | {_SUMMARY + key: value for key, value in self.stamp.items()}),
        ):
            yield


class History:
    """What the tables have of a run, on its branch or on `main`."""

    def __init__(self, run: Run, tables: Mapping[str, Table]) -> None:
        self._run = run
        self._tables = tables

    @property
    def is_published(self) -> bool:
        """Whether `main` of any table has a snapshot of the run."""
        return any(any(self.snapshots(table, MAIN)) for table in self._tables.values())

    def steps(self, ref: str) -> dict[str, dict[str, int]]:
        """The steps that a ref has, each with the rows that it added to every table that it wrote to."""
        steps: dict[str, dict[str, int]] = {}
        for name, table in self._tables.items():
            for snapshot in self.snapshots(table, ref):
                rows = steps.setdefault(snapshot.summary.get(STEP, ""), {})
                rows[name] = rows.get(name, 0) + _added_rows(snapshot)
        return steps

    def snapshots(self, table: Table, ref: str) -> Iterator[Snapshot]:
        """The run's snapshots in the history of a ref."""
        head = table.metadata.head(ref)
        for snapshot in table.metadata.ancestors(None if head is None else head.snapshot_id):
            of = snapshot.summary.get(PIPELINE_NAME), snapshot.summary.get(RUN_ID)
            if of == (self._run.pipeline, self._run.run_id):
                yield snapshot


def _added_rows(snapshot: Snapshot) -> int:
    return int(snapshot.summary.get("added-records", 0)) - int(snapshot.summary.get("deleted-records", 0))


def _lock_of(spark: SparkSession) -> threading.RLock:
    return _LOCKS.setdefault(session_id(spark), threading.RLock())


@contextlib.contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str | None]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in wanted}
    try:
        _set(spark, wanted)
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
