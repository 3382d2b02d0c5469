"""Transactions on one table: several operations, one commit."""

import datetime as dt
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from bergline.scan.manifests import load_manifest_list
from bergline.table.operations.delete import write_deletes_by_position
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import beaten, files, once, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

LATER = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


def run(where: Any, *steps: Callable[[Any], object]) -> None:
    """Steps in one transaction of a table or a lake."""
    with where.transaction() as tx:
        for step in steps:
            step(tx)


def adding(order_id: int, table: str | None = None) -> Callable[[Any], object]:
    return lambda tx: (tx.load_table(f"db.{table}") if table else tx).append(order_rows(order_id))


def failing(error: type[BaseException]) -> Callable[[Any], object]:
    def fail(_: object) -> None:
        raise error

    return fail


def test_several_operations_are_one_commit(lake: Lake, orders: Table) -> None:
    with orders.transaction() as tx:
        tx.append(order_rows(1))
        tx.append(order_rows(2))
        tx.set_properties({"owner": "me"})
        tx.refs.create_tag("v1")
        tx.overwrite(order_rows(3))
    assert len(files(orders, "*.metadata.json")) == 2
    table = lake.load_table("db.orders")
    assert table.metadata_location == orders.metadata_location
    assert ids(table.scan().to_arrow()) == [3]
    assert ids(table.scan(ref="v1").to_arrow()) == [1, 2]
    assert table.properties["owner"] == "me"


def test_snapshots_in_between_stay_but_were_never_current(orders: Table) -> None:
    with orders.transaction() as tx:
        for n in range(3):
            tx.append(order_rows(n))
    snapshots = orders.metadata.snapshots
    assert [s.sequence_number for s in snapshots] == [1, 2, 3]
    assert [s.parent_snapshot_id for s in snapshots] == [None, *(s.snapshot_id for s in snapshots[:2])]
    assert [e.snapshot_id for e in orders.metadata.snapshot_log] == [snapshots[2].snapshot_id]
    assert orders.metadata.last_sequence_number == 3


def test_row_ids_follow_each_other(lake: Lake) -> None:
    table = lake.create_table("db.v3", ORDERS, properties={"format-version": "3"})
    with table.transaction() as tx:
        tx.append(order_rows(1, 2))
        tx.append(order_rows(3))
    assert [(s.first_row_id, s.added_rows) for s in table.metadata.snapshots] == [(0, 2), (2, 1)]
    assert table.metadata.next_row_id == 3


