"""What a commit does to refs, from the metadata before and after it."""

import msgspec
import pytest

from bergline.catalog.protection.ref_moves import MoveKind, RefMove, find_ref_moves
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from support.fixtures.ref_histories import branch, history, tag

LINE = {1: None, 2: 1, 3: 2}
FORK = {1: None, 2: 1, 3: 2, 4: 2}
BASE = history(LINE, main=3)


def kinds(base: TableMetadata, result: TableMetadata | None) -> dict[str, list[MoveKind]]:
    found: dict[str, list[MoveKind]] = {}
    for move in find_ref_moves(base, result):
        found.setdefault(move.ref, []).append(move.kind)
    return found


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (history(LINE, main=3), {}),
        (history({**LINE, 4: 3}, main=4), {"main": [MoveKind.FORWARD]}),
        (history({**LINE, 4: 3, 5: 4}, main=5), {"main": [MoveKind.FORWARD]}),
        (history(LINE, main=2), {"main": [MoveKind.ROLLED_BACK]}),
        (history(FORK, main=4), {"main": [MoveKind.DIVERGED]}),
        (history({**LINE, 4: None}, main=4), {"main": [MoveKind.REPLACED]}),
        (history(LINE, main=tag(3)), {"main": [MoveKind.DROPPED, MoveKind.CREATED]}),
        (history(LINE, main=tag(1), old=3), {"main": [MoveKind.RENAMED, MoveKind.CREATED], "old": [MoveKind.CREATED]}),
        (history(LINE), {"main": [MoveKind.DROPPED]}),
        (history(LINE, old=3), {"main": [MoveKind.RENAMED], "old": [MoveKind.CREATED]}),
        (history(LINE, old=2), {"main": [MoveKind.DROPPED], "old": [MoveKind.CREATED]}),
        (history(LINE, main=3, v1=tag(1)), {"v1": [MoveKind.CREATED]}),
        (history({2: 1, 3: 2}, main=3), {"main": [MoveKind.EXPIRED]}),
        (history({3: 2, 4: 3}, main=4), {"main": [MoveKind.FORWARD, MoveKind.EXPIRED]}),
        (None, {"main": [MoveKind.DROPPED]}),
    ],
)
def test_kinds_of_moves(result: TableMetadata | None, expected: dict[str, list[MoveKind]]) -> None:
    assert kinds(BASE, result) == expected


def test_commit_that_expires_what_lies_between_both_heads_moves_forward() -> None:
    base = history({**LINE, 4: 3, 5: 4}, main=3, dev=5)
    assert kinds(base, history({**LINE, 5: 4}, main=5, dev=5))["main"] == [MoveKind.FORWARD]


def test_settings_are_retention_and_come_beside_a_move() -> None:
    aged = SnapshotRef(3, SnapshotRefType.BRANCH, max_ref_age_ms=5)
    assert kinds(BASE, history(LINE, main=aged)) == {"main": [MoveKind.RETENTION]}
    moved = msgspec.structs.replace(aged, snapshot_id=2)
    assert kinds(BASE, history(LINE, main=moved)) == {"main": [MoveKind.ROLLED_BACK, MoveKind.RETENTION]}


FORGED = {"operation": "delete"}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (history(LINE, {2: FORGED}, main=3), [MoveKind.DIVERGED, MoveKind.EXPIRED]),
        (history(LINE, {3: FORGED}, main=3), [MoveKind.DIVERGED, MoveKind.EXPIRED]),
        (history(LINE, dict.fromkeys(LINE, FORGED), main=3), [MoveKind.DIVERGED, MoveKind.EXPIRED]),
        (history({**LINE, 4: 3}, {2: FORGED}, main=4), [MoveKind.DIVERGED, MoveKind.EXPIRED]),
        (history({**LINE, 4: 3}, {1: FORGED}, main=4), [MoveKind.DIVERGED, MoveKind.EXPIRED]),
        (history(LINE, {1: FORGED}, main=2), [MoveKind.DIVERGED, MoveKind.EXPIRED]),
        (history(LINE, {3: FORGED}, main=2), [MoveKind.ROLLED_BACK, MoveKind.EXPIRED]),
        (history({**LINE, 4: None}, {2: FORGED}, main=4), [MoveKind.REPLACED, MoveKind.EXPIRED]),
    ],
)
def test_snapshot_that_comes_back_as_another_is_gone_from_the_history(
    result: TableMetadata, expected: list[MoveKind]
) -> None:
    assert kinds(BASE, result) == {"main": expected}


def test_tag_whose_snapshot_comes_back_as_another_moves() -> None:
    assert kinds(history(LINE, v1=tag(3)), history(LINE, {2: FORGED}, v1=tag(3))) == {"v1": [MoveKind.DIVERGED]}


def test_ancestor_that_had_expired_does_not_come_back() -> None:
    expired = {2: 1, 3: 2}
    assert kinds(history(expired, main=3), history({**expired, 1: None}, main=3)) == {"main": [MoveKind.DIVERGED]}
    forged = history({**expired, 1: None, 4: 3}, main=4)
    assert kinds(history(expired, main=3), forged) == {"main": [MoveKind.DIVERGED]}


@pytest.mark.parametrize(("before", "after"), [(branch(3), tag(3)), (tag(3), branch(3)), (branch(3), tag(1))])
def test_ref_of_another_kind_is_dropped_and_created(before: SnapshotRef, after: SnapshotRef) -> None:
    assert find_ref_moves(history(LINE, main=before), history(LINE, main=after)) == (
        RefMove("main", MoveKind.DROPPED, before, None, new_name="main"),
        RefMove("main", MoveKind.CREATED, None, after, gained=(after.snapshot_id,)),
    )


