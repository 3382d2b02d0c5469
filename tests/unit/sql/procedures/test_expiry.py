"""`expire_snapshots`, `explain_expiry` and `remove_orphan_files`: the official columns and arguments."""

import datetime as dt
import os
import time

import pytest

from bergline import Lake, Table
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    RefusedError,
    UnsupportedError,
)
from bergline.io.locations import local_path
from bergline.table.commits.commit import Timing
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import rows_of


def test_expire_answers_with_the_official_columns(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    (row,) = (
        rows_of(lake, "CALL system.expire_snapshots(table => 'db.orders', older_than => TIMESTAMP '2099-01-01')") or []
    )
    assert row == {
        "deleted_data_files_count": 1,
        "deleted_position_delete_files_count": 0,
        "deleted_equality_delete_files_count": 0,
        "deleted_manifest_files_count": 1,
        "deleted_manifest_lists_count": 1,
        "deleted_statistics_files_count": 0,
    }


def test_expire_takes_all_official_arguments(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3))
    with orders.update_schema() as schema:
        schema.add_column("note", "string")
    orders.overwrite(order_rows(4))
    named = orders.metadata.snapshots[1].snapshot_id
    (row,) = rows_of(lake, f"CALL system.expire_snapshots('db.orders', NULL, 9, 2, true, array({named}), true)")
    assert row["deleted_manifest_lists_count"] == 1
    assert named not in orders.refresh().metadata.snapshots_by_id
    rows_of(lake, "CALL system.expire_snapshots('db.orders', TIMESTAMP '2099-01-01', clean_expired_metadata => true)")
    assert [s.schema_id for s in orders.refresh().metadata.schemas] == [1]
    with pytest.raises(InvalidInputError, match="expected max_concurrent_deletes above 0, found 0"):
        rows_of(lake, "CALL system.expire_snapshots(table => 'db.orders', max_concurrent_deletes => 0)")
    head = orders.metadata.current_snapshot_id
    with pytest.raises(RefusedError, match=f"cannot expire snapshot {head}: `main` still names it"):
        rows_of(lake, f"CALL system.expire_snapshots(table => 'db.orders', snapshot_ids => array({head}))")


def test_expiry_explains_itself(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    rows = rows_of(lake, "CALL system.explain_expiry(table => 'db.orders', older_than => TIMESTAMP '2099-01-01')") or []
    assert rows == orders.plan_expiry(older_than=dt.datetime(2099, 1, 1, tzinfo=dt.UTC)).to_arrow().to_pylist()
    assert [row["reason"] for row in rows if row["kind"] == "snapshot"] == [
        "older than 2099-01-01 00:00:00.000+00:00, beyond the newest 1 of `main`",
        "branch `main`",
    ]
    assert len(orders.refresh().metadata.snapshots) == 2


def test_times_of_procedures_are_in_the_sessions_zone_and_exact(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first, second = orders.metadata.snapshots
    moment = dt.datetime.fromtimestamp(second.timestamp_ms // 1000, dt.UTC).replace(
        microsecond=second.timestamp_ms % 1000 * 1000
    )
    earlier = [s for s in (first, second) if s.timestamp_ms < second.timestamp_ms]
    rows_of(lake, f"CALL system.expire_snapshots('db.orders', '{moment:%Y-%m-%d %H:%M:%S.%f}', 1)")
    left = {s.snapshot_id for s in orders.refresh().metadata.snapshots}
    assert left == {first.snapshot_id, second.snapshot_id} - {s.snapshot_id for s in earlier}
    with pytest.raises(InvalidInputError, match="expected a time like"):
        rows_of(lake, "CALL system.expire_snapshots('db.orders', 'yesterday')")


def test_orphan_files_are_shown_by_a_dry_run_then_removed(lake: Lake, orders: Table) -> None:
    old, young = f"{orders.location}/data/a b%20.parquet", f"{orders.location}/data/young"
    for location in (old, young):
        orders.io.create(location, b"")
    later = time.time() + 10 * 86_400
    os.utime(local_path(young), (later, later))
    two_days_ago = dt.datetime.fromtimestamp(later - 2 * 86_400, dt.UTC)
    lake = Lake(lake.catalog, "lake", timing=Timing(clock_ms=lambda: int(later * 1000)))
    call = "CALL system.remove_orphan_files(table => 'db.orders'"
    assert rows_of(lake, f"{call}, dry_run => true)") == [{"orphan_file_location": old}]
    assert orders.io.exists(old)
    everything = (
        f"{call}, older_than => TIMESTAMP '{two_days_ago:%F %T}', location => '{orders.location}/data', "
        "max_concurrent_deletes => 2, "
        "equal_schemes => map('s3a,s3n', 's3'), equal_authorities => map('a', 'b'), prefix_mismatch_mode => 'IGNORE', "
        "prefix_listing => true, stream_results => true)"
    )
    assert rows_of(lake, everything) == [{"orphan_file_location": old}]
    assert not orders.io.exists(old)
    assert orders.io.exists(young)
    assert rows_of(lake, f"{call})") == []


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        ("older_than => now()", RefusedError, "of the last 24 hours"),
        ("max_concurrent_deletes => 0", InvalidInputError, "above 0"),
        ("file_list_view => 'v'", UnsupportedError, "file_list_view"),
        ("prefix_mismatch_mode => 'none'", InvalidInputError, "error, ignore, delete"),
        ("equal_schemes => map('a', 1)", InvalidInputError, "`map<string,string>`"),
        ("equal_schemes => map('a')", InvalidInputError, "keys and values in turn"),
        ("location => '/elsewhere'", RefusedError, "not a directory of this table"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_bad_arguments_for_orphan_files(lake: Lake, argument: str, error: type[BerglineError], message: str) -> None:
    with pytest.raises(error, match=message):
        rows_of(lake, f"CALL system.remove_orphan_files(table => 'db.orders', {argument})")