def test_block_reads_its_own_changes_and_nobody_else_does(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    with orders.transaction() as tx:
        tx.append(order_rows(2))
        assert ids(tx.scan().to_arrow()) == [1, 2]
        tx.refs.create_branch("dev")
        tx.append(order_rows(3), branch="dev")
        assert ids(tx.refresh().scan(ref="dev").to_arrow()) == [1, 2, 3]
        assert ids(orders.refresh().scan().to_arrow()) == [1]
        assert set(lake.load_table("db.orders").refs) == {"main"}
    assert ids(orders.scan(ref="dev").to_arrow()) == [1, 2, 3]


def test_transaction_begins_with_the_table_as_it_is_now(lake: Lake, orders: Table) -> None:
    lake.load_table("db.orders").append(order_rows(1))
    with orders.transaction() as tx:
        assert ids(tx.scan().to_arrow()) == [1]
        tx.append(order_rows(2))
        lists = files(orders, "snap-*.avro")
    assert files(orders, "snap-*.avro") == lists
    lake.drop_table("db.orders")
    lake.create_table("db.orders", ORDERS, location=f"{orders.location}2")
    with pytest.raises(ConflictError, match="dropped and re-created"):
        run(orders)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_exception_in_the_block_changes_nothing_and_leaves_no_file(orders: Table, error: type[BaseException]) -> None:
    orders.append(order_rows(1))
    before, pointer = files(orders, "*.*"), orders.metadata_location
    with pytest.raises(error):
        run(orders, adding(2), lambda tx: tx.overwrite(order_rows(3)), failing(error))
    assert files(orders, "*.*") == before
    assert orders.refresh().metadata_location == pointer


def test_operation_that_fails_leaves_the_rest_of_the_block_as_it_was(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    with orders.transaction() as tx:
        tx.append(order_rows(2))
        parquet = files(orders, "*.parquet")
        with pytest.raises(RefusedError, match="it is a tag"):
            tx.append(order_rows(3), branch="v1")
        with pytest.raises(AlreadyExistsError):
            tx.refs.create_tag("v1")
        assert files(orders, "*.parquet") == parquet
        tx.append(order_rows(4))
    assert ids(orders.scan().to_arrow()) == [1, 2, 4]


def test_handle_of_a_transaction_is_of_no_use_afterwards(orders: Table) -> None:
    with orders.transaction() as tx:
        tx.append(order_rows(1))
    before = files(orders, "*.*")
    for use in (lambda: tx.append(order_rows(2)), tx.scan, lambda: tx.set_properties({"a": "b"}), lambda: tx.metadata):
        with pytest.raises(InvalidInputError, match="expected an open transaction, found one that has ended"):
            use()
    assert files(orders, "*.*") == before
    assert "in a transaction" in repr(tx)


def test_transaction_in_a_transaction_is_refused(orders: Table) -> None:
    with orders.transaction() as tx:
        for table in (tx, orders):
            with pytest.raises(InvalidInputError, match="expected no transaction inside another one"):
                run(table)
        tx.append(order_rows(1))
    with orders.transaction() as tx:
        tx.append(order_rows(2))
    assert ids(orders.scan().to_arrow()) == [1, 2]


def test_empty_transaction_commits_nothing(orders: Table) -> None:
    before, pointer = files(orders, "*.*"), orders.metadata_location
    with orders.transaction():
        pass
    with orders.transaction() as tx:
        tx.set_properties({}, remove=["none"])
        tx.refs.drop_branch("none", if_exists=True)
    assert files(orders, "*.*") == before
    assert orders.refresh().metadata_location == pointer


def test_conflict_works_the_whole_chain_out_again(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 3))
    table = loser.load_table("db.orders")
    with table.transaction() as tx:
        tx.append(order_rows(2))
        tx.append(order_rows(3))
        tx.refs.create_tag("mine")
        staged = [s.snapshot_id for s in tx.metadata.snapshots[-2:]]
        manifests = files(orders, "*-m0.avro")
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 100, 101, 102]
    assert ids(table.scan(ref="mine").to_arrow()) == [1, 2, 3, 100, 101, 102]
    assert [s.snapshot_id for s in table.metadata.snapshots[-2:]] == staged
    assert [s.sequence_number for s in table.metadata.snapshots] == [1, 2, 3, 4, 5, 6]
    # the manifests of the first run, the lists of the last
    assert len(files(orders, "*-m0.avro")) == 6
    assert manifests <= files(orders, "*-m0.avro")
    assert len(files(orders, "snap-*.avro")) == 6
    assert [e.snapshot_id for e in table.metadata.snapshot_log][-1:] == staged[-1:]
    assert staged[0] not in {e.snapshot_id for e in table.metadata.snapshot_log}


def test_file_written_and_removed_in_one_transaction_keeps_its_number_in_every_attempt(
    lake: Lake, orders: Table
) -> None:
    """The second operation rewrites a manifest of the first, whose number is another in each attempt."""
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 2))
    table = loser.load_table("db.orders")
    with table.transaction() as tx:
        tx.append(order_rows(1))
        tx.append(order_rows(2))
        (first, *_) = [f for f in tx.scan().plan().files if f.sequence_number == 1]
        tx.overwrite(order_rows(3))
    assert first is not None
    numbers = {s.snapshot_id: s.sequence_number for s in table.metadata.snapshots}
    for snapshot in table.metadata.snapshots:
        for manifest in load_manifest_list(table.io, snapshot):
            assert manifest.sequence_number == numbers[manifest.added_snapshot_id]
    assert ids(table.scan().to_arrow()) == [3]
    before = table.metadata.snapshots[-2].snapshot_id
    assert ids(table.scan(snapshot_id=before).to_arrow()) == [1, 2, 100, 101]


