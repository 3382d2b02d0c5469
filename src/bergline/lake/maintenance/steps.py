"""The steps of maintenance on one table: each says what it would do and why, then does it unless it only plans."""

import datetime as dt
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import chain

import msgspec

from bergline.arguments import counted
from bergline.catalog.attempts import looks
from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.errors import BerglineError, CommitUnknownError, ConflictError, NotFoundError
from bergline.format.metadata.refs import MAIN
from bergline.lake.maintenance.report import MaintenanceStep, StepReport, StepStatus, failed_step
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.commit import load_same_table
from bergline.table.commits.retry import Timing
from bergline.table.engine.row_engine import RowEngine
from bergline.table.evolution.maintenance_policy import MaintenancePolicy
from bergline.table.expiry.reasons import duration_text
from bergline.table.expiry.retention import DEFAULT_MAX_AGE_MS, MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS_TO_KEEP
from bergline.table.operations.compaction import (
    CompactionRequest,
    CompactionResult,
    parse_order,
    plan_compaction,
    rewrite_kind,
)
from bergline.table.operations.rewrite_manifests import RewriteManifests, many_small_manifests
from bergline.table.operations.rewrite_options import RewriteOptions, parse_options
from bergline.table.table import Table

_FILES_AT_ONCE = 1000  # are rewritten in a commit, or fewer if they are large
_BYTES_AT_ONCE = 16 * 1024**3
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PATTERN = frozenset("*?[")


class StepContext(msgspec.Struct, frozen=True):
    """One table, and how it is to be maintained."""

    catalog: Catalog
    loaded: LoadedTable
    policy_of: Callable[[LoadedTable], MaintenancePolicy]
    """Called before each step, so that turning maintenance off takes effect at once."""
    timing: Timing
    plan: bool
    engine: RowEngine | None
    allow_recent: bool
    deadline_ms: int | None
    """No step, and no further commit of compaction, begins after this."""

    @property
    def is_out_of_time(self) -> bool:
        """Whether nothing new may begin."""
        return self.deadline_ms is not None and self.timing.clock_ms() >= self.deadline_ms

    def newest(self) -> tuple[Table, MaintenancePolicy]:
        """The table as it is now; ConflictError if it was dropped and re-created."""
        loaded = load_same_table(
            self.catalog, self.loaded.name, self.loaded.metadata.table_uuid, self.loaded.metadata_location
        )
        return Table(self.catalog, loaded, timing=self.timing), self.policy_of(loaded)


def maintain_table(context: StepContext, steps: tuple[MaintenanceStep, ...]) -> Iterator[StepReport]:
    """Run every step in turn; a failed step does not stop the others."""
    for step in steps:
        for branch in _branches(context, step):
            if isinstance(branch, StepReport):
                yield branch
            elif context.is_out_of_time:
                yield StepReport(step, StepStatus.SKIPPED, "the time budget is used up", branch)
            else:
                yield _reported(context, step, branch)


def _branches(context: StepContext, step: MaintenanceStep) -> list[str | StepReport | None]:
    """The branches that a step is for, None for the table as a whole; or a report if there is none."""
    if step in {MaintenanceStep.EXPIRY, MaintenanceStep.ORPHANS}:
        return [None]
    metadata = context.loaded.metadata
    branches = {MAIN, *(name for name, ref in metadata.refs.items() if ref.is_branch)}
    found: dict[str, str | StepReport] = {}
    for pattern in context.policy_of(context.loaded).branches:
        names = sorted(name for name in branches if fnmatchcase(name, pattern))
        if not names and not _PATTERN & set(pattern):
            found[pattern] = StepReport(step, StepStatus.SKIPPED, f"there is no branch `{pattern}`", pattern)
        found |= {name: name for name in names}
    return list(found.values())


def _reported(context: StepContext, step: MaintenanceStep, branch: str | None) -> StepReport:
    """Run a step, and plan it again if others expired what it was about to read; an error becomes its report."""
    table, tries = None, looks(f"table `{context.loaded.name}` kept changing while its files were read")
    while True:
        try:
            next(tries)
            table, policy = context.newest()
            return _STEPS[step](context, table, policy, branch)
        except Exception as error:  # noqa: BLE001  (one table must not stop the others)
            is_missing = isinstance(error, NotFoundError) and error.kind == "file"
            if not is_missing or table is None or not _has_moved(context.catalog, table):
                return _report_of(error, step, branch)


def _report_of(error: Exception, step: MaintenanceStep, branch: str | None) -> StepReport:
    """The report of an error: a conflict is skipped and left to a later run; an unknown outcome is not a failure."""
    if isinstance(error, ConflictError) or (isinstance(error, NotFoundError) and error.kind in {"table", "ref"}):
        return StepReport(step, StepStatus.SKIPPED, f"others changed the table: {error}", branch, error=error.code)
    return failed_step(step, error, branch, unknown=isinstance(error, CommitUnknownError))


