"""What a commit does to refs, from the metadata before and after it."""

import msgspec
import pytest
from ref_histories import branch, history, tag

from bergline.catalog.protection.ref_moves import MoveKind, RefMove, find_ref_moves
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata

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
        (history(LINE, main=tag(3)), {"main": [MoveKind.REPLACED]}),
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


def test_snapshot_that_comes_back_as_another_replaces_the_branch() -> None:
    assert kinds(BASE, history(LINE, {2: {"operation": "delete"}}, main=3)) == {"main": [MoveKind.REPLACED]}


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
    ("source", "published"), [("3", True), ("1", False), ("2", False), ("9", False), ("x", False), ("", False)]
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