def test_unlocked_store_gets_the_lists_that_were_written_already(lake: Lake, orders: Table) -> None:
    shaky, _ = rival_lake(lake, Fault.REFUSED_AS_LOCKED, Fault.REFUSED_AS_LOCKED)
    table = shaky.load_table("db.orders")
    with table.transaction() as tx:
        tx.append(order_rows(1))
        tx.append(order_rows(2))
        lists = files(orders, "snap-*.avro")
    assert files(orders, "snap-*.avro") == lists
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES])
def test_lost_answer_brings_the_transaction_in_once(lake: Lake, orders: Table, fault: Fault) -> None:
    shaky, _ = rival_lake(lake, fault)
    with shaky.load_table("db.orders").transaction() as tx:
        tx.append(order_rows(1))
        tx.append(order_rows(2))
        tx.refs.create_tag("v1")
    assert ids(orders.refresh().scan(ref="v1").to_arrow()) == [1, 2]
    assert len(orders.metadata.snapshots) == 2


def test_unknown_outcome_deletes_nothing(lake: Lake, orders: Table) -> None:
    shaky, _ = rival_lake(lake, Fault.STORE_GOES_AWAY)
    with pytest.raises(CommitUnknownError):
        run(shaky.load_table("db.orders"), adding(1), adding(2))
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


def test_interrupt_in_the_middle_of_the_swap_deletes_nothing(lake: Lake, orders: Table) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    shaky, _ = rival_lake(lake, before_swap=interrupt)
    written: set[str] = set()
    with pytest.raises(KeyboardInterrupt):
        run(shaky.load_table("db.orders"), adding(1), lambda _: written.update(files(orders, "*.*")))
    assert written < files(orders, "*.*")


def test_store_that_stays_locked_leaves_no_file(lake: Lake, orders: Table) -> None:
    before = files(orders, "*.*")
    shaky, _ = rival_lake(lake, *[Fault.REFUSED_AS_LOCKED] * 9)
    with pytest.raises(UnavailableError):
        run(shaky.load_table("db.orders"), adding(1))
    assert files(orders, "*.*") == before


def test_tag_that_somebody_else_made_meanwhile_fails_the_whole_transaction(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    loser, _ = rival_lake(lake, before_swap=once(lambda: orders.refs.create_tag("v1")))
    with pytest.raises(AlreadyExistsError):
        run(loser.load_table("db.orders"), adding(2), lambda tx: tx.refs.create_tag("v1"))
    assert ids(orders.refresh().scan().to_arrow()) == [1]
    assert len(files(orders, "*.parquet")) == 1
    assert len(files(orders, "snap-*.avro")) == 1


def delete_first_row(table: Table, row_filter: str) -> None:
    """Merge on read, looked up in the table as the transaction sees it."""
    made = write_deletes_by_position(table.io, table.metadata, table.scan(row_filter).plan())
    table.row_delta(
        deletes=made.deletes,
        remove=made.replaced,
        referenced=made.referenced,
        row_filter=row_filter,
        discard_on_failure=True,
    )


def test_rows_that_others_added_before_the_transactions_own_snapshots_conflict_with_its_deletes(
    lake: Lake, orders: Table
) -> None:
    """The delete looked at a snapshot of its own transaction, which stands on another parent now."""
    orders.append(order_rows(1))
    loser, _ = rival_lake(lake, before_swap=once(lambda: orders.append(order_rows(2, region="us"))))
    table = loser.load_table("db.orders")
    deleting = partial(delete_first_row, row_filter="region = 'us'")
    with pytest.raises(ConflictError, match="which may hold rows that this one looked for"):
        run(table, lambda tx: tx.append(order_rows(3, region="us")), deleting)
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]
    left = len(files(orders, "*.parquet"))
    assert left == 2


