"""Which snapshots a changelog is about, how changes are matched, and what is refused."""

from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.table.scans.changelog_scan import ChangelogRange, MatchRules, changelog_snapshots, match_rules
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def orders(lake: Lake) -> Table:
    """Three appends, the second of them with a tag, and a compaction."""
    table = lake.create_table("db.log", ORDERS).append(order_rows(1)).append(order_rows(2))
    table.refs.create_tag("second")
    table.append(order_rows(3))
    table.compact()
    return table


def line(table: Table) -> list[int]:
    """The snapshots of `main`, oldest first."""
    assert table.current_snapshot is not None
    return [s.snapshot_id for s in table.metadata.ancestors(table.current_snapshot.snapshot_id)][::-1]


def chosen(table: Table, **arguments: Any) -> list[int]:
    found = changelog_snapshots(table.metadata, ChangelogRange(**arguments))
    return [line(table).index(s.snapshot_id) for s in found]


def times(table: Table) -> list[int]:
    return [table.metadata.snapshot(s).timestamp_ms for s in line(table)]


def test_snapshots_that_only_rewrote_files_are_left_out(orders: Table) -> None:
    assert chosen(orders) == [0, 1, 2]
    assert chosen(orders, start_snapshot_id=line(orders)[2]) == []


def test_the_start_is_left_out_and_the_end_is_not(orders: Table) -> None:
    first, second, third, _ = line(orders)
    assert chosen(orders, start_snapshot_id=first, end_snapshot_id=third) == [1, 2]
    assert chosen(orders, start_tag="second") == [2]
    assert chosen(orders, end_tag="second") == [0, 1]
    assert chosen(orders, start_snapshot_id=second, end_snapshot_id=second) == []


def test_times_are_looked_up_in_the_history_of_the_branch(orders: Table) -> None:
    first, second, third, _ = times(orders)
    assert first < second < third
    assert chosen(orders, start_timestamp=first) == [1, 2]
    assert chosen(orders, start_timestamp=first - 1, end_timestamp=second) == [0, 1]
    assert chosen(orders, end_timestamp=first - 1) == []
    assert chosen(orders, start_timestamp=times(orders)[-1] + 1) == []
    orders.append(order_rows(9), branch="dev")
    found = changelog_snapshots(orders.metadata, ChangelogRange(branch="dev", start_tag="second"))
    assert [s.summary["added-records"] for s in found] == ["1", "1"]


def test_an_empty_table_has_no_changes(lake: Lake) -> None:
    table = lake.create_table("db.empty", ORDERS)
    assert table.scan_changes(ChangelogRange()).to_arrow().num_rows == 0
    assert table.changes(None).to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start_snapshot_id": 1, "start_timestamp": 1}, "found `start-snapshot-id` and `start-timestamp`"),
        ({"end_snapshot_id": 1, "end_tag": "x"}, "found `end-snapshot-id` and `end-tag`"),
        ({"start_timestamp": 5, "end_timestamp": 5}, "expected a start time before the end time"),
        ({"branch": "second"}, "expected a branch, found the tag `second`"),
    ],
)
def test_ranges_that_mean_nothing(orders: Table, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        chosen(orders, **arguments)


def test_snapshots_that_are_not_there(orders: Table) -> None:
    for arguments in ({"start_snapshot_id": 7}, {"end_snapshot_id": 7}, {"start_tag": "nope"}, {"branch": "nope"}):
        with pytest.raises(NotFoundError):
            chosen(orders, **arguments)


def test_an_end_that_does_not_descend_from_the_start(orders: Table) -> None:
    first, second, *_ = line(orders)
    with pytest.raises(InvalidInputError, match=f"expected a snapshot that descends from {second} .*, found {first}"):
        chosen(orders, start_snapshot_id=second, end_snapshot_id=first)


def test_the_start_may_have_expired_but_nothing_after_it(orders: Table) -> None:
    first, second, third, _ = line(orders)
    orders.refs.drop_tag("second")
    orders.expire(snapshot_ids=[first])
    assert orders.changes(first, net_changes=False).to_arrow().column("id").to_pylist() == [2, 3]
    orders.expire(snapshot_ids=[second])
    with pytest.raises(NotFoundError, match=f"changes since snapshot {first}: snapshot {second}, .* has expired"):
        orders.changes(first)
    with pytest.raises(NotFoundError, match=f"snapshot {second}, the parent of {third}, has expired"):
        chosen(orders, start_timestamp=1)
    assert chosen(orders) == [0]  # the oldest snapshot that is left


def test_rules_for_update_images(lake: Lake) -> None:
    plain = lake.create_table("db.plain", ORDERS)
    newer = lake.create_table("db.newer", ORDERS, properties={"format-version": "3"})

    def rules(table: Table, **arguments: Any) -> MatchRules:
        return match_rules(table.metadata, table.schema, **arguments)

    assert rules(plain) == MatchRules()
    assert rules(plain, net_changes=True) == MatchRules(net=True)
    assert rules(plain, identifier_columns=["id"]) == MatchRules(identifiers=("id",))
    assert rules(plain, identifier_columns=["id"], compute_updates=False) == MatchRules()
    assert rules(newer, compute_updates=True) == MatchRules(by_row_id=True)
    with plain.update_schema() as schema:
        schema.set_identifier_fields(["id"])
    assert rules(plain, compute_updates=True, net_changes=True) == MatchRules(net=True, identifiers=("id",))


def test_columns_that_cannot_identify_rows(lake: Lake) -> None:
    table = lake.create_table("db.plain", ORDERS)
    with pytest.raises(NotFoundError, match="no column `idd` to identify rows by"):
        table.changes(None, identifier_columns=["idd"])
    with pytest.raises(InvalidInputError, match="expected each identifier column once"):
        table.changes(None, identifier_columns=["id", "id"])
    with pytest.raises(InvalidInputError, match="expected identifier columns to compute update images by, found none"):
        table.changes(None, compute_updates=True)
    with pytest.raises(InvalidInputError, match="identifier column"):
        table.changes(None, identifier_columns="id")


def test_a_table_whose_own_columns_have_the_names_of_changelogs(lake: Lake) -> None:
    table = lake.create_table("db.taken", pa.schema([("_change_type", pa.string())]))
    for read in (lambda: table.changes(None), lambda: table.scan_changes(ChangelogRange())):
        with pytest.raises(InvalidInputError, match="expected no column of the name `_change_type`"):
            read()
