"""Statements that need no engine, run on a lake."""

import datetime as dt
import os
import time

import pytest
from rows import ids, order_rows

from bergline import Lake, Table
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    SqlSyntaxError,
    UnsupportedError,
)
from bergline.io.locations import local_path
from bergline.sql.names.resolve import Lakes
from bergline.sql.names.selector import VersionSelector
from bergline.sql.parse.analyze import analyze
from bergline.sql.run.run import run_statement
from bergline.sql.text.timestamps import timestamp_ms
from bergline.table.commits.retry import Timing


def run(lake: Lake, text: str) -> list[dict[str, object]] | None:
    rows = run_statement(analyze(text), Lakes({"lake": lake}, "lake"), time_zone="UTC")  # type: ignore[arg-type]
    return None if rows is None else rows.to_pylist()


def test_ref_statements_change_the_table(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    run(lake, "ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS;")
    orders.refresh().append(order_rows(2), branch="staging")
    before, after = orders.refs["main"].snapshot_id, orders.refs["staging"].snapshot_id
    assert run(lake, "CALL system.fast_forward('db.orders', 'main', 'staging');") == [
        {"branch_updated": "main", "previous_ref": before, "updated_ref": after}
    ]
    run(lake, "ALTER TABLE db.orders DROP BRANCH staging;")
    run(lake, f"ALTER TABLE db.orders CREATE TAG `2026-q1-final` AS OF VERSION {before};")
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]
    assert ids(orders.scan(ref="2026-q1-final").to_arrow()) == [1]
    assert set(orders.refs) == {"main", "2026-q1-final"}


def test_expire_answers_with_the_official_columns(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    (row,) = run(lake, "CALL system.expire_snapshots(table => 'db.orders', older_than => TIMESTAMP '2099-01-01')") or []
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
    (row,) = run(lake, f"CALL system.expire_snapshots('db.orders', NULL, 9, 2, true, array({named}), true)")
    assert row["deleted_manifest_lists_count"] == 1
    assert named not in orders.refresh().metadata.snapshots_by_id
    run(lake, "CALL system.expire_snapshots('db.orders', TIMESTAMP '2099-01-01', clean_expired_metadata => true)")
    assert [s.schema_id for s in orders.refresh().metadata.schemas] == [1]
    with pytest.raises(InvalidInputError, match="expected max_concurrent_deletes above 0, found 0"):
        run(lake, "CALL system.expire_snapshots(table => 'db.orders', max_concurrent_deletes => 0)")
    head = orders.metadata.current_snapshot_id
    with pytest.raises(RefusedError, match=f"cannot expire snapshot {head}: `main` still names it"):
        run(lake, f"CALL system.expire_snapshots(table => 'db.orders', snapshot_ids => array({head}))")


def test_expiry_explains_itself(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    rows = run(lake, "CALL system.explain_expiry(table => 'db.orders', older_than => TIMESTAMP '2099-01-01')") or []
    assert rows == orders.plan_expiry(older_than=dt.datetime(2099, 1, 1, tzinfo=dt.UTC)).to_arrow().to_pylist()
    assert [row["reason"] for row in rows if row["kind"] == "snapshot"] == [
        "older than 2099-01-01 00:00:00.000+00:00, beyond the newest 1 of `main`",
        "branch `main`",
    ]
    assert len(orders.refresh().metadata.snapshots) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("'db.orders'", InvalidInputError, "expected argument `branch` of `fast_forward`, found none"),
        ("'db.orders', 'main', 'x', 'y'", InvalidInputError, "expected up to 3 arguments"),
        ("table => 'db.orders', brunch => 'x', to => 'y'", NotFoundError, "no argument `brunch`"),
        ("'db.orders', 1, 'x'", InvalidInputError, "expected `string` for argument `branch`"),
        ("'db.nope', 'main', 'x'", NotFoundError, r"no table `db\.nope`"),
        ("'nope.orders', 'main', 'x'", NotFoundError, r"no table `nope\.orders`"),
        ("'db.orders.refs', 'main', 'x'", InvalidInputError, "expected a table, found"),
        ("'db.orders', 'main', 'nope'", NotFoundError, "no branch or tag `nope`"),
    ],
)
def test_bad_arguments_are_one_error(lake: Lake, orders: Table, arguments: str, error: type, message: str) -> None:
    orders.append(order_rows(1))
    with pytest.raises(error, match=message):
        run(lake, f"CALL system.fast_forward({arguments})")