def test_rows_that_others_added_elsewhere_do_not_conflict_with_deletes_in_a_transaction(
    lake: Lake, orders: Table
) -> None:
    orders.append(order_rows(1))
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 2))
    table = loser.load_table("db.orders")
    deleting = partial(delete_first_row, row_filter="region = 'us'")
    run(table, lambda tx: tx.append(order_rows(2, 3, region="us")), deleting, adding(4))
    assert ids(table.scan().to_arrow()) == [1, 4, 100, 101]


def row_ids(table: Table) -> dict[int, int]:
    rows = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    return {row["id"]: row["_row_id"] for row in rows}


def test_rows_that_a_transaction_adds_and_writes_again_keep_their_row_ids_or_it_fails(lake: Lake) -> None:
    table = lake.create_table("db.v3", ORDERS, properties={"format-version": "3"}).append(order_rows(1, 2))
    run(table, lambda tx: tx.append(order_rows(3, 4)), lambda tx: tx.delete("id = 3"))
    assert row_ids(table) == {1: 0, 2: 1, 4: 3}

    loser, _ = rival_lake(lake, before_swap=beaten(table, 1))
    mine = loser.load_table("db.v3")
    run(mine, lambda tx: tx.append(order_rows(5, 6)), lambda tx: tx.delete("id = 1", isolation="snapshot"))
    found = row_ids(mine)
    assert (found[2], found[4]) == (1, 3)
    assert len(set(found.values())) == len(found) == 5

    loser, _ = rival_lake(lake, before_swap=beaten(table, 1))
    with pytest.raises(ConflictError, match=r"came first.*written again would have other ids"):
        run(
            loser.load_table("db.v3"),
            lambda tx: tx.append(order_rows(7, 8)),
            lambda tx: tx.delete("id = 7", isolation="snapshot"),
        )
    assert ids(table.refresh().scan().to_arrow()) == [2, 4, 5, 6, 100, 100]


def test_columns_added_in_the_transaction_keep_their_ids_or_it_fails(lake: Lake, orders: Table) -> None:
    def add_column(name: str) -> Callable[[Any], object]:
        def add(tx: Table) -> None:
            with tx.update_schema() as update:
                update.add_column(name, "string")

        return add

    wide = order_rows(1).append_column("mine", pa.array(["x"]))
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 1))
    run(loser.load_table("db.orders"), add_column("mine"), lambda tx: tx.append(wide))
    assert orders.refresh().scan("id = 1").to_arrow()["mine"].to_pylist() == ["x"]

    loser, _ = rival_lake(lake, before_swap=once(lambda: add_column("theirs")(orders)))
    wider = order_rows(2).append_column("mine", pa.array(["x"])).append_column("more", pa.array(["y"]))
    with pytest.raises(ConflictError, match="column `more` would no longer have the id 5"):
        run(loser.load_table("db.orders"), add_column("more"), lambda tx: tx.append(wider))
    assert orders.refresh().schema.names_by_id == {1: "id", 2: "amount", 3: "region", 4: "mine", 5: "theirs"}

    run(loser.load_table("db.orders"), add_column("more"), add_column("even_more"))
    assert set(orders.refresh().schema.names) == {"id", "amount", "region", "mine", "theirs", "more", "even_more"}


def test_table_dropped_under_a_transaction_is_not_found(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError, match=r"no table `db\.orders`"):
        run(orders, adding(1), lambda _: lake.drop_table("db.orders"))
    assert not files(orders, "*.parquet")