def _has_moved(catalog: Catalog, table: Table) -> bool:
    try:
        return catalog.pointer(table.name) != table.metadata_location
    except BerglineError:
        return False


def _compaction(context: StepContext, table: Table, policy: MaintenancePolicy, branch: str | None) -> StepReport:
    """Rewrite small files, and files with many deletes, to larger ones."""
    step, ref = MaintenanceStep.COMPACTION, branch or MAIN
    head = table.metadata.head(ref)
    if not policy.compaction:
        return _off(step, branch)
    if head is None:
        return StepReport(step, StepStatus.NOTHING, "there is no snapshot", branch)
    files = plan_compaction(table.io, table.metadata, head, _compaction_request(table, policy)).files
    if not len(files):
        return StepReport(step, StepStatus.NOTHING, branch=branch)
    deleted, size = sum(map(bool, chain.from_iterable(g.deletes for g in files.groups))), sum(files.sizes)
    partitions = {key for group in files.groups for key in group.partition_keys}
    reason = (
        f"{counted(len(files) - deleted, 'small file')} and {counted(deleted, 'file')} with deletes "
        f"in {counted(len(partitions), 'partition')}"
    )
    if context.plan:
        details = {"rewritten_data_files": len(files), "rewritten_bytes": size}
        return StepReport(step, StepStatus.PLANNED, reason, branch, details)
    most_files = min(_FILES_AT_ONCE, _BYTES_AT_ONCE * len(files) // max(size, 1))
    report = StepReport(step, StepStatus.DONE, reason, ref)
    return _compacted(context, table, policy, report, max(most_files, 2 * policy.compaction_min_input_files))


def _compacted(
    context: StepContext, table: Table, policy: MaintenancePolicy, report: StepReport, most_files: int
) -> StepReport:
    """Compact a limited number of files per commit, until nothing is left or time is up."""
    done = CompactionResult()
    ended: StepReport | None = None
    while ended is None:
        try:
            result = table.compact(
                branch=report.branch or MAIN,
                strategy=policy.compaction_strategy,
                sort_order=policy.compaction_sort_order,
                options={**_compaction_options(policy), "max_files_to_rewrite": most_files},
                engine=context.engine,
            )
        except BerglineError as error:
            if not done.rewritten_data_files:
                raise
            ended = _report_of(error, MaintenanceStep.COMPACTION, report.branch)
            break
        done += result
        if result.rewritten_data_files < most_files or result.added_data_files >= result.rewritten_data_files:
            ended = report
        elif context.is_out_of_time:
            ended = msgspec.structs.replace(report, reason=f"{report.reason}; then the time budget was used up")
    details = {name: value for name, value in msgspec.structs.asdict(done).items() if value}
    if not details:
        return StepReport(MaintenanceStep.COMPACTION, StepStatus.NOTHING, "others did it meanwhile", report.branch)
    return msgspec.structs.replace(ended, details=details)


def _compaction_request(table: Table, policy: MaintenancePolicy) -> CompactionRequest:
    """The request to `compact`, without a limit."""
    kind = rewrite_kind(policy.compaction_strategy, policy.compaction_sort_order)
    options = parse_options(_compaction_options(policy), kind, RewriteOptions(remove_dangling_deletes=True))
    order = parse_order(kind, policy.compaction_sort_order, table.metadata, options)
    return CompactionRequest(order=order, options=options, only_fewer=True)


def _compaction_options(policy: MaintenancePolicy) -> dict[str, int | float]:
    size = policy.compaction_target_file_size_bytes
    return {
        **({} if size is None else {"target_file_size_bytes": size}),
        "min_input_files": policy.compaction_min_input_files,
        "delete_ratio_threshold": policy.compaction_delete_ratio_threshold,
        "delete_file_threshold": policy.compaction_delete_file_threshold,
    }


def _manifests(context: StepContext, table: Table, policy: MaintenancePolicy, branch: str | None) -> StepReport:
    """Merge many small manifests into few."""
    step, ref = MaintenanceStep.MANIFESTS, branch or MAIN
    if not policy.manifests:
        return _off(step, branch)
    head, least = table.metadata.head(ref), policy.manifests_min_count
    kinds = {} if head is None else many_small_manifests(table.metadata, load_manifest_list(table.io, head), least)
    if not kinds:
        return StepReport(step, StepStatus.NOTHING, branch=branch)
    found = [manifest for manifests in kinds.values() for manifest in manifests]
    planned = {"rewritten_manifests": len(found), "rewritten_bytes": sum(m.manifest_length for m in found)}
    reason = f"{counted(len(found), 'small manifest')} of {counted(len(kinds), 'kind')}"
    if context.plan:
        return StepReport(step, StepStatus.PLANNED, reason, branch, planned)
    operation = RewriteManifests(table.io, min_count=least, branch=ref)
    table.commit(operation)
    if (snapshot := operation.snapshot) is None:
        return StepReport(step, StepStatus.NOTHING, "others did it meanwhile", branch)
    counts = {"rewritten_manifests": "manifests-replaced", "added_manifests": "manifests-created"}
    done = {name: int(snapshot.summary[key]) for name, key in counts.items()}
    return StepReport(step, StepStatus.DONE, reason, branch, done)


def _expiry(context: StepContext, table: Table, policy: MaintenancePolicy, _branch: str | None) -> StepReport:
    """Remove snapshots beyond what branches keep, and the files that only they needed."""
    if not policy.expiry:
        return _off(MaintenanceStep.EXPIRY)
    if (refused := _no_garbage_collection(MaintenanceStep.EXPIRY, table)) is not None:
        return refused
    age, least = policy.max_snapshot_age_ms, policy.min_snapshots_to_keep
    own = table.properties  # which `expire` follows itself, and names in its reasons
    result = table.expire(
        older_than=None if age is None or MAX_SNAPSHOT_AGE in own else _moment(context.timing.clock_ms() - age),
        retain_last=None if MIN_SNAPSHOTS_TO_KEEP in own else least,
        clean_metadata=policy.expiry_clean_metadata,
        dry_run=context.plan,
    )
    removed = {
        "removed_snapshots": len(result.removed_snapshots),
        "removed_refs": len(result.removed_refs),
        "removed_specs": len(result.removed_specs),
        "removed_schemas": len(result.removed_schemas),
    }
    if not any(removed.values()):
        return StepReport(MaintenanceStep.EXPIRY, StepStatus.NOTHING)
    files = {
        "deleted_files": result.deleted_files,
        "deleted_bytes": result.deleted_bytes,
        "failed_files": len(result.failed),
    }
    details = {name: value for name, value in {**removed, **files}.items() if value}
    kept = duration_text(DEFAULT_MAX_AGE_MS if age is None else age), counted(1 if least is None else least, "snapshot")
    reason = f"branches keep snapshots up to {kept[0]} old, and at least {kept[1]}, unless they set it otherwise"
    return StepReport(MaintenanceStep.EXPIRY, _status(context), reason, details=details)


def _orphans(context: StepContext, table: Table, policy: MaintenancePolicy, _branch: str | None) -> StepReport:
    """Delete old files in the table's directories that nothing needs."""
    if not policy.orphans:
        return _off(MaintenanceStep.ORPHANS)
    if (refused := _no_garbage_collection(MaintenanceStep.ORPHANS, table)) is not None:
        return refused
    age = policy.orphans_older_than_ms
    plan = table.plan_orphans(older_than=_moment(context.timing.clock_ms() - age), allow_recent=context.allow_recent)
    if not plan.files:
        return StepReport(MaintenanceStep.ORPHANS, StepStatus.NOTHING)
    reason = f"nothing needs {counted(len(plan.files), 'file')} older than {duration_text(age)}"
    if context.plan:
        details = {"deleted_files": len(plan.files), "deleted_bytes": plan.size}
        return StepReport(MaintenanceStep.ORPHANS, StepStatus.PLANNED, reason, details=details)
    result = table.sweep_orphans(plan)
    counts = {
        "deleted_files": len(result.deleted),
        "deleted_bytes": result.deleted_bytes,
        "spared_files": len(result.spared),
        "failed_files": len(result.failed),
    }
    details = {name: value for name, value in counts.items() if value}
    if not result.deleted and not result.failed:
        return StepReport(MaintenanceStep.ORPHANS, StepStatus.NOTHING, "others did it meanwhile", details=details)
    return StepReport(MaintenanceStep.ORPHANS, StepStatus.DONE, reason, details=details)


def _off(step: MaintenanceStep, branch: str | None = None) -> StepReport:
    return StepReport(step, StepStatus.SKIPPED, "the policy turns it off", branch)


def _no_garbage_collection(step: MaintenanceStep, table: Table) -> StepReport | None:
    """A report if the table says that its files may be shared."""
    collecting = table.properties.get("gc.enabled", "true")
    if collecting.lower() == "true":
        return None
    return StepReport(step, StepStatus.SKIPPED, f"`gc.enabled` is {collecting}: other tables may share the files")


def _status(context: StepContext) -> StepStatus:
    return StepStatus.PLANNED if context.plan else StepStatus.DONE


def _moment(ms: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=max(ms, 0))


_STEPS: dict[MaintenanceStep, Callable[[StepContext, Table, MaintenancePolicy, str | None], StepReport]] = {
    MaintenanceStep.COMPACTION: _compaction,
    MaintenanceStep.MANIFESTS: _manifests,
    MaintenanceStep.EXPIRY: _expiry,
    MaintenanceStep.ORPHANS: _orphans,
}
