"""One snapshot brought to a branch: moved to, or replayed; what cannot be is refused and changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError, ConflictError, InvalidInputError, NotFoundError, RefusedError
from bergline.scan.manifests import load_entries, load_manifest_list
from support.fixtures.competing_writers import LosingTable, overtaken
from support.fixtures.hints import follow
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing

pytestmark = pytest.mark.long

VERSIONS = ["1", "2", "3"]


@pytest.fixture(params=VERSIONS)
def table(request: pytest.FixtureRequest, lake: Lake) -> Table:
    """An order in `eu` on main; `dev` parted there and has another in `us`."""
    made = lake.create_table("db.orders", ORDERS, partition_by=["region"], properties={"format-version": request.param})
    made.append(order_rows(1)).refs.create_branch("dev", min_snapshots_to_keep=3)
    made.refs.set_retention("main", min_snapshots_to_keep=2)
    return made.append(order_rows(2, region="us"), branch="dev")


@pytest.fixture
def parted(lake: Lake) -> Table:
    """The same in format version 2, and main has gone on."""
    made = lake.create_table("db.orders", ORDERS, partition_by=["region"])
    made.append(order_rows(1)).refs.create_branch("dev")
    made.append(order_rows(2, region="us"), branch="dev")
    return made.append(order_rows(3))


def rows(table: Table, ref: str = "main") -> list[int]:
    return ids(table.scan(ref=ref).to_arrow())


def head(table: Table, ref: str = "main") -> int:
    return table.refs[ref].snapshot_id


def test_a_snapshot_made_on_the_head_is_moved_to(table: Table) -> None:
    count = len(table.metadata.snapshots)
    before, picked = head(table), head(table, "dev")
    result = table.refs.cherry_pick(picked)
    assert (result.previous, result.head, result.replayed) == (before, picked, {})
    assert head(table) == picked
    assert len(table.metadata.snapshots) == count
    assert table.refs["main"].min_snapshots_to_keep == 2


def test_an_append_is_done_again_on_a_head_that_moved_on(table: Table) -> None:
    table.append(order_rows(3))
    before, picked = head(table), head(table, "dev")
    result = table.refs.cherry_pick(picked)
    assert (result.previous, result.replayed) == (before, {picked: result.head})
    assert rows(table) == [1, 2, 3]
    assert rows(table, "dev") == [1, 2]
    assert table.refs["main"].min_snapshots_to_keep == 2
    snapshot = table.metadata.snapshot(head(table))
    assert snapshot.parent_snapshot_id == before
    assert snapshot.summary["source-snapshot-id"] == str(picked)
    assert "published-wap-id" not in snapshot.summary
    assert (snapshot.operation, snapshot.summary["added-records"], snapshot.summary["total-records"]) == (
        "append",
        "1",
        "3",
    )
    if table.metadata.format_version > 1:
        assert snapshot.sequence_number == table.metadata.last_sequence_number
    check_nothing_is_missing(table, merged=True)


def test_picked_rows_have_new_row_ids(lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, properties={"format-version": "3"})
    table.append(order_rows(1)).refs.create_branch("dev")
    table.append(order_rows(2), branch="dev").append(order_rows(3)).refs.cherry_pick("dev")
    found = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert sorted((r["id"], r["_row_id"]) for r in found) == [(1, 0), (2, 3), (3, 2)]
    assert table.metadata.next_row_id == 4


def test_picked_entries_are_added_by_the_new_snapshot(parted: Table) -> None:
    parted.refs.cherry_pick("dev")
    manifests = load_manifest_list(parted.io, parted.metadata.snapshot(head(parted)))
    number = parted.metadata.last_sequence_number
    added = [
        (e.snapshot_id, e.sequence_number, e.data_file.partition)
        for m in manifests
        if m.added_snapshot_id == head(parted)
        for e in load_entries(parted.io, m, parted.metadata)
    ]
    assert added == [(head(parted), number, ("us",))]


def test_any_branch_can_be_picked_onto(parted: Table) -> None:
    parted.refs.cherry_pick("main", onto="dev")
    assert rows(parted, "dev") == [1, 2, 3]
    assert rows(parted) == [1, 3]


def test_main_of_an_empty_table_is_made(orders: Table) -> None:
    orders.refs.create_branch("dev")
    first = head(orders, "dev")
    orders.append(order_rows(1), branch="dev")
    orders.refs.cherry_pick("dev")
    assert orders.metadata.snapshot(head(orders)).parent_snapshot_id is None
    assert rows(orders) == [1]
    with pytest.raises(RefusedError, match="already has it"):
        orders.refs.cherry_pick("dev")
    orders.refs.cherry_pick(first)
    assert rows(orders) == [1]


def test_replaced_partitions_are_replaced_again(parted: Table) -> None:
    parted.refs.create_branch("fix")
    parted.overwrite_partitions(order_rows(9), branch="fix")
    parted.append(order_rows(4, region="jp"))
    result = parted.refs.cherry_pick("fix")
    assert rows(parted) == [4, 9]
    summary = parted.metadata.snapshot(head(parted)).summary
    assert summary["operation"] == "overwrite"
    assert summary["deleted-records"] == "2"
    assert "replace-partitions" not in summary
    assert set(result.replayed.values()) == {head(parted)}
    check_nothing_is_missing(parted, merged=True)


def test_replaced_partitions_that_others_added_to_are_a_conflict(parted: Table) -> None:
    parted.refs.create_branch("fix")
    parted.overwrite_partitions(order_rows(9), branch="fix")
    parted.append(order_rows(4))
    with pytest.raises(ConflictError, match=r"cannot cherry-pick snapshot .* to a partition that was replaced"):
        parted.refs.cherry_pick("fix")


def test_replaced_files_that_others_removed_are_a_conflict(parted: Table) -> None:
    parted.refs.create_branch("fix")
    parted.overwrite_partitions(order_rows(9), branch="fix")
    parted.delete("id = 3")
    with pytest.raises(ConflictError, match="found it removed already"):
        parted.refs.cherry_pick("fix")


def test_replaced_partitions_need_their_parent_in_the_history(parted: Table) -> None:
    parted.overwrite_partitions(order_rows(9, region="us"), branch="dev")
    with pytest.raises(RefusedError, match=r"onto `main`: .* is not in its history") as caught:
        parted.refs.cherry_pick("dev")
    (hint,) = caught.value.hints
    assert "elsewhere" not in hint
    follow(parted, hint)
    assert rows(parted) == [1, 3, 9]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.delete("id = 1", branch="dev"),
        lambda t: t.overwrite(order_rows(9), branch="dev"),
        lambda t: t.overwrite(order_rows(9), "id = 1", branch="dev"),
        lambda t: t.append(order_rows(5), branch="dev").compact(branch="dev"),
    ],
)
def test_other_changes_only_move_a_branch(parted: Table, change: Callable[[Table], object]) -> None:
    parted.refs.set_current("dev", to=parted.metadata.snapshots[0].snapshot_id)
    change(parted)
    with pytest.raises(RefusedError, match="only appends, replaced partitions and snapshots") as caught:
        parted.refs.cherry_pick("dev")
    assert f'`refs.create_branch("pick", at={head(parted, "dev")})`' in caught.value.hints[0]
    parent = parted.metadata.snapshot(head(parted, "dev")).parent_snapshot_id
    assert parent is not None
    parted.refs.set_current(to=parent)
    parted.refs.cherry_pick("dev")
    assert head(parted) == head(parted, "dev")


def test_what_a_branch_has_had_is_refused(parted: Table) -> None:
    picked = head(parted, "dev")
    parted.refs.cherry_pick(picked)
    again = head(parted)
    with pytest.raises(RefusedError, match=f"`main` already has it, as snapshot {again}"):
        parted.refs.cherry_pick(picked)
    with pytest.raises(RefusedError, match=f"`dev` already has it, as snapshot {picked}"):
        parted.refs.cherry_pick(again, onto="dev")
    with pytest.raises(RefusedError, match="it is in the history of `main`"):
        parted.refs.cherry_pick(parted.metadata.snapshots[0].snapshot_id)
    assert rows(parted) == [1, 2, 3]


def test_a_picked_snapshot_is_not_merged_again(parted: Table) -> None:
    parted.refs.cherry_pick("dev")
    parted.append(order_rows(5), branch="dev")
    assert len(parted.refs.merge("dev", into="main").replayed) == 1
    assert rows(parted) == [1, 2, 3, 5]


def test_parts_of_what_was_squashed_are_not_picked_again(parted: Table) -> None:
    first = head(parted, "dev")
    parted.refs.create_branch("half", at=first)
    parted.append(order_rows(4), branch="dev")
    parted.refs.create_branch("elsewhere")
    squashed = parted.refs.merge("dev", into="main", squash=True).head
    assert squashed is not None
    with pytest.raises(RefusedError, match=f"`main` already has it, as snapshot {squashed}"):
        parted.refs.cherry_pick(first)
    with pytest.raises(RefusedError, match=f"of which `half` already has some, as snapshot {first}"):
        parted.refs.cherry_pick(squashed, onto="half")
    parted.append(order_rows(5), branch="elsewhere")
    picked = parted.refs.cherry_pick(squashed, onto="elsewhere")
    with pytest.raises(RefusedError, match=f"`elsewhere` already has it, as snapshot {picked.head}"):
        parted.refs.cherry_pick(first, onto="elsewhere")
    assert rows(parted, "elsewhere") == [1, 2, 3, 4, 5]


def test_a_file_that_is_there_already_is_refused(parted: Table) -> None:
    (file,) = [p.file for p in parted.scan("id = 2", ref="dev").plan().files]
    parted.append_files([file])
    with pytest.raises(ConflictError, match="is on `main` already"):
        parted.refs.cherry_pick("dev")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda r: r.cherry_pick(12345), NotFoundError, "no snapshot with id 12345"),
        (lambda r: r.cherry_pick("nope"), NotFoundError, "no branch or tag `nope`"),
        (lambda r: r.cherry_pick(None), InvalidInputError, "a datetime with a time zone, found None"),
        (lambda r: r.cherry_pick("dev", onto="nope"), NotFoundError, "no branch `nope`"),
        (lambda r: r.cherry_pick("dev", onto="v1"), RefusedError, "it is a tag, and tags do not move"),
        (lambda r: r.cherry_pick("dev", onto=""), InvalidInputError, "1 to 255 characters"),
        (lambda r: r.cherry_pick("dev", onto=5), InvalidInputError, "the name of a branch or tag, found 5"),
    ],
)
def test_wrong_picks_are_one_error_and_change_nothing(
    parted: Table, wrong: Callable[[Any], object], error: type[BerglineError], message: str
) -> None:
    parted.refs.create_tag("v1")
    before, files = parted.metadata_location, set(parted.io.list(parted.location))
    with pytest.raises(error, match=message):
        wrong(parted.refs)
    assert parted.refresh().metadata_location == before
    assert set(parted.io.list(parted.location)) == files


def test_a_refused_pick_leaves_no_files(parted: Table) -> None:
    parted.refs.create_branch("fix")
    parted.overwrite_partitions(order_rows(9), branch="fix")
    parted.delete("id = 3")
    files = set(parted.io.list(parted.location))
    with pytest.raises(ConflictError):
        parted.refs.cherry_pick("fix")
    assert set(parted.io.list(parted.location)) == files


def test_attempts_share_the_manifest_and_write_a_list_each(lake: Lake, parted: Table) -> None:
    losing = LosingTable(
        lake,
        "db.orders",
        lambda: lake.load_table("db.orders").append(order_rows(50), fast=True),
        lambda: lake.load_table("db.orders").refs.create_tag("t"),
    )
    losing.table.refs.cherry_pick("dev")
    assert losing.manifests == [1, 0, 0]
    assert losing.lists == [1, 1, 1]
    assert rows(parted.refresh()) == [1, 2, 3, 50]
    check_nothing_is_missing(parted, merged=True)


def test_a_move_becomes_a_repetition_when_others_come_first(lake: Lake, table: Table) -> None:
    moving = overtaken(lake, lambda: lake.load_table("db.orders").append(order_rows(50))).load_table("db.orders")
    assert len(moving.refs.cherry_pick("dev").replayed) == 1
    assert rows(table.refresh()) == [1, 2, 50]


def test_a_repetition_becomes_a_move_and_leaves_no_files(lake: Lake, parted: Table) -> None:
    first = parted.metadata.snapshots[0].snapshot_id
    moving = overtaken(lake, lambda: lake.load_table("db.orders").refs.rollback(to=first)).load_table("db.orders")
    files = {f for f in parted.io.list(parted.location) if f.endswith(".avro")}
    assert moving.refs.cherry_pick("dev").replayed == {}
    assert {f for f in parted.io.list(parted.location) if f.endswith(".avro")} == files
    assert rows(parted.refresh()) == [1, 2]


def test_checks_are_repeated_on_every_attempt(lake: Lake, parted: Table) -> None:
    other = lake.load_table("db.orders")
    moving = overtaken(lake, lambda: other.refs.cherry_pick("dev")).load_table("db.orders")
    with pytest.raises(RefusedError, match="already has it"):
        moving.refs.cherry_pick("dev")
    parted.refresh().refs.create_branch("fix")
    parted.overwrite_partitions(order_rows(9), branch="fix").append(order_rows(4, region="jp"))
    moving = overtaken(lake, lambda: lake.load_table("db.orders").append(order_rows(60))).load_table("db.orders")
    with pytest.raises(ConflictError, match="to a partition that was replaced"):
        moving.refs.cherry_pick("fix")
    assert rows(parted.refresh()) == [1, 2, 3, 4, 60]


def test_a_ref_that_moved_meanwhile_is_not_picked(lake: Lake, parted: Table) -> None:
    other = lake.load_table("db.orders")
    moving = overtaken(lake, lambda: other.append(order_rows(50), branch="dev")).load_table("db.orders")
    with pytest.raises(ConflictError, match="in its place meanwhile"):
        moving.refs.cherry_pick("dev")
    assert rows(parted.refresh()) == [1, 3]


def test_picks_in_a_transaction_are_one_commit(parted: Table) -> None:
    before = parted.metadata_location
    picked = head(parted, "dev")
    with parted.transaction() as changed:
        changed.append(order_rows(7))
        changed.refs.cherry_pick(picked)
        changed.refs.create_tag("release")
    assert rows(parted) == rows(parted, "release") == [1, 2, 3, 7]
    assert parted.metadata.metadata_log[-1].metadata_file == before


def test_a_transaction_that_loses_a_race_picks_what_it_has_written_anew(lake: Lake, parted: Table) -> None:
    def others() -> None:
        other = lake.load_table("db.orders").append(order_rows(4))
        other.refs.fast_forward("audit", to="main")
        other.append(order_rows(5, region="us"))

    parted.refs.create_branch("audit")
    parted.append(order_rows(50, region="us"))
    with overtaken(lake, others).load_table("db.orders").transaction() as inside:
        inside.overwrite_partitions(order_rows(8), branch="audit")
        inside.refs.cherry_pick("audit")
    assert rows(parted.refresh(), "audit") == [8, 50]
    assert rows(parted) == [5, 8, 50]


def test_a_squashed_snapshot_is_not_picked_where_a_part_of_it_is(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging")
    orders.append(order_rows(2), branch="staging")
    orders.append(order_rows(3), branch="other")
    orders.refs.cherry_pick("staging", onto="other")
    orders.append(order_rows(4), branch="staging").append(order_rows(5))
    squashed = orders.refs.merge("staging", into="main", squash=True).head
    orders.compact(branch="other")
    with pytest.raises(RefusedError, match="squashed from several, of which `other` already has some"):
        orders.refs.cherry_pick("main", onto="other")
    orders.refs.create_branch("clean", at=orders.metadata.snapshots[0].snapshot_id)
    orders.append(order_rows(6), branch="clean")
    orders.refs.cherry_pick("main", onto="clean")
    picked = orders.metadata.snapshot(orders.refs["clean"].snapshot_id)
    assert (
        picked.summary["squashed-snapshot-ids"]
        == orders.metadata.snapshot(squashed or 0).summary["squashed-snapshot-ids"]
    )
    assert orders.refs.merge("staging", into="clean").replayed == {}
    assert ids(orders.scan(ref="clean").to_arrow()) == [1, 2, 4, 6]