def test_table_created_anew_under_a_transaction_is_not_written_to(lake: Lake, orders: Table) -> None:
    def create_anew(_: object) -> None:
        lake.drop_table("db.orders")
        lake.create_table("db.orders", ORDERS, location=f"{orders.location}2")

    with pytest.raises(ConflictError, match="dropped and re-created"):
        run(orders, adding(1), create_anew)
    assert lake.load_table("db.orders").current_snapshot is None


def test_expiry_in_a_transaction_deletes_only_after_it(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.overwrite(order_rows(2))
    before = files(orders, "*.*")

    def expire(tx: Table) -> None:
        assert len(tx.expire(older_than=LATER).removed_snapshots) == 1
        assert len(tx.metadata.snapshots) == 1
        assert files(orders, "*.*") == before

    with pytest.raises(RuntimeError):
        run(orders, expire, failing(RuntimeError))
    assert files(orders, "*.*") == before
    with orders.transaction() as tx:
        tx.append(order_rows(3))
        tx.expire(older_than=LATER)
        tx.append(order_rows(4))
    assert ids(orders.refresh().scan().to_arrow()) == [2, 3, 4]
    assert len(orders.metadata.snapshots) == 2
    assert len(files(orders, "*.parquet")) == 3


def test_expiry_never_deletes_a_file_that_the_same_transaction_adds_again(orders: Table) -> None:
    orders.append(order_rows(1))
    (planned,) = orders.scan().plan().files
    orders.overwrite(order_rows(2))
    with orders.transaction() as tx:
        tx.expire(older_than=LATER)
        tx.append_files([planned.file])
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


@pytest.fixture(params=["memory", "sqlite"])
def any_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    uri = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/any.db"
    with bergline.connect(uri, create=True) as opened:
        opened.create_namespace("db")
        for name in ("orders", "items"):
            opened.create_table(f"db.{name}", ORDERS)
        yield opened


def both(lake: Lake) -> tuple[list[int], list[int]]:
    return tuple(ids(lake.load_table(f"db.{t}").scan().to_arrow()) for t in ("orders", "items"))  # type: ignore[return-value]


def test_several_tables_move_together(any_lake: Lake) -> None:
    with any_lake.transaction() as tx:
        tx.load_table("db.orders").append(order_rows(1))
        tx.load_table("db.items").append(order_rows(2))
        assert tx.load_table("db.orders") is tx.load_table("db.orders")
        tx.load_table("db.orders").append(order_rows(3))
        assert both(any_lake) == ([], [])
    assert both(any_lake) == ([1, 3], [2])
    with pytest.raises(InvalidInputError, match="found one that has ended"):
        tx.load_table("db.orders")


def test_exception_moves_none_of_them(any_lake: Lake) -> None:
    with pytest.raises(RuntimeError):
        run(any_lake, adding(1, "orders"), adding(2, "items"), failing(RuntimeError))
    assert both(any_lake) == ([], [])
    tables = [any_lake.load_table(f"db.{name}") for name in ("orders", "items")]
    assert [any_lake.catalog.io.list(t.location) for t in tables] == [[t.metadata_location] for t in tables]


def test_table_without_changes_is_left_out(any_lake: Lake) -> None:
    pointer = any_lake.load_table("db.items").metadata_location
    with any_lake.transaction() as tx:
        tx.load_table("db.orders").append(order_rows(1))
        assert ids(tx.load_table("db.items").scan().to_arrow()) == []
    assert any_lake.load_table("db.items").metadata_location == pointer
    with any_lake.transaction() as tx:
        tx.load_table("db.orders").append(order_rows(2))
        tx.load_table("db.items").set_properties(remove=["not-set"])
    assert any_lake.load_table("db.items").metadata_location == pointer
    assert both(any_lake) == ([1, 2], [])


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.REFUSED_AS_LOCKED])
def test_several_tables_come_in_once_whatever_happens_to_the_answer(any_lake: Lake, fault: Fault) -> None:
    shaky, _ = rival_lake(any_lake, fault)
    run(shaky, adding(1, "orders"), adding(2, "items"))
    assert both(any_lake) == ([1], [2])