def test_branch_in_place_of_a_tag_is_published_like_a_new_one() -> None:
    base = history(LINE, main=1, dev=2, v1=tag(3))
    published = {head: find_ref_moves(base, history(LINE, main=1, dev=2, v1=head))[-1].published for head in (2, 3)}
    assert published == {2: True, 3: False}


def test_tag_has_no_history_of_its_own() -> None:
    assert kinds(history(LINE, v1=tag(3)), history({3: 2}, v1=tag(3))) == {}


def main_of(base: TableMetadata, result: TableMetadata) -> RefMove:
    (move,) = (m for m in find_ref_moves(base, result) if m.ref == "main")
    return move


DEV = {1: None, 2: 1, 3: 2}
"""`main` at 1, what comes after it on another branch."""


@pytest.mark.parametrize(
    ("base", "result", "published"),
    [
        (history(DEV, main=1, dev=3), history(DEV, main=3, dev=3), True),
        (history(DEV, main=1, dev=3), history(DEV, main=3), True),
        (history(DEV, main=1, dev=3), history(DEV, main=2, dev=3), True),
        (history(DEV, main=1, v1=tag(3)), history(DEV, main=3, v1=tag(3)), False),
        (history(DEV, main=1), history(DEV, main=3), False),
        (history({1: None}, main=1), history({1: None, 2: 1}, main=2), False),
        (history({1: None}, main=1), history({1: None, 2: 1}, main=2, dev=2), False),
        (history(DEV, main=1, dev=3), history({**DEV, 4: 3}, main=4, dev=3), False),
        (history({1: None, 2: 1}, {2: {"wap.id": "w"}}, main=1), history({1: None, 2: 1}, main=2), True),
        (history(DEV, dev=3), history(DEV, main=3, dev=3), True),
        (history({}), history({1: None}, main=1), False),
    ],
)
def test_published_is_what_another_branch_had_before(
    base: TableMetadata, result: TableMetadata, published: bool
) -> None:
    assert main_of(base, msgspec.structs.replace(result, snapshots=_same(base, result))).published is published


def _same(base: TableMetadata, result: TableMetadata) -> tuple[object, ...]:
    """The snapshots of the result, as the base has them."""
    return tuple(base.snapshots_by_id.get(s.snapshot_id, s) for s in result.snapshots)


@pytest.mark.parametrize(
    ("source", "published"),
    [
        ("3", True),
        ("1", False),
        ("2", False),
        ("9", False),
        ("x", False),
        ("", False),
        ("\u0663", False),
        ("9" * 5000, False),
    ],
)
def test_replay_is_published_if_its_source_was_on_another_branch(source: str, published: bool) -> None:
    parents = {1: None, 2: 1, 3: 1}
    base = history(parents, main=2, dev=3)
    result = history({**parents, 4: 2}, {4: {"source-snapshot-id": source}}, main=4, dev=3)
    assert main_of(base, result).published is published


def test_replay_of_a_staged_snapshot_is_published() -> None:
    parents, staged = {1: None, 2: 1, 3: 1}, {3: {"wap.id": "w"}}
    base = history(parents, staged, main=2)
    result = history({**parents, 4: 2}, {**staged, 4: {"source-snapshot-id": "3"}}, main=4)
    assert main_of(base, result).published


def test_snapshot_of_another_branch_that_comes_back_as_another_is_not_published() -> None:
    base = history(DEV, main=1, dev=3)
    result = history(DEV, {3: {"operation": "delete"}}, main=3, dev=3)
    assert not main_of(base, result).published


def test_branch_and_tag_are_told_apart() -> None:
    moves = find_ref_moves(history(LINE, a=branch(3), b=tag(3)), None)
    assert [m.is_branch for m in moves] == [True, False]


def test_ids_have_up_to_19_digits() -> None:
    longest = 2**63 - 1
    base = history({1: None, 2: 1, longest: 1}, main=2, dev=longest)
    result = history({1: None, 2: 1, longest: 1, 4: 2}, {4: {"source-snapshot-id": str(longest)}}, main=4, dev=longest)
    assert main_of(base, result).replays == ((4, longest),)


def test_what_is_gained_is_told_newest_first_and_what_is_replayed_oldest_first() -> None:
    moves = find_ref_moves(BASE, history({2: 1, 3: 2, 4: 3, 5: 4}, main=5))
    assert [(m.kind, m.gained) for m in moves] == [(MoveKind.FORWARD, (5, 4)), (MoveKind.EXPIRED, ())]
    base = history({1: None, 2: 1, 3: 2, 4: 1}, main=4, dev=3)
    sources = {5: {"source-snapshot-id": "2"}, 6: {"source-snapshot-id": "3"}}
    merged = main_of(base, history({1: None, 2: 1, 3: 2, 4: 1, 5: 4, 6: 5}, sources, main=6, dev=3))
    assert (merged.gained, merged.replays) == ((6, 5), ((5, 2), (6, 3)))
    forwarded = main_of(history(DEV, main=1, dev=3), history(DEV, main=3, dev=3))
    assert (forwarded.published, forwarded.gained, forwarded.replays) == (True, (3, 2), ())


def test_histories_with_an_end_or_in_a_circle_are_walked_to_their_end() -> None:
    expired = {2: 1, 3: 2}
    assert kinds(history(expired, main=3), history(expired, main=2)) == {"main": [MoveKind.ROLLED_BACK]}
    circle: dict[int, int | None] = {1: 2, 2: 1}
    assert kinds(history(circle, main=2), history({**circle, 3: None}, main=3)) == {"main": [MoveKind.REPLACED]}
    assert kinds(history({3: None}, main=3), history({3: None, **circle}, main=2)) == {"main": [MoveKind.REPLACED]}