@pytest.mark.parametrize("procedure", ["system.fast_forwad", "fast_forward", "lake.system.fast_forwrd"])
def test_unknown_procedure_lists_near_names_or_the_way_to_call(lake: Lake, procedure: str) -> None:
    with pytest.raises(NotFoundError, match="no procedure") as caught:
        run(lake, f"CALL {procedure}('db.orders', 'a', 'b')")
    assert "fast_forward" in " ".join(caught.value.hints)


def test_procedures_of_other_catalogs_are_not_ours_whatever_their_arguments(lake: Lake) -> None:
    assert run(lake, "CALL other.system.fast_forward('a', 'b', 'c')") is None
    assert run(lake, "CALL other.system.rewrite_data_files(table => 'x', options => struct('a', 'b'))") is None
    with pytest.raises(SqlSyntaxError, match="found `struct`"):
        run(lake, "CALL system.expire_snapshots(table => 'x', options => struct('a', 'b'))")


def test_tables_elsewhere_are_not_ours(lake: Lake) -> None:
    assert run(lake, "ALTER TABLE elsewhere.orders CREATE BRANCH b") is None
    assert run(lake, "DROP TABLE elsewhere.orders") is None
    assert run(lake, "CREATE TABLE elsewhere.t (id INT)") is None


def test_create_and_drop_table(lake: Lake) -> None:
    run(lake, "CREATE TABLE db.t (id BIGINT) PARTITIONED BY (bucket(4, id))")
    assert str(lake.load_table("db.t").spec.fields[0].transform) == "bucket[4]"
    run(lake, "DROP TABLE lake.db.t")
    run(lake, "DROP TABLE IF EXISTS db.t")
    assert lake.list_tables("db") == []


def test_names_resolve_to_tables_first_then_to_selectors(lake: Lake, orders: Table) -> None:
    lakes = Lakes({"lake": lake}, "lake")

    def selector(*name: str) -> VersionSelector | None:
        target = lakes.resolve(name)
        return target and target.selector

    assert selector("db", "orders") == selector("lake", "db", "orders") == VersionSelector()
    assert selector("db", "orders", "refs") == VersionSelector(metadata_table="refs")
    assert selector("lake", "db", "orders", "SNAPSHOTS") == VersionSelector(metadata_table="snapshots")
    assert selector("db", "orders", "branch_a/b") == VersionSelector(branch="a/b")
    assert selector("db", "orders", "tag_v1") == VersionSelector(ref="v1")
    assert selector("db", "orders", "snapshot_id_7") == VersionSelector(snapshot_id=7)
    assert selector("db", "orders", "at_timestamp_7") == VersionSelector(as_of_ms=7)
    assert selector("elsewhere", "orders") is None
    lake.create_namespace("db.orders")
    lake.create_table("db.orders.refs", orders.schema)
    assert selector("db", "orders", "refs") == VersionSelector()
    assert selector("db", "orders", "history") == VersionSelector(metadata_table="history")


def test_times_without_a_zone_are_in_the_sessions() -> None:
    assert timestamp_ms("1970-01-01 01:00:00", "Europe/Berlin") == 0
    assert timestamp_ms("1970-01-01 01:00:00+00:00", "Europe/Berlin") == 3_600_000
    assert timestamp_ms(5, "UTC") == 5000