def test_several_tables_of_which_one_moved_are_worked_out_again(any_lake: Lake) -> None:
    loser, waits = rival_lake(any_lake, before_swap=beaten(any_lake.load_table("db.items"), 6))
    run(loser, adding(1, "orders"), adding(2, "items"))
    assert both(any_lake) == ([1], [2, *range(100, 106)])
    assert len(waits) == 6
    assert len(any_lake.load_table("db.orders").metadata.snapshots) == 1


def test_several_tables_with_an_unknown_outcome_keep_their_files(any_lake: Lake) -> None:
    shaky, _ = rival_lake(any_lake, Fault.STORE_GOES_AWAY)
    with pytest.raises(CommitUnknownError):
        run(shaky, adding(1, "orders"), adding(2, "items"))
    assert both(any_lake) == ([1], [2])


def test_one_table_that_conflicts_in_meaning_stops_all(any_lake: Lake) -> None:
    items = any_lake.load_table("db.items").append(order_rows(2))
    items.refs.create_branch("dev")
    loser, _ = rival_lake(any_lake, before_swap=once(lambda: items.append(order_rows(3), branch="dev")))
    with pytest.raises(ConflictError, match="changed the same thing meanwhile: snapshot"):
        run(loser, adding(1, "orders"), lambda tx: tx.load_table("db.items").refs.drop_branch("dev"))
    assert both(any_lake) == ([], [2])
    assert ids(items.refresh().scan(ref="dev").to_arrow()) == [2, 3]


def test_second_table_is_refused_before_anything_is_written_where_one_moves_at_a_time(any_lake: Lake) -> None:
    any_lake.catalog.atomic_tables = False
    with pytest.raises(UnsupportedError, match="one pointer at a time"):
        run(any_lake, adding(1, "orders"), lambda tx: tx.load_table("db.items"))
    assert both(any_lake) == ([], [])
    with any_lake.transaction() as tx:
        tx.load_table("db.orders").append(order_rows(1))
        tx.load_table("db.orders").append(order_rows(2))
    assert both(any_lake) == ([1, 2], [])


def test_new_tables_are_staged_outside_of_a_transaction_of_several_tables(lake: Lake) -> None:
    def create(tx: Any) -> None:
        tx.create_table("db.new", ORDERS, partition_by=["id"])

    def stage(tx: Any) -> None:
        with tx.stage_table("db.new", ORDERS):
            pass

    for step, word in ((create, "create"), (stage, "stage")):
        with pytest.raises(
            UnsupportedError, match=f"cannot {word} table 'db.new' in a transaction of several"
        ) as caught:
            run(lake, step)
        assert "lake.stage_table" in caught.value.hints[0]
    assert not lake.table_exists("db.new")


def test_a_transaction_that_expires_its_own_snapshots_leaves_nothing_of_losing_attempts(
    lake: Lake, orders: Table
) -> None:
    orders.append(order_rows(1))
    loser, _ = rival_lake(lake, before_swap=once(lambda: lake.load_table("db.orders").append(order_rows(50))))
    losing = loser.load_table("db.orders")
    with losing.transaction() as tx:
        tx.append(order_rows(2))
        tx.overwrite(order_rows(3))
        tx.expire(older_than=LATER)
        tx.append(order_rows(4))
        tx.expire(older_than=LATER)
    assert ids(orders.refresh().scan().to_arrow()) == [3, 4]
    (snapshot,) = orders.metadata.snapshots
    named = {snapshot.manifest_list or "", *(m.manifest_path for m in load_manifest_list(orders.io, snapshot))}
    assert files(orders, "*.avro") == {path.rpartition("/")[2] for path in named}
