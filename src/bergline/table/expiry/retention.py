"""Which snapshots and refs expiry removes, and by which rule. Pure: the result depends on metadata, time and request.

Decisions and reasons come from the same walk, so they cannot disagree.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Any, Final

import msgspec

from bergline.arguments import shown
from bergline.catalog.protection.ref_protection import (
    ProtectingRule,
    all_rules,
    rule_against_drop,
    rule_against_expiry,
)
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.metadata.refs import MAIN, SnapshotRef
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata, positive_property
from bergline.table.expiry.reasons import (
    AgeLimit,
    AmongNewest,
    Beyond,
    Head,
    KeepReason,
    KeptByRule,
    MainStays,
    NamedByCaller,
    OldRef,
    OldWithoutRef,
    ProtectedByRule,
    RefReason,
    RefWithoutLimit,
    RemoveReason,
    Young,
    YoungRef,
    YoungWithoutRef,
)

MAX_SNAPSHOT_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS_TO_KEEP: Final = "history.expire.min-snapshots-to-keep"
_MAX_REF_AGE = "history.expire.max-ref-age-ms"
DEFAULT_MAX_AGE_MS: Final = 432_000_000
_NEVER = 2**63 - 1


class ExpiryRequest(msgspec.Struct, frozen=True):
    """The caller's options; None means the table's own setting."""

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()
    levels: tuple[RuleLevel, ...] = ()
    """The rules about refs that apply to the table in addition to its own."""


class RefDecision(msgspec.Struct, frozen=True):
    """Whether a ref is kept, and why."""

    name: str
    ref: SnapshotRef
    kept: bool
    reason: RefReason


class SnapshotDecision(msgspec.Struct, frozen=True):
    """Whether a snapshot is kept, with every reason."""

    snapshot: Snapshot
    kept: bool
    reasons: tuple[KeepReason | RemoveReason, ...]

    @property
    def kept_by(self) -> frozenset[str]:
        """The refs that keep it."""
        return frozenset(r.ref for r in self.reasons if isinstance(r, Head | Young | AmongNewest | KeptByRule))


class ExpiryDecision(msgspec.Struct, frozen=True):
    """The decisions on every ref, by name, and on every snapshot, in the table's order."""

    refs: tuple[RefDecision, ...]
    snapshots: tuple[SnapshotDecision, ...]

    @property
    def removed_refs(self) -> tuple[str, ...]:
        """The refs that are removed."""
        return tuple(d.name for d in self.refs if not d.kept)

    @property
    def removed_snapshots(self) -> tuple[int, ...]:
        """The snapshots that are removed."""
        return tuple(d.snapshot.snapshot_id for d in self.snapshots if not d.kept)


def decide_expiry(metadata: TableMetadata, request: ExpiryRequest, now_ms: int) -> ExpiryDecision:
    """Keep what any live ref protects; of the rest, remove what is old enough or named."""
    gc_enabled = metadata.properties.get("gc.enabled", "true").lower()
    if gc_enabled != "true":  # a misspelled value counts as false, too: nothing must be deleted by mistake
        raise RefusedError(f"cannot expire snapshots: `gc.enabled` is {gc_enabled}, other tables may share the files")
    if request.retain_last is not None and request.retain_last < 1:
        raise InvalidInputError(f"expected retain_last of at least 1, found {request.retain_last}")
    limits = _table_limits(metadata, request, now_ms)
    of_refs = all_rules(metadata.properties, request.levels)
    refs = tuple(_decide_ref(metadata, name, of_refs, now_ms) for name in sorted(metadata.refs))
    live = {d.name: d.ref for d in refs if d.kept}
    _check_not_referenced(live, request.snapshot_ids)
    reasons: dict[int, list[KeepReason | RemoveReason]] = defaultdict(list)
    for name, ref in live.items():
        kept_by = rule_against_expiry(of_refs, name)
        for snapshot_id, reason in _by_ref(metadata, name, _ref_limits(ref, limits, now_ms), kept_by):
            reasons[snapshot_id].append(reason)
    decided = []
    for snapshot in metadata.snapshots:
        rules = reasons.get(snapshot.snapshot_id) or [_without_ref(snapshot, limits.age)]
        requested = snapshot.snapshot_id in request.snapshot_ids
        decided.append(_decide_snapshot(snapshot, rules, requested=requested))
    return ExpiryDecision(refs, tuple(decided))


class _Limits(msgspec.Struct, frozen=True):
    """What a branch keeps."""

    age: AgeLimit
    least: int


def _table_limits(metadata: TableMetadata, request: ExpiryRequest, now_ms: int) -> _Limits:
    """The limits for branches without settings of their own, and for snapshots on no branch."""
    if request.older_than_ms is None:
        age_ms = positive_property(metadata, MAX_SNAPSHOT_AGE, DEFAULT_MAX_AGE_MS)
        age = AgeLimit(now_ms - age_ms, age_ms)
    else:
        age = AgeLimit(request.older_than_ms)
    return _Limits(age, request.retain_last or positive_property(metadata, MIN_SNAPSHOTS_TO_KEEP, 1))


