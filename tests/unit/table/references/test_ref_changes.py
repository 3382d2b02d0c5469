"""Rollback, set current, rename, refs at a moment: checks on every attempt, retention kept, nothing lost unseen."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from bergline.table.references.ref_changes import rollback_target
from support.fixtures.competing_writers import overtaken
from support.fixtures.rows import ids, order_rows
from support.models.table_invariants import unneeded_files

pytestmark = pytest.mark.long


@pytest.fixture
def table(orders: Table) -> Table:
    """Three snapshots on main, a fourth on dev, a tag at the first; both branches have retention."""
    orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3))
    orders.refs.create_branch("dev", min_snapshots_to_keep=4, max_snapshot_age_ms=5, max_ref_age_ms=6)
    orders.refs.set_retention("main", min_snapshots_to_keep=7)
    orders.append(order_rows(4), branch="dev")
    orders.refs.create_tag("v1", at=snapshot(orders, 0), max_ref_age_ms=9)
    return orders


def snapshot(table: Table, place: int) -> int:
    return table.metadata.snapshots[place].snapshot_id


def moment(table: Table, place: int, *, more_ms: int = 0) -> dt.datetime:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return epoch + dt.timedelta(milliseconds=table.metadata.snapshots[place].timestamp_ms + more_ms)


def rows(table: Table, ref: str) -> list[int]:
    return ids(table.scan(ref=ref).to_arrow())


def test_rollback_moves_main_back_and_logs_it(table: Table) -> None:
    result = table.refs.rollback(to=snapshot(table, 1))
    assert rows(table, "main") == [1, 2]
    assert (result.previous, result.head) == (snapshot(table, 2), snapshot(table, 1))
    assert table.refs["main"].min_snapshots_to_keep == 7
    assert table.metadata.snapshot_log[-1].snapshot_id == snapshot(table, 1)


def test_rollback_of_a_branch_keeps_its_retention(table: Table) -> None:
    before = table.refs["dev"]
    table.refs.rollback("dev", to="v1")
    assert table.refs["dev"] == msgspec.structs.replace(before, snapshot_id=snapshot(table, 0))
    assert rows(table, "main") == [1, 2, 3]


def test_rollback_to_where_a_branch_is_changes_nothing(table: Table) -> None:
    before = table.metadata_location
    result = table.refs.rollback(to=snapshot(table, 2))
    assert result.previous == result.head == snapshot(table, 2)
    assert table.refresh().metadata_location == before


def test_rollback_to_a_moment_takes_the_last_snapshot_before_it(table: Table) -> None:
    times = [100, 200, 200, 300]
    spread = msgspec.structs.replace(
        table.metadata,
        snapshots=tuple(
            msgspec.structs.replace(s, timestamp_ms=t) for s, t in zip(table.metadata.snapshots, times, strict=True)
        ),
    )

    def target(milliseconds: int) -> int:
        return rollback_target(spread, "dev", dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC))

    assert target(1000) == snapshot(table, 3)
    assert target(300) == snapshot(table, 2)  # the time itself does not count; of two at one time the later one does
    assert target(200) == snapshot(table, 0)
    with pytest.raises(NotFoundError, match=r"no snapshot of `dev` before 1970-01-01 00:00:00.100") as error:
        target(100)
    assert "begins at 1970-01-01 00:00:00.100" in str(error.value.hints)


def test_set_current_goes_anywhere(table: Table) -> None:
    result = table.refs.set_current(to="dev")
    assert rows(table, "main") == [1, 2, 3, 4]
    assert (result.previous, result.head) == (snapshot(table, 2), snapshot(table, 3))
    table.refs.rollback(to=snapshot(table, 0))
    table.append(order_rows(9))
    table.refs.set_current(to=snapshot(table, 2))
    assert rows(table, "main") == [1, 2, 3]
    assert table.refs["main"].min_snapshots_to_keep == 7
    table.refs.set_current("dev", to=moment(table, 1))
    assert table.refs["dev"].max_ref_age_ms == 6


def test_set_current_makes_main_where_there_is_none(orders: Table) -> None:
    orders.refs.create_branch("dev")
    orders.append(order_rows(1), branch="dev")
    assert orders.refs.set_current(to="dev").previous is None
    assert rows(orders, "main") == [1]


def test_refs_are_made_at_what_main_was_at_a_moment(table: Table) -> None:
    log = [msgspec.structs.replace(e, timestamp_ms=e.timestamp_ms) for e in table.metadata.snapshot_log]
    table.refs.create_tag("then", at=moment(table, 1))
    newest = max(e.timestamp_ms for e in log if e.timestamp_ms <= table.metadata.snapshots[1].timestamp_ms)
    assert table.refs["then"].snapshot_id == [e.snapshot_id for e in log if e.timestamp_ms == newest][-1]
    table.refs.create_branch("now", at=dt.datetime.now(dt.UTC))
    assert table.refs["now"].snapshot_id == table.refs["main"].snapshot_id
    with pytest.raises(NotFoundError, match="no snapshot at or before"):
        table.refs.replace_tag("then", at=moment(table, 0, more_ms=-100_000))


def test_rename_keeps_place_and_retention(table: Table) -> None:
    dev, v1 = table.refs["dev"], table.refs["v1"]
    table.refs.rename_branch("dev", to="dev-2")
    table.refs.rename_tag("v1", to="V1")
    assert dict(table.refs.branches) == {"main": table.refs["main"], "dev-2": dev}
    assert table.refs.tags == {"V1": v1}
    assert len(table.refs) == 3
    assert repr(table.refs) == "Refs(branch 'main', branch 'dev-2', tag 'V1')"


def test_branch_becomes_main_where_there_is_none(orders: Table) -> None:
    orders.refs.create_branch("dev")
    orders.append(order_rows(1), branch="dev")
    orders.refs.rename_branch("dev", to="main")
    assert set(orders.refs) == {"main"}
    assert ids(orders.scan().to_arrow()) == [1]
    assert [e.snapshot_id for e in orders.metadata.snapshot_log] == [orders.refs["main"].snapshot_id]


def test_tag_does_not_become_main(orders: Table) -> None:
    orders.refs.create_branch("dev")
    orders.refs.create_tag("t", at="dev")
    with pytest.raises(InvalidInputError, match="expected `main` to be a branch, found a tag"):
        orders.refs.rename_tag("t", to="main")


def test_fast_forward_of_diverged_branches_names_the_ancestor_and_offers_merge(table: Table) -> None:
    table.append(order_rows(5)).append(order_rows(6))
    with pytest.raises(RefusedError) as error:
        table.refs.fast_forward("main", to="dev")
    parted = f"they diverged at snapshot {snapshot(table, 2)}, `main` has had 2 snapshots since and `dev` 1"
    assert parted in str(error.value)
    assert 'refs.merge("dev", into="main")' in error.value.hints[0]


def test_fast_forward_backwards_says_that_the_branch_is_ahead(table: Table) -> None:
    with pytest.raises(RefusedError, match="but 2 snapshots ahead of it"):
        table.refs.fast_forward("main", to="v1")


def test_fast_forward_over_expired_history_offers_a_squash(table: Table) -> None:
    table.refs.rollback(to="v1")
    table.append(order_rows(5))
    table.refs.create_branch("side", at="dev")  # without the short lives that `dev` and `v1` have
    table.refs.drop_branch("dev")
    table.refs.drop_tag("v1")
    table.expire(snapshot_ids=[snapshot(table, 0), snapshot(table, 1), snapshot(table, 2)])
    with pytest.raises(RefusedError, match="their common ancestor has expired") as error:
        table.refs.fast_forward("main", to="side")
    assert "squash=True" in error.value.hints[0]


def test_everything_works_in_a_transaction(table: Table) -> None:
    with table.transaction() as changed:
        changed.refs.rename_tag("v1", to="first")
        changed.append(order_rows(8))
        assert changed.refs.rollback(to="first").head == snapshot(table, 0)
        changed.refs.set_current("dev", to="main")
        changed.refs.rename_branch("dev", to="b")
    assert {name: rows(table, name) for name in table.refs} == {"main": [1], "b": [1], "first": [1]}
    assert table.refs["b"].min_snapshots_to_keep == 4


def test_moves_are_tried_again_beside_commits_to_other_refs(lake: Lake, table: Table) -> None:
    def other() -> None:
        lake.load_table("db.orders").append(order_rows(50), branch="elsewhere")

    moving = overtaken(lake, other, other).load_table("db.orders")
    moving.refs.rollback(to=snapshot(table, 1))
    moving = overtaken(lake, other).load_table("db.orders")
    moving.refs.rename_branch("dev", to="renamed")
    moving = overtaken(lake, other).load_table("db.orders")
    moving.refs.set_current("renamed", to="v1")
    table.refresh()
    assert rows(table, "main") == [1, 2]
    assert rows(table, "renamed") == [1]
    assert rows(table, "elsewhere").count(50) == 4


def test_no_commit_is_undone_that_came_after_the_look(lake: Lake, table: Table) -> None:
    moving = overtaken(lake, lambda: lake.load_table("db.orders").append(order_rows(50))).load_table("db.orders")
    with pytest.raises(ConflictError, match="meanwhile"):
        moving.refs.rollback(to=snapshot(table, 1))
    assert rows(table.refresh(), "main") == [1, 2, 3, 50]


@pytest.mark.parametrize(
    "replace",
    [
        lambda lake: lake.load_table("db.orders").refs.create_branch("dev", or_replace=True),
        lambda lake: lake.load_table("db.orders").refs.create_branch("dev", at="main", or_replace=True),
        lambda lake: lake.branch("dev", ["db.orders"], or_replace=True),
    ],
)
def test_a_branch_that_is_replaced_loses_no_commit_that_came_after_the_look(
    lake: Lake, table: Table, replace: Callable[[Lake], object]
) -> None:
    table.append(order_rows(49), branch="dev")
    before = rows(table, "dev")
    with pytest.raises(BerglineError, match="another commit changed the same thing meanwhile"):
        replace(overtaken(lake, lambda: lake.load_table("db.orders").append(order_rows(50), branch="dev")))
    assert rows(table.refresh(), "dev") == [*before, 50]


def test_a_tag_that_is_replaced_is_not_taken_from_where_others_put_it(lake: Lake, table: Table) -> None:
    moving = overtaken(lake, lambda: lake.load_table("db.orders").refs.replace_tag("v1", at="dev"))
    with pytest.raises(ConflictError, match="meanwhile"):
        moving.load_table("db.orders").refs.create_tag("v1", or_replace=True)
    assert table.refresh().refs["v1"].snapshot_id == table.refs["dev"].snapshot_id


def test_a_branch_that_others_start_meanwhile_on_an_empty_table_is_not_replaced(lake: Lake, orders: Table) -> None:
    moving = overtaken(
        lake, lambda: lake.load_table("db.orders").append(order_rows(1), branch="new").append(order_rows(2))
    )
    with pytest.raises(ConflictError, match="meanwhile"):
        moving.load_table("db.orders").refs.create_branch("new", or_replace=True)
    assert rows(orders.refresh(), "new") == [1]


@pytest.mark.parametrize(
    "other",
    [
        lambda table: table.append(order_rows(1)),
        lambda table: table.refs.create_branch("new"),
    ],
)
def test_a_branch_of_a_table_that_is_no_longer_empty_leaves_no_files_of_the_first_attempt(
    lake: Lake, orders: Table, other: Callable[[Table], object]
) -> None:
    moving = overtaken(lake, lambda: other(lake.load_table("db.orders"))).load_table("db.orders")
    moving.refs.create_branch("new", if_not_exists=True)
    assert "new" in orders.refresh().refs
    assert not unneeded_files(orders)


def test_no_commit_is_undone_by_a_transaction_that_did_not_see_it(lake: Lake, table: Table) -> None:
    moving = overtaken(lake, lambda: lake.load_table("db.orders").append(order_rows(50))).load_table("db.orders")
    with pytest.raises(ConflictError, match="meanwhile"), moving.transaction() as changed:
        changed.append(order_rows(51)).refs.rollback(to=snapshot(table, 1))
    assert rows(table.refresh(), "main") == [1, 2, 3, 50]


def test_a_branch_renamed_beside_commits_to_it_keeps_them(lake: Lake, table: Table) -> None:
    other = lake.load_table("db.orders")
    moving = overtaken(lake, lambda: other.append(order_rows(50), branch="dev")).load_table("db.orders")
    moving.refs.rename_branch("dev", to="renamed")
    assert rows(table.refresh(), "renamed") == [1, 2, 3, 4, 50]


def test_checks_are_repeated_on_every_attempt(lake: Lake, table: Table) -> None:
    other = lake.load_table("db.orders")
    moving = overtaken(lake, lambda: other.refs.rollback(to="v1")).load_table("db.orders")
    with pytest.raises(RefusedError, match="not in the history of `main`"):
        moving.refs.rollback(to=snapshot(table, 1))
    moving = overtaken(lake, lambda: other.refs.create_tag("taken")).load_table("db.orders")
    with pytest.raises(AlreadyExistsError, match="tag `taken` exists already"):
        moving.refs.rename_branch("dev", to="taken")
    moving = overtaken(lake, lambda: other.refs.drop_branch("dev")).load_table("db.orders")
    with pytest.raises(NotFoundError, match="no branch `dev`"):
        moving.refs.set_current("dev", to="main")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda r: r.rename_branch("main", to="old"), RefusedError, "cannot rename branch `main`"),
        (lambda r: r.rename_branch("dev", to="main"), AlreadyExistsError, "branch `main` exists already"),
        (lambda r: r.rename_branch("dev", to="v1"), AlreadyExistsError, "tag `v1` exists already"),
        (lambda r: r.rename_branch("dev", to="dev"), AlreadyExistsError, "branch `dev` exists already"),
        (lambda r: r.rename_branch("v1", to="x"), InvalidInputError, "expected a branch, found the tag `v1`"),
        (lambda r: r.rename_tag("dev", to="x"), InvalidInputError, "expected a tag, found the branch `dev`"),
        (lambda r: r.rename_tag("main", to="x"), InvalidInputError, "expected a tag, found the branch `main`"),
        (lambda r: r.rename_branch("nope", to="x"), NotFoundError, "no branch `nope`"),
        (lambda r: r.rename_branch("dev", to=""), InvalidInputError, "1 to 255 characters, found 0"),
        (lambda r: r.rename_tag("v1", to="x" * 256), InvalidInputError, "1 to 255 characters, found 256"),
        (lambda r: r.rename_tag("v1", to=5), InvalidInputError, "the name of a branch or tag, found 5"),
        (lambda r: r.rename_tag(5, to="x"), InvalidInputError, "the name of a branch or tag, found 5"),
        (lambda r: r.rollback(to=12345), NotFoundError, "no snapshot with id 12345"),
        (lambda r: r.rollback(to="dev"), RefusedError, "not in the history of `main`"),
        (lambda r: r.rollback("v1", to="v1"), InvalidInputError, "expected a branch, found the tag `v1`"),
        (lambda r: r.rollback("nope", to="v1"), NotFoundError, "no branch `nope`"),
        (lambda r: r.rollback(to="nope"), NotFoundError, "no branch or tag `nope`"),
        (lambda r: r.rollback(to=None), InvalidInputError, "a datetime with a time zone, found None"),
        (lambda r: r.rollback(to=True), InvalidInputError, "a datetime with a time zone, found True"),
        (lambda r: r.rollback(to=dt.datetime(2026, 1, 1)), InvalidInputError, "with a time zone"),  # noqa: DTZ001
        (lambda r: r.rollback(5, to="v1"), InvalidInputError, "the name of a branch or tag, found 5"),
        (lambda r: r.set_current(to=12345), NotFoundError, "no snapshot with id 12345"),
        (lambda r: r.set_current(to="nope"), NotFoundError, "no branch or tag `nope`"),
        (lambda r: r.set_current("v1", to="dev"), InvalidInputError, "expected a branch, found the tag `v1`"),
        (lambda r: r.set_current("nope", to="dev"), NotFoundError, "no branch `nope`"),
        (lambda r: r.set_current(to=1.5), InvalidInputError, "a datetime with a time zone, found 1.5"),
        (lambda r: r.create_tag("x", at=dt.date(2026, 1, 1)), InvalidInputError, "a datetime with a time zone"),
        (lambda r: r.create_tag("x", at=dt.datetime(2026, 1, 1)), InvalidInputError, "time zone"),  # noqa: DTZ001
        (lambda r: r.set_retention("dev", min_snapshots_to_keep=0), InvalidInputError, "above 0, found 0"),
        (lambda r: r.set_retention("dev", max_snapshot_age_ms=-5), InvalidInputError, "above 0, found -5"),
        (lambda r: r.set_retention("v1", max_ref_age_ms=0), InvalidInputError, "above 0, found 0"),
        (lambda r: r.set_retention("dev", min_snapshots_to_keep="3"), InvalidInputError, "a whole number up to"),
        (lambda r: r.set_retention("nope", max_ref_age_ms=1), NotFoundError, "no branch or tag `nope`"),
        (lambda r: r.fast_forward(5, to="dev"), InvalidInputError, "the name of a branch or tag, found 5"),
        (lambda r: r.fast_forward("main", to=5), InvalidInputError, "the name of a branch or tag, found 5"),
        (lambda r: r.create_branch(None), InvalidInputError, "the name of a branch or tag, found None"),
        (lambda r: r.create_tag("\ud800"), InvalidInputError, "lone surrogates"),
    ],
)
def test_wrong_moves_are_one_error_and_change_nothing(
    table: Table, wrong: Callable[[Any], object], error: type[BerglineError], message: str
) -> None:
    before = table.metadata_location
    with pytest.raises(error, match=message):
        wrong(table.refs)
    assert table.refresh().metadata_location == before


@pytest.mark.parametrize("wrong", [lambda r: r.rollback(to="main"), lambda r: r.rollback(to=dt.datetime.now(dt.UTC))])
def test_empty_table_has_nothing_to_roll_back(orders: Table, wrong: Callable[[Any], object]) -> None:
    with pytest.raises(NotFoundError, match="no branch `main`"):
        wrong(orders.refs)
