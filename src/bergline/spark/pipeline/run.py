"""A pipeline's run: where its writes go, what its snapshots say, and which of its steps are in the history already."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bergline.datafiles.write.input_rows import ArrowRows
from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.lake.lake import Lake
from bergline.spark.statements.write_scopes import write_scope
from bergline.spark.writes.scope import PIPELINE_NAME, RUN_ID, STEP, WriteScope
from bergline.table.references.published_runs import PublishedRun, has_run
from bergline.table.table import Table

DEFAULT_SESSION_TIMEOUT_S = 3600.0
"""How long a step or the audits wait while another pipeline holds the session."""

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
    session_timeout_s: float = DEFAULT_SESSION_TIMEOUT_S

    def sql(self, text: str, args: Any = None) -> DataFrame:
        """The session's `sql`."""
        return self.spark.sql(text, args)

    def table(self, name: str) -> DataFrame:
        """A table of the session, at the branch."""
        return self.spark.table(name)

    def append(self, table: str, rows: ArrowRows) -> None:
        """Add rows to a table of the pipeline without Spark, as `Table.append` takes them."""
        if self.step is None:
            raise RefusedError(f"cannot write to `{table}` in an audit: what is audited is what is published")
        if table not in self.tables:
            raise NotFoundError(f"no table `{table}` in the pipeline", kind="table", name=table, known=self.tables)
        self.lake.load_table(table).append(rows, branch=self.branch, summary=self._scope({}).summary)

    @property
    def identity(self) -> PublishedRun:
        """What the run is known by after it was published."""
        return PublishedRun(self.pipeline, self.run_id)

    @contextlib.contextmanager
    def session(self, tables: Mapping[str, Table]) -> Iterator[None]:
        """Hold the session: in the block its reads and writes take the branch, and writes go to these tables only."""
        names = {table.metadata.table_uuid or name: name for name, table in tables.items()}
        with write_scope(self.spark, self._scope(names), self.session_timeout_s):
            yield

    def _scope(self, tables: Mapping[str, str]) -> WriteScope:
        return WriteScope(pipeline=self.pipeline, run_id=self.run_id, step=self.step, branch=self.branch, tables=tables)


def load_tables(run: Run) -> dict[str, Table]:
    """The run's tables by name, as they are now."""
    return {name: run.lake.load_table(name) for name in run.tables}


class History:
    """What the tables have of a run, on its branch or on `main`."""

    def __init__(self, run: Run, tables: Mapping[str, Table]) -> None:
        self._run = run
        self._tables = tables

    @property
    def is_published(self) -> bool:
        """Whether `main` of any table has a snapshot of the run, or had one that has expired."""
        run = self._run.identity
        return any(
            any(self.snapshots(table, MAIN)) or has_run(table.metadata, MAIN, run) for table in self._tables.values()
        )

    def steps(self, ref: str) -> dict[str, dict[str, int]]:
        """The steps that a ref has, each with the rows that it added to every table that it wrote to."""
        steps: dict[str, dict[str, int]] = {}
        for name, table in self._tables.items():
            for snapshot in self.snapshots(table, ref):
                rows = steps.setdefault(snapshot.summary.get(STEP, ""), {})
                rows[name] = rows.get(name, 0) + _added_rows(snapshot)
        return steps

    def snapshots(self, table: Table, ref: str) -> Iterator[Snapshot]:
        """The run's snapshots in the history of a ref, newest first."""
        own = self._run.pipeline, self._run.run_id
        return (snapshot for snapshot in _history(table, ref) if _written_by(snapshot) == own)

    def check_tagged(self, tag: str) -> None:
        """RefusedError unless a tag of all tables stands at what `main` has of the run."""
        heads = {name: next(self.snapshots(table, MAIN), None) for name, table in self._tables.items()}
        at = {name: head.snapshot_id for name, head in heads.items() if head is not None}
        for name, table in self._tables.items():
            ref = table.metadata.refs.get(tag)
            if ref is None or ref.is_branch or not self._is_at(table, ref.snapshot_id, at.get(name)):
                raise RefusedError(
                    f"cannot tag pipeline {self._run.pipeline}, run {self._run.run_id}, as `{tag}`: it was published "
                    f"before, and `{name}` has {'another ref' if ref else 'no tag'} of that name",
                    hints=[f"what it wrote can be tagged by `lake.tag({tag!r}, {at})`"] if at else [],
                )

    def _is_at(self, table: Table, snapshot_id: int, published: int | None) -> bool:
        """Whether a tag's snapshot is what the run published; a table that it wrote nothing to has no such."""
        if published is None and has_run(table.metadata, MAIN, self._run.identity):  # all but the tag has expired
            return _written_by(table.metadata.snapshot(snapshot_id)) == (self._run.pipeline, self._run.run_id)
        return published in {None, snapshot_id}

    def check_branch_is_own(self) -> None:
        """RefusedError if the run's branch has what another run wrote: two names may make one branch."""
        for name, table in self._tables.items():
            published = {snapshot.snapshot_id for snapshot in _history(table, MAIN)}
            for snapshot in _history(table, self._run.branch):
                pipeline, run_id = _written_by(snapshot)
                if snapshot.snapshot_id in published:
                    break
                if run_id is not None and (pipeline, run_id) != (self._run.pipeline, self._run.run_id):
                    raise RefusedError(
                        f"cannot use branch `{self._run.branch}` of `{name}` for pipeline {self._run.pipeline}, "
                        f"run {self._run.run_id}: it has what pipeline {pipeline}, run {run_id}, wrote",
                        hints=["give the pipeline, or the run, another name"],
                    )


def _history(table: Table, ref: str) -> Iterable[Snapshot]:
    head = table.metadata.head(ref)
    return table.metadata.ancestors(None if head is None else head.snapshot_id)


def _written_by(snapshot: Snapshot) -> tuple[str | None, str | None]:
    return snapshot.summary.get(PIPELINE_NAME), snapshot.summary.get(RUN_ID)


def _added_rows(snapshot: Snapshot) -> int:
    return int(snapshot.summary.get("added-records", 0)) - int(snapshot.summary.get("deleted-records", 0))
