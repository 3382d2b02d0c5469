"""`maintain`: maintains all tables of a lake, or some, by a policy, and returns a report."""

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatchcase

import msgspec

from bergline.arguments import check_list, check_positive, check_text, shown
from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.lake.lake import Lake
from bergline.lake.maintenance.expired_branches import drop_expired_branches
from bergline.lake.maintenance.report import (
    MaintenanceReport,
    MaintenanceStep,
    StepReport,
    StepStatus,
    TableReport,
    failed_step,
)
from bergline.lake.maintenance.steps import StepContext, maintain_table
from bergline.table.commits.retry import Timing
from bergline.table.engine.row_engine import RowEngine, check_row_engine
from bergline.table.evolution.maintenance_policy import DAY_MS, MaintenancePolicy
from bergline.table.orphans.catalog_tables import every_table, load_listed
from bergline.table.table_selection import TableNames, named_tables

_LONGEST_BUDGET_S = 10**9
TableProgress = Callable[[TableReport, int, int], object]
"""Called after each table, with its report, the number of tables done and the number of all tables."""


def maintain(
    lake: Lake,
    policy: MaintenancePolicy | None = None,
    *,
    tables: TableNames | None = None,
    namespace: str | Namespace | None = None,
    pattern: str | None = None,
    steps: Iterable[str] | None = None,
    plan: bool = False,
    budget: float | dt.timedelta | None = None,
    threads: int = 1,
    engine: RowEngine | None = None,
    allow_recent: bool = False,
    progress: TableProgress | None = None,
) -> MaintenanceReport:
    """Compact data files, rewrite manifests, expire snapshots and delete orphan files, table by table.

    A table's properties `bergline.maintain.*` decide what is done to it, else those of its namespace, else the policy.
    It may run in several places at once, alongside writers: whoever loses a race plans again, or leaves the step to a
    later run. An error in one table does not stop the others; it is in the report.

    Args:
        lake: the lake with the tables.
        policy: the settings for everything that properties do not set.
        tables: the names of the tables; by default all.
        namespace: only tables in this namespace and below it.
        pattern: only tables whose whole names match, as in `db.orders_*`.
        steps: some of `compaction`, `manifests`, `expiry` and `orphans`; by default all.
        plan: report what would be done, and change nothing.
        budget: seconds, after which no step and no further rewrite begins.
        threads: how many tables are maintained in parallel.
        engine: rewrites rows on Spark's executors if it is `bergline.spark.row_engine(spark)`; by default it is done in
            this process.
        allow_recent: allow a policy to delete orphan files younger than 24 hours; nobody may write at that time.
        progress: called after each table, with its report, the number of tables done and the number of all tables.
    """
    if not isinstance(lake, Lake):
        raise InvalidInputError(f"expected a lake as `bergline.connect` opens it, found {shown(lake)}")
    if policy is not None and not isinstance(policy, MaintenancePolicy):
        raise InvalidInputError(f"expected a MaintenancePolicy, found {shown(policy)}")
    policy = policy or MaintenancePolicy()
    if policy.orphans_older_than_ms < DAY_MS and not allow_recent:
        raise InvalidInputError(
            f"expected `orphans_older_than_ms` of {DAY_MS} or more, found {policy.orphans_older_than_ms}",
            hints=["if nobody is writing, maintain with allow_recent=True"],
        )
    chosen = _chosen_steps(steps)
    timing = lake._handle.timing  # noqa: SLF001  (maintenance is a part of the lake)
    seconds = _seconds(budget)
    run = _Run(
        lake.catalog,
        policy,
        _Namespaces(lake.catalog),
        timing,
        chosen,
        tables is not None,
        bool(plan),
        check_row_engine(engine),
        bool(allow_recent),
        None if seconds is None else timing.clock_ms() + math.ceil(seconds * 1000),
    )
    expired: dict[TableName, list[StepReport]] = {}
    if MaintenanceStep.EXPIRY in chosen and tables is None and namespace is None and pattern is None:
        expired = drop_expired_branches(lake._handle, plan=bool(plan))  # noqa: SLF001  (likewise)
    names = _selected(lake.catalog, tables, namespace, pattern)
    # in random order, so that several maintainers rarely meet, and with a budget every table gets its turn
    order = random.sample(names, len(names))
    reports: list[TableReport] = []
    for done in _side_by_side(run.table, order, check_positive(threads, "threads")):
        before = expired.pop(parse_table_name(done.table), [])
        report = msgspec.structs.replace(done, steps=(*before, *done.steps))
        reports.append(report)
        if progress is not None:
            progress(report, len(reports), len(order))
    reports += [TableReport(str(name), tuple(steps)) for name, steps in expired.items()]
    return MaintenanceReport(bool(plan), tuple(sorted(reports, key=lambda report: report.table)))