def _ref_limits(ref: SnapshotRef, table: _Limits, now_ms: int) -> _Limits:
    """The limits of a branch; its own settings take precedence."""
    age, most = table.age, ref.max_snapshot_age_ms
    if most is not None:
        age = AgeLimit(now_ms - most, most)
    return _Limits(age, table.least if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep)


def _decide_ref(metadata: TableMetadata, name: str, of_refs: tuple[ProtectingRule, ...], now_ms: int) -> RefDecision:
    """`main` and protected refs always stay; any other ref stays while its snapshot is young enough."""
    ref = metadata.refs[name]
    if name == MAIN:
        return RefDecision(name, ref, True, MainStays())
    if (rule := rule_against_drop(of_refs, name, is_branch=ref.is_branch)) is not None:
        return RefDecision(name, ref, True, ProtectedByRule(rule))
    most = ref.max_ref_age_ms or positive_property(metadata, _MAX_REF_AGE, _NEVER)
    kept = now_ms - metadata.snapshots_by_id[ref.snapshot_id].timestamp_ms <= most
    reason = RefWithoutLimit() if most == _NEVER else YoungRef(most) if kept else OldRef(most)
    return RefDecision(name, ref, kept, reason)


def _by_ref(
    metadata: TableMetadata, name: str, limits: _Limits, kept_by: str | None
) -> Iterator[tuple[int, KeepReason | RemoveReason]]:
    """The reasons from a live ref for its snapshot and, if it is a branch, for all ancestors.

    A branch keeps its newest snapshots: at least the minimum, and beyond it as long as they are young; or all of them,
    if a rule says so.
    """
    ref = metadata.refs[name]
    yield ref.snapshot_id, Head(name, ref.snapshot_ref_type)
    if not ref.is_branch:
        return
    if kept_by is not None:
        for snapshot in metadata.ancestors(ref.snapshot_id):
            yield snapshot.snapshot_id, KeptByRule(name, kept_by)
        return
    young, newest = Young(name, limits.age), AmongNewest(name, limits.least)
    beyond = {is_old: Beyond(name, limits.age, limits.least, is_old) for is_old in (False, True)}
    past = False
    for count, snapshot in enumerate(metadata.ancestors(ref.snapshot_id)):
        is_old = snapshot.timestamp_ms < limits.age.cutoff_ms
        past = past or (count >= limits.least and is_old)
        if count == 0:
            continue
        if past:
            yield snapshot.snapshot_id, beyond[is_old]
        else:
            yield snapshot.snapshot_id, newest if is_old else young


def _without_ref(snapshot: Snapshot, limit: AgeLimit) -> KeepReason | RemoveReason:
    """The reason for a snapshot to which no live ref leads."""
    return OldWithoutRef(limit) if snapshot.timestamp_ms < limit.cutoff_ms else YoungWithoutRef(limit)


def _decide_snapshot(
    snapshot: Snapshot, rules: list[KeepReason | RemoveReason], *, requested: bool
) -> SnapshotDecision:
    """A single rule that keeps it is enough, unless its removal was requested."""
    keeping = tuple(r for r in rules if isinstance(r, KeepReason))
    if keeping and not requested:
        return SnapshotDecision(snapshot, True, keeping)
    removing = tuple(r for r in rules if isinstance(r, RemoveReason)) if not keeping else ()
    return SnapshotDecision(snapshot, False, (*((NamedByCaller(),) if requested else ()), *removing))


def _check_not_referenced(live: dict[str, SnapshotRef], snapshot_ids: Collection[int]) -> None:
    for snapshot_id in sorted(snapshot_ids):
        if names := sorted(n for n, r in live.items() if r.snapshot_id == snapshot_id):
            several = len(names) > 1
            listed = ", ".join(f"`{n}`" for n in names)
            raise RefusedError(
                f"cannot expire snapshot {snapshot_id}: {listed} still {'name' if several else 'names'} it",
                hints=["drop the refs first" if several else "drop the ref first"],
            )


class CleanupLevel(StrEnum):
    """Which of the files that no snapshot needs any more are deleted."""

    ALL = "all"
    METADATA = "metadata"
    """Manifests, manifest lists and statistics; data and delete files stay."""
    NONE = "none"


_NAMES = {**{level.value: level for level in CleanupLevel}, "metadata_only": CleanupLevel.METADATA}


def parse_level(level: Any) -> CleanupLevel:
    """The level with this name, ignoring case; also Java's METADATA_ONLY."""
    found = _NAMES.get(level.lower()) if isinstance(level, str) else None
    if found is None:
        raise InvalidInputError(f"expected a level of all, metadata or none, found {shown(level)}")
    return found