def test_times_of_procedures_are_in_the_sessions_zone_and_exact(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first, second = orders.metadata.snapshots
    moment = dt.datetime.fromtimestamp(second.timestamp_ms // 1000, dt.UTC).replace(
        microsecond=second.timestamp_ms % 1000 * 1000
    )
    earlier = [s for s in (first, second) if s.timestamp_ms < second.timestamp_ms]
    run(lake, f"CALL system.expire_snapshots('db.orders', '{moment:%Y-%m-%d %H:%M:%S.%f}', 1)")
    left = {s.snapshot_id for s in orders.refresh().metadata.snapshots}
    assert left == {first.snapshot_id, second.snapshot_id} - {s.snapshot_id for s in earlier}
    with pytest.raises(InvalidInputError, match="expected a time like"):
        run(lake, "CALL system.expire_snapshots('db.orders', 'yesterday')")


def test_branches_are_compared_merged_and_rebased(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging")
    orders.append(order_rows(2), branch="staging").append(order_rows(3))
    (row,) = run(lake, "CALL system.diff('db.orders', 'main', 'staging')")
    assert (row["partition"], row["added_rows"], row["removed_rows"]) == ("", 1, 1)
    orders.refs.create_branch("copy", at="staging")
    before = orders.refs["main"].snapshot_id
    (row,) = run(lake, "CALL system.merge('db.orders', 'staging', 'main')")
    assert row == {
        "branch_updated": "main",
        "previous_ref": before,
        "updated_ref": orders.refresh().refs["main"].snapshot_id,
        "replayed_snapshots_count": 1,
    }
    (row,) = run(lake, "CALL system.merge(table => 'db.orders', branch => 'copy', into => 'main', squash => true)")
    assert row["replayed_snapshots_count"] == 0
    orders.append(order_rows(4), branch="copy")
    (row,) = run(lake, "CALL system.rebase('db.orders', 'copy', 'main')")
    assert (row["branch_updated"], row["replayed_snapshots_count"]) == ("copy", 1)
    assert ids(orders.refresh().scan(ref="copy").to_arrow()) == [1, 2, 3, 4]


def test_orphan_files_are_shown_by_a_dry_run_then_removed(lake: Lake, orders: Table) -> None:
    old, young = f"{orders.location}/data/a b%20.parquet", f"{orders.location}/data/young"
    for location in (old, young):
        orders.io.create(location, b"")
    later = time.time() + 10 * 86_400
    os.utime(local_path(young), (later, later))
    two_days_ago = dt.datetime.fromtimestamp(later - 2 * 86_400, dt.UTC)
    lake = Lake(lake.catalog, "lake", timing=Timing(clock_ms=lambda: int(later * 1000)))
    call = "CALL system.remove_orphan_files(table => 'db.orders'"
    assert run(lake, f"{call}, dry_run => true)") == [{"orphan_file_location": old}]
    assert orders.io.exists(old)
    everything = (
        f"{call}, older_than => TIMESTAMP '{two_days_ago:%F %T}', location => '{orders.location}/data', "
        "max_concurrent_deletes => 2, "
        "equal_schemes => map('s3a,s3n', 's3'), equal_authorities => map('a', 'b'), prefix_mismatch_mode => 'IGNORE', "
        "prefix_listing => true, stream_results => true)"
    )
    assert run(lake, everything) == [{"orphan_file_location": old}]
    assert not orders.io.exists(old)
    assert orders.io.exists(young)
    assert run(lake, f"{call})") == []


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        ("older_than => now()", RefusedError, "of the last 24 hours"),
        ("max_concurrent_deletes => 0", InvalidInputError, "above 0"),
        ("file_list_view => 'v'", UnsupportedError, "file_list_view"),
        ("prefix_mismatch_mode => 'none'", InvalidInputError, "error, ignore, delete"),
        ("equal_schemes => map('a', 1)", InvalidInputError, "`map<string,string>`"),
        ("equal_schemes => map('a')", InvalidInputError, "keys and values in turn"),
        ("location => '/elsewhere'", RefusedError, "no directory of this table"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_bad_arguments_for_orphan_files(lake: Lake, argument: str, error: type[BerglineError], message: str) -> None:
    with pytest.raises(error, match=message):
        run(lake, f"CALL system.remove_orphan_files(table => 'db.orders', {argument})")
