"""`Pipeline`: write to a branch of several tables, audit it on Spark, publish it in one step."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from bergline.arguments import check_text, shown
from bergline.catalog.identifiers import TableName
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    InvalidInputError,
    RefusedError,
    TablesRefusedError,
)
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lake.lake import Lake
from bergline.spark.pipeline.audit_kinds import Audit
from bergline.spark.pipeline.audits_run import AuditResult, AuditRun, check_audit
from bergline.spark.pipeline.pull_request import COMMIT, PULL_REQUEST, propose_run
from bergline.spark.pipeline.report import PipelineReport, Status, StepResult
from bergline.spark.pipeline.run import DEFAULT_SESSION_TIMEOUT_S, History, Run, Step, load_tables
from bergline.spark.pipeline.steps import RunSteps
from bergline.spark.session.attach import check_attached
from bergline.spark.writes.target import opted_out
from bergline.table.scans.version import real_branch
from bergline.table.table import Table
from bergline.table.table_selection import named_tables

_MOST_AUDITS = 5
"""How often the audits are run while `main` keeps moving."""


class Pipeline:
    """Steps and audits over some tables of a lake that is attached to a session.

    A step is a statement in SQL, or a function of the `Run`; each is in the branch whole or not at all. While a step or
    an audit runs, the whole session reads from and writes to the run's branch.
    """

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        name: str,
        *,
        tables: Sequence[str | TableName],
        steps: Mapping[str, Step],
        audits: Sequence[Audit] = (),
        publish: str = COMMIT,
    ) -> None:
        """InvalidInputError for arguments of the wrong kind; tables and columns are looked up when it runs.

        With `publish="pull request"` a run whose audits pass opens a pull request instead of moving `main`.
        """
        self._spark = spark
        self._lake = lake
        self.name = _checked_name(name, "the pipeline")
        self.tables = tuple(map(str, named_tables(tables)))
        self.steps = _checked_steps(steps)
        self.audits = _checked_audits(audits)
        if publish not in {COMMIT, PULL_REQUEST}:
            raise InvalidInputError(f"expected `{COMMIT}` or `{PULL_REQUEST}` for `publish`, found {shown(publish)}")
        self.publish = publish

    def branch(self, run_id: str) -> str:
        """The branch that a run writes to."""
        return f"{self.name}-{_checked_name(run_id, 'the run')}"

    def run(
        self,
        run_id: str,
        *,
        tag: str | None = None,
        publish: bool = True,
        merge: bool = True,
        session_timeout: float = DEFAULT_SESSION_TIMEOUT_S,
    ) -> PipelineReport:
        """Write, audit, and publish if all audits pass; on failure `main` is untouched and the branch stays.

        The same id again goes on where an earlier run stopped: steps that are in the branch are not run again, and a
        run that was published is only reported. Where `main` has moved on meanwhile, the branch is rebased onto it
        before its audits or, without `merge`, refused: what is published is what was audited. A `tag` is created in the
        commit that publishes, and refused for a run that was published without it; with `publish=False` the run ends
        after the audits. UnavailableError if another pipeline in another thread holds the session for longer than
        `session_timeout` seconds when a step or the audits are to start.
        """
        branch = self.branch(run_id)
        _check_tag(tag, branch)
        if tag is not None and self.publish == PULL_REQUEST:
            raise InvalidInputError(f"expected no tag for a run that ends in a pull request, found `{tag}`")
        _check_timeout(session_timeout)
        check_attached(self._spark, self._lake)
        run = Run(self._spark, self._lake, self.name, run_id, branch, self.tables, session_timeout_s=session_timeout)
        tables = load_tables(run)
        history = History(run, tables)
        if history.is_published:
            return self._published_before(run, tables, tag)
        self._check(run, tables, tag)
        history.check_branch_is_own()
        self._lake.branch(branch, list(tables), if_not_exists=True)
        steps = RunSteps(run, self.steps).write()
        return self._finish(run, steps, tag=tag, publish=publish, merge=merge)

    def _finish(
        self, run: Run, steps: tuple[StepResult, ...], *, tag: str | None, publish: bool, merge: bool
    ) -> PipelineReport:
        """Audit and publish; retry from the audits, a few times, if `main` moves in between."""
        rebased: dict[str, None] = {}
        audits = 0
        while True:
            tables = load_tables(run)
            if History(run, tables).is_published:
                return self._published_before(run, tables, tag)
            if merge:
                rebased |= dict.fromkeys(catch_up(tables, run.branch))
            results = self._audit(run, tables)
            audits += 1
            done = {"steps": steps, "rebased": tuple(rebased), "audits": results}
            if publish and self.publish == PULL_REQUEST:
                return self._propose(run, tables, done, results)
            if not all(result.passed for result in results):
                return _report(run, "audits failed", **done)
            if not publish:
                return _report(run, "audited", **done)
            try:
                return self._publish(run, tables, done, tag)
            except TablesRefusedError:
                if not merge or audits == _MOST_AUDITS or not tables_behind(load_tables(run), run.branch):
                    raise

    def _audit(self, run: Run, tables: Mapping[str, Table]) -> tuple[AuditResult, ...]:
        with run.session(tables):
            return AuditRun(self._spark, tables, run.branch, run).results(self.audits)

    def _propose(
        self, run: Run, tables: Mapping[str, Table], done: Mapping[str, Any], results: Sequence[AuditResult]
    ) -> PipelineReport:
        """Report the audits as checks of the heads that they saw, in a pull request that is opened if they pass."""
        audited = {name: table.refs[run.branch].snapshot_id for name, table in tables.items()}
        has_passed = all(result.passed for result in results)
        (target,) = {real_branch(table.metadata, MAIN) for table in tables.values()}
        number = propose_run(run, target, audited, results, may_open=has_passed)
        return _report(run, "pull request" if has_passed else "audits failed", pull_request=number, **done)

    def _publish(
        self, run: Run, tables: Mapping[str, Table], done: Mapping[str, Any], tag: str | None
    ) -> PipelineReport:
        """Fast-forward `main` to what was audited; TablesRefusedError if either has moved since."""
        audited = {name: table.refs[run.branch].snapshot_id for name, table in tables.items()}
        try:
            published = self._lake.publish(run.branch, tables=audited, tag=tag, run=run.identity)
        except BerglineError:
            now = load_tables(run)
            if History(run, now).is_published:
                return self._published_before(run, now, tag)
            raise
        RunSteps(run, self.steps).drop_leftovers(load_tables(run))
        return _report(run, "published", published=published, tag=tag, **done)

    def _published_before(self, run: Run, tables: Mapping[str, Table], tag: str | None) -> PipelineReport:
        RunSteps(run, self.steps).drop_leftovers(tables)
        history = History(run, tables)
        if tag is not None:
            history.check_tagged(tag)
        written = history.steps(MAIN)
        steps = tuple(StepResult(name, "written before", written[name]) for name in self.steps if name in written)
        return _report(run, "published before", steps=steps, tag=tag)

    def _check(self, run: Run, tables: Mapping[str, Table], tag: str | None) -> None:
        """Refuse what is known to be wrong before anything is written."""
        RunSteps(run, self.steps).check_names()
        for name, table in tables.items():
            if run.branch in table.refs:
                table.check_branch(run.branch)
            if tag is not None and tag in table.refs:
                kind = table.refs[tag].snapshot_ref_type
                raise AlreadyExistsError(f"{kind} `{tag}` of `{name}` exists already", kind="ref", name=tag)
            if opted_out(table):
                raise RefusedError(
                    f"cannot run a pipeline on `{name}`: its property `write.wap.enabled` is `false`, so that the "
                    "session's writes would go to `main`"
                )
        for audit in self.audits:
            check_audit(audit, tables)


def _report(run: Run, status: Status, **parts: Any) -> PipelineReport:
    return PipelineReport(run.pipeline, run.run_id, run.branch, status, **parts)


def _check_tag(tag: str | None, branch: str) -> None:
    if tag is None:
        return
    check_ref_name(tag)
    if tag in {branch, MAIN}:
        raise InvalidInputError(f"expected a tag with a name of its own, found that of branch `{tag}`")


def _check_timeout(seconds: float) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise InvalidInputError(f"expected seconds from 0 on for `session_timeout`, found {shown(seconds)}")


def _checked_name(name: str, of: str) -> str:
    if not check_text(name, f"text for the name of {of}"):
        raise InvalidInputError(f"expected a name for {of}, found empty text")
    return name


def _checked_steps(steps: Mapping[str, Step]) -> dict[str, Step]:
    if not isinstance(steps, Mapping):
        raise InvalidInputError(f"expected a mapping of steps by name, found {shown(steps)}")
    for name, step in steps.items():
        _checked_name(name, "a step")
        if not isinstance(step, str) and not callable(step):
            raise InvalidInputError(f"expected SQL or a function for step `{name}`, found {shown(step)}")
    return dict(steps)


def _checked_audits(audits: Sequence[Audit]) -> tuple[Audit, ...]:
    if not isinstance(audits, list | tuple):
        raise InvalidInputError(f"expected a list of audits, found {shown(audits)}")
    names: set[str] = set()
    for audit in audits:
        if not isinstance(audit, Audit):
            raise InvalidInputError(f"expected an audit, found {shown(audit)}")
        if audit.name in names:
            raise InvalidInputError(
                f"expected a name of its own for each audit, found `{audit.name}` twice", hints=["give one a `name=`"]
            )
        names.add(audit.name)
    return tuple(audits)


def tables_behind(tables: Mapping[str, Table], branch: str) -> list[str]:
    """The tables whose `main` has moved on since the branch left it."""
    return [name for name, table in tables.items() if _is_behind(table.metadata, branch)]


def catch_up(tables: Mapping[str, Table], branch: str) -> list[str]:
    """Rebase the branch where `main` has moved on, and return those tables; a conflict with `main` is an error."""
    behind = tables_behind(tables, branch)
    for name in behind:
        tables[name].refs.rebase(branch, onto=MAIN)
    return behind


def _is_behind(metadata: TableMetadata, branch: str) -> bool:
    main, own = metadata.head(MAIN), metadata.head(branch)
    if main is None or own is None:
        return False
    return all(snapshot.snapshot_id != main.snapshot_id for snapshot in metadata.ancestors(own.snapshot_id))
