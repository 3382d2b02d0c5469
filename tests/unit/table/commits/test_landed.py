"""Commits that landed although the catalog took them for conflicts, and catalogs that speak of conflicts for ever."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import Catalog, Committed, Conflicted, Outcome, TableChange
from bergline.errors import CommitUnknownError, ConflictError, NotFoundError, StorageError
from bergline.sql.procedures.tables import rewrite_manifests
from bergline.table.commits.retry import Timing
from support.fixtures.competing_writers import files
from support.fixtures.rows import ids, order_rows
from support.models.table_invariants import check_nothing_is_missing

pytestmark = pytest.mark.long


class Mistaken:
    """A catalog whose first answers to commits are `answer`, whether the commits `land` or not; then others act."""

    def __init__(self, catalog: Catalog, *, answer: Callable[[], Outcome], times: int = 1, land: bool = True) -> None:
        self._catalog = catalog
        self._answer = answer
        self._left = times
        self._land = land
        self.commits = 0
        self.then: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        self.commits += 1
        if not self._left:
            return self._catalog.commit(changes)
        self._left -= 1
        if self._land:
            self._catalog.commit(changes)
            self.then()
        return self._answer()


class LateAnswers:
    """A catalog whose commits land, and are answered with the table as others have made it since."""

    def __init__(self, catalog: Catalog, then: Callable[[], object]) -> None:
        self._catalog = catalog
        self.then = [then]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        outcome = self._catalog.commit(changes)
        assert isinstance(outcome, Committed)
        if self.then:
            self.then.pop()()
        return Committed(tuple(self._catalog.load_table(table.name) for table in outcome.tables))


def conflict() -> Outcome:
    return Conflicted(ConflictError("another commit came first"))


def mistaken(lake: Lake, **how: Any) -> tuple[Lake, Mistaken, list[float]]:
    waits: list[float] = []
    catalog = Mistaken(lake.catalog, **{"answer": conflict, **how})
    timing = Timing(sleep=waits.append, uniform=lambda _, high: high)
    return Lake(catalog, "lake", timing=timing), catalog, waits  # type: ignore[arg-type]


def diverged(table: Table) -> None:
    table.append(order_rows(1)).refs.create_branch("dev")
    table.append(order_rows(2), branch="dev")
    table.append(order_rows(3))


OPERATIONS: dict[str, tuple[Callable[[Table], object], Callable[[Lake], object], list[int]]] = {
    "append": (lambda t: t.append(order_rows(1)), lambda lake: _orders(lake).append(order_rows(2)), [1, 2]),
    "overwrite": (lambda t: t.append(order_rows(1, 2)), lambda lake: _orders(lake).overwrite(order_rows(3)), [3]),
    "delete": (lambda t: t.append(order_rows(1, 2)), lambda lake: _orders(lake).delete("id = 1"), [2]),
    "rewrite manifests": (
        lambda t: t.append(order_rows(1), fast=True).append(order_rows(2), fast=True),
        lambda lake: _orders(lake).rewrite_manifests(),
        [1, 2],
    ),
    "merge": (diverged, lambda lake: _orders(lake).refs.merge("dev", into="main"), [1, 2, 3]),
    "publish": (diverged, lambda lake: lake.publish("dev", merge=True), [1, 2, 3]),
    "squash": (diverged, lambda lake: lake.publish("dev", merge=True, squash=True), [1, 2, 3]),
    "cherry-pick": (diverged, lambda lake: _orders(lake).refs.cherry_pick("dev"), [1, 2, 3]),
}


def expire_all(table: Table) -> None:
    """All snapshots but those that a ref names."""
    table.expire(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), retain_last=1)


def _orders(lake: Lake) -> Table:
    return lake.load_table("db.orders")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_landed_commit_is_found_and_its_files_stay(lake: Lake, orders: Table, operation: str) -> None:
    prepare, act, expected = OPERATIONS[operation]
    prepare(orders)
    shaky, catalog, _ = mistaken(lake)
    act(shaky)
    assert catalog.commits == 1
    assert ids(orders.refresh().scan().to_arrow()) == expected
    check_nothing_is_missing(orders, merged=True)


@pytest.mark.parametrize("operation", ["merge", "publish", "squash", "cherry-pick", "append", "delete"])
def test_landed_commit_is_found_whatever_others_did_since(lake: Lake, orders: Table, operation: str) -> None:
    prepare, act, expected = OPERATIONS[operation]
    prepare(orders)
    shaky, catalog, _ = mistaken(lake)
    catalog.then = lambda: orders.refresh().append(order_rows(9)).refs.drop_branch("dev", if_exists=True)
    act(shaky)
    assert ids(orders.refresh().scan().to_arrow()) == [*expected, 9]
    check_nothing_is_missing(orders, merged=True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_files_stay_where_the_snapshot_has_expired_before_the_answer(lake: Lake, orders: Table, operation: str) -> None:
    prepare, act, expected = OPERATIONS[operation]
    prepare(orders)
    late = LateAnswers(lake.catalog, lambda: expire_all(orders.refresh().append(order_rows(9), fast=True)))
    act(Lake(late, "lake"))  # type: ignore[arg-type]
    assert ids(orders.refresh().scan().to_arrow()) == [*expected, 9]
    assert len(list(orders.metadata.ancestors(orders.refs["main"].snapshot_id))) == 1
    check_nothing_is_missing(orders, merged=True)


def test_branch_of_an_empty_table_keeps_its_files_where_its_first_snapshot_has_expired(
    lake: Lake, orders: Table
) -> None:
    late = LateAnswers(lake.catalog, lambda: expire_all(orders.refresh().append(order_rows(9), branch="dev")))
    Lake(late, "lake").load_table("db.orders").refs.create_branch("dev")  # type: ignore[arg-type]
    assert ids(orders.refresh().scan(ref="dev").to_arrow()) == [9]
    check_nothing_is_missing(orders)


@pytest.mark.parametrize("pick", ["cherry-pick", "wap"])
def test_snapshot_that_its_own_transaction_expired_leaves_its_manifests_to_those_after_it(
    orders: Table, pick: str
) -> None:
    diverged(orders)
    if pick == "wap":
        orders.append(order_rows(2), wap_id="w").append(order_rows(4))
    with orders.transaction() as inside:
        if pick == "wap":
            inside.refs.publish("w")
        else:
            inside.refs.cherry_pick("dev")
        inside.append(order_rows(9))
        expire_all(inside)
    assert ids(orders.scan().to_arrow()) == ([1, 2, 3, 4, 9] if pick == "wap" else [1, 2, 3, 9])
    check_nothing_is_missing(orders, merged=True)


def test_published_branch_that_merely_moved_is_found_by_where_the_refs_are(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    orders.append(order_rows(2), branch="dev")
    shaky, catalog, _ = mistaken(lake)
    catalog.then = lambda: orders.refresh().append(order_rows(9))
    shaky.publish("dev", tag="v1")
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2, 9]


def test_publish_of_a_branch_that_another_dropped_is_still_an_error(lake: Lake, orders: Table) -> None:
    diverged(orders)
    shaky, catalog, _ = mistaken(lake, land=False)
    catalog._answer = lambda: orders.refresh().refs.drop_branch("dev") or conflict()
    with pytest.raises(Exception, match="no branch `dev`"):
        shaky.publish("dev", merge=True)
    assert ids(orders.refresh().scan().to_arrow()) == [1, 3]
    check_nothing_is_missing(orders)


def test_branch_of_an_empty_table_that_landed_keeps_its_snapshot(lake: Lake, orders: Table) -> None:
    shaky, _, _ = mistaken(lake)
    shaky.load_table("db.orders").refs.create_branch("dev")
    check_nothing_is_missing(orders.refresh())
    assert "dev" in orders.refs


def test_two_tables_of_which_one_tells(lake: Lake, orders: Table) -> None:
    lake.create_table("db.items", orders.metadata.schema)
    shaky, catalog, _ = mistaken(lake)
    catalog.then = lambda: lake.drop_table("db.items")
    with shaky.transaction() as transaction:
        for name in ("db.items", "db.orders"):
            transaction.load_table(name).append(order_rows(1))
    assert ids(orders.refresh().scan().to_arrow()) == [1]
    check_nothing_is_missing(orders)


@pytest.mark.parametrize("operation", ["append", "publish"])
def test_files_stay_where_the_table_cannot_be_looked_at_any_more(lake: Lake, orders: Table, operation: str) -> None:
    prepare, act, expected = OPERATIONS[operation]
    prepare(orders)
    shaky, catalog, _ = mistaken(lake)
    catalog.then = lambda: lake.rename_table("db.orders", "db.moved")
    with pytest.raises(Exception, match="orders"):
        act(shaky)
    moved = lake.load_table("db.moved")
    assert ids(moved.scan().to_arrow()) == expected
    check_nothing_is_missing(moved, merged=True)


def _raise(error: BaseException) -> Outcome:
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), OSError("disk"), RuntimeError("ours")])
def test_what_is_no_answer_of_the_catalog_deletes_nothing(lake: Lake, orders: Table, error: BaseException) -> None:
    shaky, _, _ = mistaken(lake, answer=lambda: _raise(error))
    with pytest.raises(type(error)):
        shaky.load_table("db.orders").append(order_rows(1))
    assert ids(orders.refresh().scan().to_arrow()) == [1]


def test_error_of_a_catalog_after_a_commit_that_landed_is_none(lake: Lake, orders: Table) -> None:
    shaky, _, _ = mistaken(lake, answer=lambda: _raise(StorageError("status 530")))
    shaky.load_table("db.orders").append(order_rows(1))
    assert ids(orders.refresh().scan().to_arrow()) == [1]


def test_catalog_that_refuses_for_ever_is_asked_ever_more_slowly_and_given_up(lake: Lake, orders: Table) -> None:
    before = files(orders, "*.*")
    shaky, catalog, waits = mistaken(lake, times=10_000, land=False)
    with pytest.raises(CommitUnknownError, match=r"gave up after 10 attempts .*: nobody else committed") as caught:
        shaky.load_table("db.orders").append(order_rows(1))
    assert "its log" in caught.value.hints[0]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6]
    assert catalog.commits == 10
    assert files(orders, "*.*") > before


def test_conflicts_with_others_are_not_counted_among_those_with_nobody(lake: Lake, orders: Table) -> None:
    shaky, catalog, _ = mistaken(lake, times=30, land=False)
    numbers = iter(range(100, 200))
    catalog._answer = lambda: orders.refresh().append(order_rows(next(numbers))) and conflict()
    shaky.load_table("db.orders").append(order_rows(1))
    assert catalog.commits == 31


def test_view_that_is_refused_for_ever_is_given_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    patient = Lake(lake.catalog, "lake", timing=Timing(sleep=waits.append, uniform=lambda _, high: high))
    view = patient.create_view("db.v", "SELECT 1 AS id", schema=pa.schema([("id", pa.int64())]))
    refuse = ConflictError("moved on")
    monkeypatch.setattr(lake.catalog, "commit_view", lambda _: _raise(refuse))
    with pytest.raises(ConflictError, match="gave up after 10 attempts"):
        view.set_properties({"a": "1"})
    assert len(waits) == 9


def test_name_that_is_gone_before_anything_was_sent_leaves_nothing(lake: Lake, orders: Table) -> None:
    shaky, _, _ = mistaken(lake)
    table = shaky.load_table("db.orders")
    lake.rename_table("db.orders", "db.moved")
    with pytest.raises(NotFoundError):
        table.append(order_rows(1))
    assert not files(orders, "*.parquet")


def test_rewrites_are_counted_though_their_snapshot_has_expired_before_the_answer(lake: Lake, orders: Table) -> None:
    for number in range(3):
        orders.append(order_rows(number), fast=True)
    late = LateAnswers(lake.catalog, lambda: expire_all(orders.refresh().append(order_rows(9), fast=True)))
    table = Lake(late, "lake").load_table("db.orders")  # type: ignore[arg-type]
    assert rewrite_manifests(table).to_pylist() == [{"rewritten_manifests_count": 3, "added_manifests_count": 1}]
    late.then = [lambda: expire_all(orders.refresh().append(order_rows(10), fast=True))]
    assert table.compact(options={"min-input-files": "2"}).rewritten_data_files == 4
