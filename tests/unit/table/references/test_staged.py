"""Writes under a WAP id: a snapshot that no ref names, read by its id, published once."""

from collections.abc import Callable
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError, ConflictError, InvalidInputError, NotFoundError, RefusedError
from support.fixtures.add_deletes import position_deletes
from support.fixtures.competing_writers import overtaken
from support.fixtures.data_files import written_files
from support.fixtures.hints import follow
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing

pytestmark = pytest.mark.long


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two orders in `eu` and one in `us`, in two files."""
    made = lake.create_table("db.orders", ORDERS, partition_by=["region"])
    return made.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def rows(table: Table, **version: Any) -> list[int]:
    return ids(table.scan(**version).to_arrow())


def _row_delta(table: Table) -> None:
    (file,) = [p.file for p in table.scan("region = 'eu'").plan().files]
    deletes = position_deletes(table, {file.file_path: [0]})
    table.row_delta(add=written_files(table, order_rows(9)), deletes=[deletes], wap_id="w")


WRITES: dict[str, tuple[Callable[[Table], object], list[int]]] = {
    "append": (lambda t: t.append(order_rows(9), wap_id="w"), [1, 2, 3, 9]),
    "append_files": (lambda t: t.append_files(written_files(t, order_rows(9)), wap_id="w"), [1, 2, 3, 9]),
    "overwrite": (lambda t: t.overwrite(order_rows(9), wap_id="w"), [9]),
    "overwrite by filter": (lambda t: t.overwrite(order_rows(9), "id = 1", wap_id="w"), [2, 3, 9]),
    "overwrite_files": (lambda t: t.overwrite_files(written_files(t, order_rows(9)), wap_id="w"), [9]),
    "overwrite_partitions": (lambda t: t.overwrite_partitions(order_rows(9), wap_id="w"), [3, 9]),
    "replace_partitions": (lambda t: t.replace_partitions(written_files(t, order_rows(9)), wap_id="w"), [3, 9]),
    "delete": (lambda t: t.delete("id = 1", wap_id="w"), [2, 3]),
    "row_delta": (_row_delta, [2, 3, 9]),
}


@pytest.mark.parametrize(("write", "expected"), WRITES.values(), ids=WRITES)
def test_every_write_can_be_staged_and_published(
    table: Table, write: Callable[[Table], object], expected: list[int]
) -> None:
    refs, current = table.metadata.refs, table.metadata.current_snapshot_id
    write(table)
    assert table.metadata.refs == refs
    assert rows(table) == [1, 2, 3]
    snapshot = table.refs.staged("w")
    assert snapshot.parent_snapshot_id == current
    assert snapshot.summary["wap.id"] == "w"
    assert rows(table, snapshot_id=snapshot.snapshot_id) == expected
    result = table.refs.publish("w")
    assert (result.previous, result.head, result.replayed) == (current, snapshot.snapshot_id, {})
    assert rows(table) == expected
    check_nothing_is_missing(table)


def test_an_append_is_published_where_main_has_moved_on(table: Table) -> None:
    table.append(order_rows(9), wap_id="w").append(order_rows(4))
    staged = table.refs.staged("w")
    result = table.refs.publish("w")
    assert result.replayed == {staged.snapshot_id: table.refs["main"].snapshot_id}
    assert rows(table) == [1, 2, 3, 4, 9]
    assert table.current_snapshot is not None
    summary = table.current_snapshot.summary
    assert (summary["published-wap-id"], summary["source-snapshot-id"]) == ("w", str(staged.snapshot_id))
    assert "wap.id" not in summary
    check_nothing_is_missing(table, merged=True)


@pytest.mark.parametrize("meanwhile", [0, 1])
def test_a_wap_id_is_published_once(table: Table, meanwhile: int) -> None:
    table.append(order_rows(9), wap_id="w")
    for n in range(meanwhile):
        table.append(order_rows(20 + n))
    table.refs.publish("w")
    published = table.refs["main"].snapshot_id
    table.append(order_rows(5))
    with pytest.raises(RefusedError, match=f"`w` to `main`: it was published already, as snapshot {published}"):
        table.refs.publish("w")
    with pytest.raises(RefusedError, match="published already"):
        table.refs.cherry_pick(table.refs.staged("w").snapshot_id)


def test_a_second_snapshot_under_one_id_is_for_cherry_pick(table: Table) -> None:
    table.append(order_rows(8), wap_id="w").append(order_rows(9), wap_id="w")
    first, second = (s.snapshot_id for s in table.metadata.snapshots[-2:])
    with pytest.raises(RefusedError, match=f"found several: {first}, {second}"):
        table.refs.publish("w")
    table.refs.cherry_pick(second)
    assert rows(table) == [1, 2, 3, 9]
    with pytest.raises(RefusedError, match="published already"):
        table.refs.cherry_pick(first)


def test_a_published_id_that_is_staged_again_is_refused_with_a_way_on(table: Table) -> None:
    table.append(order_rows(8), wap_id="w").append(order_rows(4)).refs.publish("w")
    table.append(order_rows(9), wap_id="w").append(order_rows(5))
    again = table.metadata.snapshots[-2]
    for attempt in (lambda: table.refs.publish("w"), lambda: table.refs.cherry_pick(again.snapshot_id)):
        with pytest.raises(RefusedError, match="`w` to `main`: it was published already") as caught:
            attempt()
        assert caught.value.hints[0] == "stage the rows under an id of their own"
        assert f"at={again.snapshot_id}" in caught.value.hints[1]
    follow(table, caught.value.hints[1])
    assert rows(table) == [1, 2, 3, 4, 5, 8, 9]


def test_a_staged_delete_comes_by_a_merge_where_main_has_moved_on(table: Table) -> None:
    table.delete("id = 1", wap_id="w").append(order_rows(4))
    with pytest.raises(RefusedError, match="only appends, replaced partitions and snapshots") as caught:
        table.refs.publish("w")
    follow(table, caught.value.hints[0])
    assert rows(table) == [2, 3, 4]
    with pytest.raises(RefusedError, match="already has it"):
        table.refs.publish("w")
    assert rows(table) == [2, 3, 4]


def test_staging_starts_no_branch(table: Table) -> None:
    table.append(order_rows(9), branch="new", wap_id="w")
    assert set(table.refs) == {"main"}
    assert table.refs.staged("w").parent_snapshot_id == table.refs["main"].snapshot_id


def test_staging_builds_on_the_branch_that_is_named(table: Table) -> None:
    table.append(order_rows(4), branch="dev")
    table.append(order_rows(9), branch="dev", wap_id="w")
    assert rows(table, ref="dev") == [1, 2, 3, 4]
    table.refs.publish("w", into="dev")
    assert rows(table, ref="dev") == [1, 2, 3, 4, 9]
    table.refs.publish("w")  # each branch once
    assert rows(table) == [1, 2, 3, 9]


def test_what_was_published_to_a_branch_is_published_by_merging_it(table: Table) -> None:
    table.refs.create_branch("dev")
    table.append(order_rows(9), wap_id="w").refs.publish("w", into="dev")
    table.append(order_rows(4)).refs.merge("dev", into="main")
    assert table.current_snapshot is not None
    assert table.current_snapshot.summary["published-wap-id"] == "w"
    assert table.refs.staged("w").snapshot_id == table.refs["dev"].snapshot_id
    with pytest.raises(RefusedError, match="published already"):
        table.refs.publish("w")
    assert rows(table) == [1, 2, 3, 4, 9]


def test_first_rows_of_a_table_can_be_staged(orders: Table) -> None:
    orders.append(order_rows(1), wap_id="w")
    assert orders.current_snapshot is None
    orders.refs.publish("w")
    assert rows(orders) == [1]
    assert orders.refs["main"].snapshot_id == orders.refs.staged("w").snapshot_id


def test_a_delete_that_finds_nothing_stages_nothing(table: Table) -> None:
    before = table.metadata_location
    table.delete("id = 77", wap_id="w")
    assert table.refresh().metadata_location == before


def test_staging_is_tried_again_on_the_new_head(lake: Lake, table: Table) -> None:
    other = lake.load_table("db.orders")
    staging = overtaken(lake, lambda: other.append(order_rows(50)), lambda: other.refs.create_tag("t"))
    staging.load_table("db.orders").append(order_rows(9), wap_id="w")
    table.refresh()
    assert rows(table) == [1, 2, 3, 50]
    assert rows(table, snapshot_id=table.refs.staged("w").snapshot_id) == [1, 2, 3, 9, 50]
    check_nothing_is_missing(table)


def test_a_staged_delete_is_checked_like_any_other(lake: Lake, table: Table) -> None:
    other = lake.load_table("db.orders")
    staging = overtaken(lake, lambda: other.delete("id = 2")).load_table("db.orders")
    with pytest.raises(ConflictError):
        staging.delete("id = 1", wap_id="w")
    with pytest.raises(NotFoundError):
        table.refresh().refs.staged("w")


def test_publishing_is_checked_again_on_every_attempt(lake: Lake, table: Table) -> None:
    table.append(order_rows(9), wap_id="w")
    other = lake.load_table("db.orders")
    publishing = overtaken(lake, lambda: other.refs.publish("w")).load_table("db.orders")
    with pytest.raises(RefusedError, match="published already"):
        publishing.refs.publish("w")
    table.append(order_rows(10), wap_id="x")
    publishing = overtaken(lake, lambda: other.append(order_rows(11), wap_id="x")).load_table("db.orders")
    with pytest.raises(RefusedError, match="found several"):
        publishing.refs.publish("x")


def test_staged_and_published_in_one_transaction(table: Table) -> None:
    with table.transaction() as changed:
        changed.append(order_rows(9), wap_id="w")
        changed.append(order_rows(4))
        assert rows(changed) == [1, 2, 3, 4]
        changed.refs.publish("w")
    assert rows(table) == [1, 2, 3, 4, 9]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda t: t.refs.publish("nope"), NotFoundError, "no snapshot staged under WAP id `nope`"),
        (lambda t: t.refs.publish("W"), NotFoundError, "no snapshot staged under WAP id `W`"),
        (lambda t: t.refs.publish(5), InvalidInputError, "text for a WAP id, found 5"),
        (lambda t: t.refs.publish(""), InvalidInputError, "expected a WAP id, found empty text"),
        (lambda t: t.refs.publish("w", into="nope"), NotFoundError, "no branch `nope`"),
        (lambda t: t.refs.publish("w", into="v1"), RefusedError, "tags do not move"),
        (lambda t: t.append(order_rows(1), wap_id=""), InvalidInputError, "expected a WAP id, found empty text"),
        (lambda t: t.append(order_rows(1), wap_id=5), InvalidInputError, "text for a WAP id, found 5"),
        (lambda t: t.overwrite(order_rows(1), wap_id=""), InvalidInputError, "found empty text"),
        (lambda t: t.overwrite(order_rows(1), "id = 1", wap_id=""), InvalidInputError, "found empty text"),
        (lambda t: t.overwrite_partitions(order_rows(1), wap_id=""), InvalidInputError, "found empty text"),
        (lambda t: t.delete("id = 1", wap_id=""), InvalidInputError, "found empty text"),
        (lambda t: t.append(order_rows(1), branch="v1", wap_id="w"), RefusedError, "tags do not move"),
    ],
)
def test_wrong_staging_is_one_error_and_leaves_nothing(
    table: Table, wrong: Callable[[Any], object], error: type[BerglineError], message: str
) -> None:
    table.append(order_rows(9), wap_id="w").refs.create_tag("v1")
    before, files = table.metadata_location, set(table.io.list(table.location))
    with pytest.raises(error, match=message):
        wrong(table)
    assert table.refresh().metadata_location == before
    assert set(table.io.list(table.location)) == files