def _side_by_side(
    work: Callable[[TableName], TableReport], names: list[TableName], threads: int
) -> Iterator[TableReport]:
    """The reports as they come; a single thread is the caller's own, because a Spark session may be bound to it."""
    if threads == 1:
        yield from map(work, names)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="bergline-maintain")
    try:
        for future in as_completed([pool.submit(work, name) for name in names]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Run(msgspec.Struct, frozen=True):
    """The settings of a run, the same for all tables."""

    catalog: Catalog
    policy: MaintenancePolicy
    namespaces: "_Namespaces"
    timing: Timing
    steps: tuple[MaintenanceStep, ...]
    named: bool
    """Whether the caller named the tables, so that a missing one is an error."""
    plan: bool
    engine: RowEngine | None
    allow_recent: bool
    deadline_ms: int | None

    def table(self, name: TableName) -> TableReport:
        """Maintain one table; an error is part of the report."""
        try:
            return TableReport(str(name), tuple(self._steps(name)))
        except Exception as error:  # noqa: BLE001  (one table must not stop the others)
            return TableReport(str(name), (failed_step(None, error),))

    def _steps(self, name: TableName) -> Iterator[StepReport]:
        start_ms = self.timing.clock_ms()
        if self.deadline_ms is not None and start_ms >= self.deadline_ms:
            yield StepReport(None, StepStatus.SKIPPED, "the time budget is used up")
            return
        loaded = load_listed(self.catalog, name)
        if loaded is None:
            if self.named:
                raise NotFoundError(f"no table `{name}`", kind="table", name=str(name))
            yield StepReport(None, StepStatus.SKIPPED, "the table was dropped meanwhile")
            return
        policy = self._policy_of(loaded)
        if not policy.enabled:
            yield StepReport(None, StepStatus.SKIPPED, "the policy turns maintenance off")
            return
        limits = (self.deadline_ms, None if policy.time_budget_ms is None else start_ms + policy.time_budget_ms)
        context = StepContext(
            self.catalog,
            loaded,
            self._policy_of,
            self.timing,
            self.plan,
            self.engine,
            self.allow_recent,
            min((limit for limit in limits if limit is not None), default=None),
        )
        yield from maintain_table(context, self.steps)

    def _policy_of(self, table: LoadedTable) -> MaintenancePolicy:
        policy = self.namespaces.override(self.policy, table.name.namespace)
        return policy.overridden_by(table.metadata.properties)


class _Namespaces:
    """The properties of namespaces, each read only once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[Namespace, dict[str, str]] = {}

    def override(self, policy: MaintenancePolicy, namespace: Namespace) -> MaintenancePolicy:
        """The policy overridden by the properties of a namespace and those around it, the innermost last."""
        for depth in range(1, len(namespace) + 1):
            outer = namespace[:depth]
            policy = policy.overridden_by(self._properties(outer), place=f" of namespace `{'.'.join(outer)}`")
        return policy

    def _properties(self, namespace: Namespace) -> dict[str, str]:
        if namespace not in self._known:
            try:
                self._known[namespace] = self._catalog.namespace_properties(namespace)
            except (NotFoundError, UnsupportedError):  # not every catalog has the outer ones, or any properties
                self._known[namespace] = {}
        return self._known[namespace]


def _selected(
    catalog: Catalog, tables: TableNames | None, namespace: str | Namespace | None, pattern: str | None
) -> list[TableName]:
    """The named tables, or all, in a namespace and below it, whose names match the pattern."""
    if tables is not None:
        if namespace is not None or pattern is not None:
            raise InvalidInputError("expected either tables or a namespace and a pattern, found both")
        return list(named_tables(tables))
    below = () if namespace is None else parse_namespace(namespace)
    names = list(every_table(catalog, below))
    if pattern is None:
        return names
    matching = [name for name in names if fnmatchcase(str(name), check_text(pattern, "text for the pattern"))]
    if not matching:
        raise NotFoundError(
            f"no table matches `{pattern}`", kind="table", name=pattern, known=[str(name) for name in names]
        )
    return matching


def _chosen_steps(steps: Iterable[str] | None) -> tuple[MaintenanceStep, ...]:
    """The steps with these names, in the order in which they are run."""
    known = tuple(MaintenanceStep)
    chosen = known if steps is None else check_list(steps, "step")
    for name in chosen:
        if name not in known:
            raise InvalidInputError(f"expected steps of {', '.join(known)}, found {shown(name)}")
    if not chosen:
        raise InvalidInputError(f"expected steps of {', '.join(known)}, found none")
    return tuple(step for step in known if step in chosen)


def _seconds(budget: float | dt.timedelta | None) -> float | None:
    seconds = budget.total_seconds() if isinstance(budget, dt.timedelta) else budget
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_BUDGET_S:
        raise InvalidInputError(f"expected seconds above 0 for budget, found {shown(budget)}")
    return seconds
