"""Decisions on random changes of refs, against a model that knows only sets of snapshots."""

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st
from ref_histories import branch, history, tag

from bergline.catalog.protection.decision import DecidedBy, Refused, decide
from bergline.catalog.protection.ref_moves import find_ref_moves
from bergline.catalog.protection.ref_rule import RefRule
from bergline.format.metadata.table_metadata import TableMetadata

NAMES = ("main", "dev", "v1")
FLAGS = ("only_publish", "fast_forward_only", "no_drop", "no_move", "no_rollback", "no_expiry")
CALLERS = ("ann", "zoe")


@st.composite
def changes(draw: st.DrawFn) -> tuple[TableMetadata, TableMetadata]:
    """A table before and after any change: snapshots added and removed, refs created, moved and dropped."""
    size = draw(st.integers(2, 7))
    parents = {n: draw(st.sampled_from([None, *range(1, n)][-3:])) for n in range(1, size + 1)}
    known = list(range(1, draw(st.integers(1, size)) + 1))
    summaries = {
        n: draw(st.sampled_from([{}, {}, {"wap.id": "w"}, {"source-snapshot-id": str(draw(st.sampled_from(known)))}]))
        for n in parents
    }
    before = {name: draw(st.sampled_from([None, *known])) for name in NAMES}
    after = {name: draw(st.sampled_from([None, before[name], *parents])) for name in NAMES}
    kept = {n for n in parents if n in after.values() or draw(st.integers(0, 9))}
    return (
        _table({n: parents[n] for n in known}, summaries, before),
        _table({n: parents[n] for n in parents if n in kept}, summaries, after),
    )


def _table(
    parents: Mapping[int, int | None], summaries: Mapping[int, Mapping[str, str]], heads: Mapping[str, int | None]
) -> TableMetadata:
    refs = {name: tag(head) if name == "v1" else branch(head) for name, head in heads.items() if head is not None}
    return history(parents, summaries, **refs)


@st.composite
def rules(draw: st.DrawFn) -> RefRule:
    flags = draw(st.sets(st.sampled_from(FLAGS), max_size=3))
    if "no_move" in flags:
        flags -= {"only_publish", "fast_forward_only"}
    writers = draw(st.sampled_from([None, ("ann",), CALLERS])) if flags else ("ann",)
    bypass = draw(st.sampled_from([(), (), ("zoe",)]))
    pattern = draw(st.sampled_from(["main", "*", "v*", "d*v"]))
    given_flags: dict[str, Any] = dict.fromkeys(flags, True)
    return RefRule(pattern=pattern, writers=writers, bypass=bypass, **given_flags)


def line(table: TableMetadata, other: TableMetadata, ref: str) -> list[int]:
    """The snapshots of a ref, newest first, as far as either of both tables knows them."""
    parents = {s.snapshot_id: s.parent_snapshot_id for t in (other, table) for s in t.snapshots}
    found, following = [], table.refs[ref].snapshot_id if ref in table.refs else None
    while following in parents:
        found.append(following)
        following = parents[following]
    return found


def own_line(table: TableMetadata, ref: str) -> list[int]:
    return line(table, table, ref)


def is_allowed(rule: RefRule, base: TableMetadata, result: TableMetadata, ref: str, caller: str) -> bool:
    """The rule as the guide puts it."""
    matching = {"main": {"main"}, "*": set(NAMES), "v*": {"v1"}, "d*v": {"dev"}}[rule.pattern]
    if ref not in matching or caller in rule.bypass:
        return True
    old, new = own_line(base, ref), line(result, base, ref)
    if old[:1] != new[:1]:
        if rule.writers is not None and caller not in rule.writers:
            return False
        if old and rule.no_move:
            return False
        if old and not new and any(getattr(rule, flag) for flag in FLAGS):
            return False
        if old and new and old[0] not in new and rule.fast_forward_only:
            return False
        if old and new and old[0] not in new and set(old) & set(new) and rule.no_rollback:
            return False
        if (
            new
            and rule.only_publish
            and ref != "v1"
            and not (came_published(base, result, ref) and set(old) <= set(new))
        ):
            return False
    gone = set(old) - {s.snapshot_id for s in result.snapshots}
    return not (rule.no_expiry and ref in result.refs and ref != "v1" and gone)


def came_published(base: TableMetadata, result: TableMetadata, ref: str) -> bool:
    staged = {s.snapshot_id for s in base.snapshots if "wap.id" in s.summary}
    elsewhere = staged.union(*(own_line(base, other) for other in {"main", "dev"} - {ref} if other in base.refs))
    old, known = own_line(base, ref), {s.snapshot_id for s in base.snapshots}
    summaries = {s.snapshot_id: s.summary for t in (base, result) for s in t.snapshots}
    gained = [s for s in line(result, base, ref) if s not in old]
    sources = [s if s in known else int(summaries[s].get("source-snapshot-id", 0)) for s in gained]
    return all(s in elsewhere and s not in old for s in sources)


@given(changes(), st.lists(rules(), min_size=1, max_size=2), st.sampled_from(CALLERS))
def test_decision_is_what_the_model_says(
    change: tuple[TableMetadata, TableMetadata], ruled: list[RefRule], caller: str
) -> None:
    base, result = change
    decision = decide(ruled, find_ref_moves(base, result), DecidedBy(caller))
    expected = all(is_allowed(rule, base, result, ref, caller) for rule in ruled for ref in NAMES)
    event("allowed" if expected else "refused")
    assert isinstance(decision, Refused) is not expected


@given(changes())
def test_nothing_moves_where_nothing_changes(change: tuple[TableMetadata, TableMetadata]) -> None:
    base, result = change
    for table in change:
        assert find_ref_moves(table, msgspec.structs.replace(table)) == ()
    moved = {move.ref for move in find_ref_moves(base, result)}
    assert {n for n in NAMES if base.refs.get(n) != result.refs.get(n)} <= moved


@given(changes())
def test_moves_do_not_depend_on_the_order_of_snapshots(change: tuple[TableMetadata, TableMetadata]) -> None:
    """A table that only gained snapshots is looked at from its new ones, and gives the moves of a look at all."""
    base, result = change
    shuffled = msgspec.structs.replace(result, snapshots=result.snapshots[::-1])
    assert find_ref_moves(base, result) == find_ref_moves(base, shuffled)
