"""What expiry would remove and why, and what each ref holds."""

from functools import partial

import msgspec

from bergline.errors import BerglineError, RefusedError
from bergline.format.metadata.refs import SnapshotRef
from bergline.reports.problem import Problem, attempt, problem_of
from bergline.reports.totals import totals_of
from bergline.table.expiry.plan import Amount, ExpiryPlan
from bergline.table.expiry.reachable import FileKind
from bergline.table.expiry.retention import (
    DEFAULT_MAX_AGE_MS,
    MAX_SNAPSHOT_AGE,
    MIN_SNAPSHOTS_TO_KEEP,
    ExpiryDecision,
    ExpiryRequest,
    decide_expiry,
)
from bergline.table.table import Table


class RefRetention(msgspec.Struct, frozen=True):
    """How long a ref is kept, and what it keeps."""

    name: str
    ref: SnapshotRef
    kept: bool
    reason: str
    keeps_snapshots: int
    """The snapshots that it keeps, including those that other refs keep too."""
    pinned: Amount | None
    """The files that it alone holds; None if files could not be read."""
    head_bytes: int | None
    """The size of the state that it names."""


class SnapshotFate(msgspec.Struct, frozen=True):
    """Whether a snapshot is kept, and why."""

    snapshot_id: int
    timestamp_ms: int
    operation: str
    kept: bool
    reasons: tuple[str, ...]


class RetentionReport(msgspec.Struct, frozen=True):
    """What expiry would do now, by the settings of the table and its refs."""

    max_snapshot_age_ms: int | None
    """The table's setting for branches without their own; None if it is not a number."""
    min_snapshots_to_keep: int | None
    refs: tuple[RefRetention, ...]
    snapshots: tuple[SnapshotFate, ...]
    """The newest first."""
    deleted: Amount | None
    """What would be deleted in total; None if files could not be read."""
    deleted_by_kind: tuple[tuple[FileKind, Amount], ...]
    problems: tuple[Problem, ...]

    @property
    def removed_snapshots(self) -> int:
        """How many snapshots would be removed."""
        return sum(not s.kept for s in self.snapshots)

    @property
    def removed_refs(self) -> int:
        """How many refs would be removed."""
        return sum(not r.kept for r in self.refs)


def retention_report(table: Table, now_ms: int, *, files: bool = True) -> RetentionReport:
    """What expiry would do; if files cannot or should not be read, what it would decide without them."""
    problems: list[Problem] = []
    request = ExpiryRequest(levels=table.refs.scope_rules())
    decide = partial(decide_expiry, table.metadata, request, now_ms)
    plan: ExpiryPlan | None = None
    if files:
        try:
            plan = table.plan_expiry()
        except RefusedError:
            pass  # so does the decision
        except BerglineError as error:
            problems.append(problem_of("the files that expiry would delete", error))
    decision = plan.decision if plan is not None else attempt(problems, "what expiry would remove", decide)
    decision = decision or ExpiryDecision((), ())
    properties = table.metadata.properties
    return RetentionReport(
        _number(properties.get(MAX_SNAPSHOT_AGE), DEFAULT_MAX_AGE_MS),
        _number(properties.get(MIN_SNAPSHOTS_TO_KEEP), 1),
        _refs(table, decision, plan),
        tuple(
            SnapshotFate(
                d.snapshot.snapshot_id,
                d.snapshot.timestamp_ms,
                d.snapshot.operation,
                d.kept,
                tuple(map(str, d.reasons)),
            )
            for d in sorted(
                decision.snapshots, key=lambda d: (d.snapshot.timestamp_ms, d.snapshot.sequence_number), reverse=True
            )
        ),
        None if plan is None else plan.deleted,
        () if plan is None else tuple(plan.deleted_by_kind.items()),
        tuple(problems),
    )


def _refs(table: Table, decision: ExpiryDecision, plan: ExpiryPlan | None) -> tuple[RefRetention, ...]:
    kept_by: dict[str, int] = {}
    for one in decision.snapshots:
        for name in one.kept_by if one.kept else ():
            kept_by[name] = kept_by.get(name, 0) + 1
    decided = {d.name: d for d in decision.refs}
    lines = []
    for name, ref in sorted(table.metadata.refs.items()):
        fate = decided.get(name)
        lines.append(
            RefRetention(
                name,
                ref,
                fate is None or fate.kept,
                "" if fate is None else str(fate.reason),
                kept_by.get(name, 0),
                None if plan is None else plan.held.get(name),
                totals_of(table.metadata.snapshots_by_id.get(ref.snapshot_id)).bytes,
            )
        )
    return tuple(lines)


def _number(text: str | None, default: int) -> int | None:
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdecimal() else None
