"""Procedures that move refs: the official columns, and one error for what cannot be."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from support.fixtures.rows import ids, order_rows
from support.fixtures.sql_statements import rows_of, run_text

pytestmark = pytest.mark.long


@pytest.fixture
def call(lake: Lake) -> Callable[[str], pa.Table]:
    return lambda text: run_text(lake, f"CALL system.{text}")


@pytest.fixture
def table(orders: Table) -> Table:
    """Three snapshots on main, one more on dev."""
    orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3)).refs.create_branch("dev")
    return orders.append(order_rows(4), branch="dev")


def snapshot(table: Table, place: int) -> int:
    return table.metadata.snapshots[place].snapshot_id


def row(found: pa.Table) -> tuple[Any, ...]:
    (only,) = found.to_pylist()
    return tuple(only.values())


def test_rollback_to_a_snapshot(call: Callable[[str], pa.Table], table: Table) -> None:
    found = call(f"rollback_to_snapshot('db.orders', {snapshot(table, 0)})")
    assert row(found) == (snapshot(table, 2), snapshot(table, 0))
    assert found.schema == pa.schema(
        [pa.field(n, pa.int64(), nullable=False) for n in ("previous_snapshot_id", "current_snapshot_id")]
    )
    assert ids(table.refresh().scan().to_arrow()) == [1]


def test_rollback_to_a_timestamp(call: Callable[[str], pa.Table], table: Table) -> None:
    last = table.metadata.snapshots[2].timestamp_ms
    expected = [s for s in table.metadata.snapshots[:3] if s.timestamp_ms < last]
    moment = dt.datetime.fromtimestamp(last // 1000, dt.UTC).replace(microsecond=last % 1000 * 1000)
    found = call(f"rollback_to_timestamp(table => 'db.orders', timestamp => '{moment:%Y-%m-%d %H:%M:%S.%f}')")
    assert row(found) == (snapshot(table, 2), expected[-1].snapshot_id)


def test_current_snapshot_is_set_by_id_or_ref(call: Callable[[str], pa.Table], table: Table) -> None:
    found = call("set_current_snapshot(table => 'db.orders', ref => 'dev')")
    assert row(found) == (snapshot(table, 2), snapshot(table, 3))
    assert [(f.name, f.nullable) for f in found.schema] == [
        ("previous_snapshot_id", True),
        ("current_snapshot_id", False),
    ]
    assert row(call(f"set_current_snapshot('db.orders', {snapshot(table, 1)})")) == (
        snapshot(table, 3),
        snapshot(table, 1),
    )


def test_cherrypick_and_publish_say_what_was_picked(call: Callable[[str], pa.Table], table: Table) -> None:
    table.append(order_rows(5)).append(order_rows(6), wap_id="w")
    picked = snapshot(table, 3)
    found = call(f"cherrypick_snapshot('db.orders', {picked})")
    assert row(found) == (picked, table.refresh().refs["main"].snapshot_id)
    assert found.schema.names == ["source_snapshot_id", "current_snapshot_id"]
    found = call("publish_changes('db.orders', 'w')")
    assert row(found) == (table.refs.staged("w").snapshot_id, table.refresh().refs["main"].snapshot_id)
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5, 6]


def test_publishing_on_the_head_moves_main_to_what_was_staged(call: Callable[[str], pa.Table], table: Table) -> None:
    staged = table.append(order_rows(6), wap_id="w").refs.staged("w").snapshot_id
    assert row(call("publish_changes('db.orders', 'w')")) == (staged, staged)


def test_ancestors_are_listed_newest_first(call: Callable[[str], pa.Table], table: Table) -> None:
    line = [(s.snapshot_id, s.timestamp_ms) for s in table.metadata.snapshots]
    found = call("ancestors_of('db.orders')")
    assert [tuple(r.values()) for r in found.to_pylist()] == line[2::-1]
    assert found.schema == pa.schema([("snapshot_id", pa.int64()), ("timestamp", pa.int64())])
    assert call(f"ancestors_of('db.orders', {line[3][0]})").num_rows == 4


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("rollback_to_snapshot('db.orders', 7)", NotFoundError, "no snapshot with id 7"),
        ("rollback_to_snapshot('db.orders')", InvalidInputError, "expected argument `snapshot_id`"),
        ("rollback_to_snapshot('db.orders', 'x')", InvalidInputError, "expected `bigint`"),
        ("rollback_to_snapshot('db.orders', 1.5)", InvalidInputError, "expected `bigint`"),
        ("rollback_to_timestamp('db.orders', '2001-01-01')", NotFoundError, "no snapshot of `main` before 2001-01-01"),
        ("set_current_snapshot('db.orders')", InvalidInputError, "either snapshot_id or ref, found neither"),
        ("set_current_snapshot('db.orders', 7, 'dev')", InvalidInputError, "either snapshot_id or ref, found both"),
        ("set_current_snapshot(table => 'db.orders', ref => 'nope')", NotFoundError, "no branch or tag `nope`"),
        ("cherrypick_snapshot('db.orders', 7)", NotFoundError, "no snapshot with id 7"),
        ("publish_changes('db.orders', 'nope')", NotFoundError, "no snapshot staged under WAP id `nope`"),
        ("publish_changes('db.orders', 7)", InvalidInputError, "expected `string`"),
        ("ancestors_of('db.orders', 7)", NotFoundError, "no snapshot with id 7"),
        ("fast_forward('db.orders', 'dev', 'main')", RefusedError, "ahead of it"),
    ],
)
def test_wrong_calls_are_one_error_and_change_nothing(
    call: Callable[[str], pa.Table], table: Table, text: str, error: type[BerglineError], message: str
) -> None:
    before = table.metadata_location
    with pytest.raises(error, match=message):
        call(text)
    assert table.refresh().metadata_location == before


def test_ancestors_of_an_empty_table_are_an_error(call: Callable[[str], pa.Table], orders: Table) -> None:
    with pytest.raises(NotFoundError, match=f"no snapshot in table `{orders.name}` yet"):
        call("ancestors_of('db.orders')")


def test_branches_are_compared_merged_and_rebased(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging")
    orders.append(order_rows(2), branch="staging").append(order_rows(3))
    (row,) = rows_of(lake, "CALL system.diff('db.orders', 'main', 'staging')")
    assert (row["partition"], row["added_rows"], row["removed_rows"]) == ("", 1, 1)
    orders.refs.create_branch("copy", at="staging")
    before = orders.refs["main"].snapshot_id
    (row,) = rows_of(lake, "CALL system.merge('db.orders', 'staging', 'main')")
    assert row == {
        "branch_updated": "main",
        "previous_ref": before,
        "updated_ref": orders.refresh().refs["main"].snapshot_id,
        "replayed_snapshots_count": 1,
    }
    (row,) = rows_of(lake, "CALL system.merge(table => 'db.orders', branch => 'copy', into => 'main', squash => true)")
    assert row["replayed_snapshots_count"] == 0
    orders.append(order_rows(4), branch="copy")
    (row,) = rows_of(lake, "CALL system.rebase('db.orders', 'copy', 'main')")
    assert (row["branch_updated"], row["replayed_snapshots_count"]) == ("copy", 1)
    assert ids(orders.refresh().scan(ref="copy").to_arrow()) == [1, 2, 3, 4]
