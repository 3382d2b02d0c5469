"""Decisions on random changes of refs, against a model that knows only names, kinds and lines of snapshots."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from bergline.catalog.protection.decision import DecidedBy, HeadReview, Refused, decide
from bergline.catalog.protection.ref_moves import find_ref_moves
from bergline.catalog.protection.ref_rule import RefRule
from bergline.errors import BerglineError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot, RemoveSnapshotRef, RemoveSnapshots, SetSnapshotRef, Update
from support.fixtures.ref_histories import branch, history, tag

NAMES = ("main", "dev", "v1")
FLAGS = ("only_publish", "fast_forward_only", "no_drop", "no_move", "no_rollback", "no_expiry")
CALLERS = ("ann", "zoe")
Change = tuple[TableMetadata, TableMetadata]
Reviewed = frozenset[tuple[int, str]]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """A table before and after any change: snapshots added, removed and others under their ids, refs of both kinds."""
    size = draw(st.integers(2, 7))
    parents = {n: draw(st.sampled_from([None, *range(1, n)][-3:])) for n in range(1, size + 1)}
    known = list(range(1, draw(st.integers(1, size)) + 1))
    summaries = {
        n: draw(st.sampled_from([{}, {}, {"wap.id": "w"}, {"source-snapshot-id": str(draw(st.sampled_from(known)))}]))
        for n in parents
    }
    before = {name: draw(st.sampled_from([None, *known])) for name in NAMES}
    after = {name: draw(st.sampled_from([None, before[name], before[name], *parents])) for name in NAMES}
    kept = {n for n in parents if n in after.values() or draw(st.integers(0, 9))}
    had = [n for n in known if n in before.values() or draw(st.integers(0, 9))]
    forged = {n: {**summaries[n], "forged": "yes"} for n in kept if n in had and not draw(st.integers(0, 9))}
    tags = {name: {"v1"} if draw(st.integers(0, 3)) else draw(st.sets(st.sampled_from(NAMES))) for name in "ab"}
    return (
        _table({n: parents[n] for n in had}, summaries, before, tags["b"]),
        _table({n: parents[n] for n in parents if n in kept}, summaries | forged, after, tags["a"]),
    )


@st.composite
def commits(draw: st.DrawFn) -> Change:
    """A table, and what updates make of it that any client may send."""
    base, _ = draw(changes())
    base = msgspec.structs.replace(base, last_sequence_number=len(base.snapshots) + 7)
    numbers = st.integers(1, 9)
    result = base
    for place in range(draw(st.integers(1, 5))):
        number = base.last_sequence_number + place + 1
        summary = {"operation": "append", **draw(st.sampled_from([{}, {"source-snapshot-id": "2"}]))}
        new = Snapshot(
            sequence_number=number,
            snapshot_id=draw(numbers),
            parent_snapshot_id=draw(st.one_of(st.none(), numbers)),
            timestamp_ms=2_000_000_000_000 + number,
            summary=summary,
            manifest_list="memory:/new.avro",
        )
        kind = draw(st.sampled_from([SnapshotRefType.BRANCH, SnapshotRefType.BRANCH, SnapshotRefType.TAG]))
        name, at = draw(st.sampled_from(NAMES)), draw(numbers)
        updates: list[Update] = [
            RemoveSnapshots((at,)), RemoveSnapshotRef(name), AddSnapshot(new), SetSnapshotRef(name, at, kind),
        ]  # fmt: skip
        update = draw(st.sampled_from(updates))
        with contextlib.suppress(BerglineError):  # a client that sends it is told so
            result = apply_updates(result, (update,), base_location=None, now_ms=3_000_000_000_000)
    return base, result


def _table(
    parents: Mapping[int, int | None],
    summaries: Mapping[int, Mapping[str, str]],
    heads: Mapping[str, int | None],
    tags: set[str],
) -> TableMetadata:
    refs = {name: tag(head) if name in tags else branch(head) for name, head in heads.items() if head is not None}
    return history(parents, summaries, **refs)


@st.composite
def rules(draw: st.DrawFn) -> RefRule:
    flags = draw(st.sets(st.sampled_from(FLAGS), max_size=3))
    kind = draw(st.sampled_from([None, None, SnapshotRefType.BRANCH, SnapshotRefType.TAG]))
    if kind is SnapshotRefType.TAG:
        flags -= {"only_publish"}
    checks = draw(st.sampled_from([(), (), ("dq",)]))
    if "no_move" in flags:
        flags, checks = flags - {"only_publish", "fast_forward_only"}, ()
    writers = draw(st.sampled_from([None, ("ann",), CALLERS])) if flags or checks else ("ann",)
    bypass = draw(st.sampled_from([(), (), ("zoe",)]))
    pattern = draw(st.sampled_from(["main", "*", "v*", "d*v"]))
    given_flags: dict[str, Any] = dict.fromkeys(flags, True)
    return RefRule(pattern=pattern, kind=kind, writers=writers, checks=checks, bypass=bypass, **given_flags)


def line(table: TableMetadata, other: TableMetadata, ref: SnapshotRef | None) -> list[Snapshot]:
    """The snapshots of a ref, newest first, as far as either of both tables knows them, this one before the other."""
    by_id = {s.snapshot_id: s for t in (other, table) for s in t.snapshots}
    found: list[Snapshot] = []
    following = None if ref is None else ref.snapshot_id
    while following in by_id:
        found.append(by_id[following])
        following = by_id[following].parent_snapshot_id
        if len(found) > len(by_id):
            assume(False)  # a circle
    return found


def is_allowed(rule: RefRule, change: Change, ref: str, caller: str, reviewed: Reviewed) -> bool:
    """The rule as the guide puts it; a ref of another kind is another ref."""
    base, result = change
    matching = {"main": {"main"}, "*": set(NAMES), "v*": {"v1"}, "d*v": {"dev"}}[rule.pattern]
    if ref not in matching or caller in rule.bypass:
        return True
    old, new = base.refs.get(ref), result.refs.get(ref)
    if old and new and old.is_branch is not new.is_branch:
        pairs: list[tuple[SnapshotRef | None, SnapshotRef | None]] = [(old, None), (None, new)]
    else:
        pairs = [(old, new)]
    return all(
        _may_become(rule, change, before, after, caller, (ref, reviewed))
        for before, after in pairs
        if (one := before or after) is not None and rule.kind in {None, one.snapshot_ref_type}
    )


def _may_become(
    rule: RefRule,
    change: Change,
    before: SnapshotRef | None,
    after: SnapshotRef | None,
    caller: str,
    about: tuple[str, Reviewed],
) -> bool:
    base, result = change
    ref, reviewed = about
    one = before or after
    is_branch = one is not None and one.is_branch
    is_firm = rule.checks or any(getattr(rule, flag) for flag in FLAGS)
    old, new = line(base, base, before), line(result, base, after)
    if old != new or (before is None) is not (after is None):
        if rule.writers is not None and caller not in rule.writers:
            return False
        if after is None:
            return not is_firm
        is_on_top = not old or new[-len(old) :] == old
        shared = {s.snapshot_id for s in old} & {s.snapshot_id for s in new}
        published = is_on_top and _came_published(base, ref, old, new)
        if before is not None and rule.no_move:
            return False
        if rule.fast_forward_only and not is_on_top:
            return False
        if rule.no_rollback and not is_on_top and shared:
            return False
        if rule.only_publish and is_branch and not published:
            return False
        if rule.checks and (after.snapshot_id, ref) not in reviewed:
            return False
    gone = [s for s in old if s not in result.snapshots]
    return not (rule.no_expiry and before and after and is_branch and gone)


def _came_published(base: TableMetadata, ref: str, old: Sequence[Snapshot], new: Sequence[Snapshot]) -> bool:
    """Whether each new snapshot was on another branch, or staged; or says that it replays one that was."""
    others = [other for name, other in base.refs.items() if name != ref and other.is_branch]
    there = [s for s in base.snapshots if "wap.id" in s.summary] + [s for o in others for s in line(base, base, o)]
    for snapshot in new[: len(new) - len(old)]:
        text = snapshot.summary.get("source-snapshot-id", "0")
        source = snapshot if snapshot in base.snapshots else base.snapshots_by_id.get(int(text))
        if source not in there or source in old:
            return False
    return True


@settings(max_examples=200)
@given(
    st.one_of(changes(), commits()),
    st.lists(rules(), min_size=1, max_size=2),
    st.sampled_from(CALLERS),
    st.frozensets(st.tuples(st.integers(1, 9), st.sampled_from(NAMES))),
)
def test_decision_is_what_the_model_says(change: Change, ruled: list[RefRule], caller: str, reviewed: Reviewed) -> None:
    by = DecidedBy(caller, lambda head, ref: HeadReview(frozenset({"dq"} if (head, ref) in reviewed else ())))
    decision = decide(ruled, find_ref_moves(*change), by)
    expected = all(is_allowed(rule, change, ref, caller, reviewed) for rule in ruled for ref in NAMES)
    event("allowed" if expected else "refused")
    assert isinstance(decision, Refused) is not expected


@given(changes())
def test_nothing_moves_where_nothing_changes(change: Change) -> None:
    base, result = change
    for table in change:
        assert find_ref_moves(table, msgspec.structs.replace(table)) == ()
    moved = {move.ref for move in find_ref_moves(base, result)}
    assert {n for n in NAMES if base.refs.get(n) != result.refs.get(n)} <= moved


@given(changes())
def test_moves_do_not_depend_on_the_order_of_snapshots(change: Change) -> None:
    """A table that only gained snapshots is looked at from its new ones, and gives the moves of a look at all."""
    base, result = change
    shuffled = msgspec.structs.replace(result, snapshots=result.snapshots[::-1])
    assert find_ref_moves(base, result) == find_ref_moves(base, shuffled)
