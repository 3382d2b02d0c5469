"""Expiry deletes what nothing live can need, and nothing else."""

import datetime as dt
from functools import partial
from pathlib import Path

import msgspec
import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import CommitUnknownError, FormatError, NotFoundError, UnavailableError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.retry import Timing
from bergline.table.expiry import expire
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


def data_files(table: Table) -> set[str]:
    return {f for f in table.io.list(table.location) if f.endswith(".parquet")}


def test_appended_files_stay_because_survivors_reach_them(orders: Table) -> None:
    for number in range(5):
        orders.append(order_rows(number))
    orders.refs.create_tag("pin", at=orders.metadata.snapshots[1].snapshot_id)
    result = orders.expire(older_than=FUTURE)
    assert len(result.removed_snapshots) == 3
    assert (result.deleted_manifest_lists, result.deleted_manifests, result.deleted_data_files) == (3, 0, 0)
    assert ids(orders.scan().to_arrow()) == [0, 1, 2, 3, 4]
    assert ids(orders.scan(ref="pin").to_arrow()) == [0, 1]


def test_overwritten_files_go_with_the_snapshots_that_had_them(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    before = data_files(orders)
    result = orders.expire(older_than=FUTURE)
    assert (result.deleted_data_files, result.deleted_manifests, result.deleted_manifest_lists) == (1, 1, 1)
    assert len(before - data_files(orders)) == 1
    assert ids(orders.scan().to_arrow()) == [2]


def test_tagged_snapshot_survives_with_its_files(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("compliance")
    orders.overwrite(order_rows(2)).overwrite(order_rows(3))
    result = orders.expire(older_than=FUTURE)
    assert result.deleted_data_files == 1
    assert ids(orders.scan(ref="compliance").to_arrow()) == [1]
    orders.refs.drop_tag("compliance")
    assert orders.expire(older_than=FUTURE).deleted_data_files == 1
    assert data_files(orders) == {p.file.file_path for p in orders.scan().plan().files}


def test_branch_keeps_what_it_shares_with_expired_history(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev").overwrite(order_rows(3))
    orders.expire(older_than=FUTURE)
    assert ids(orders.scan(ref="dev").to_arrow()) == [1, 2]
    assert ids(orders.scan().to_arrow()) == [3]


def test_dropped_branch_leaves_its_files_to_expiry(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev")
    orders.refs.drop_branch("dev")
    assert len(data_files(orders)) == 2
    assert orders.expire(older_than=FUTURE).deleted_data_files == 1
    assert ids(orders.scan().to_arrow()) == [1]


def test_nothing_to_expire_commits_nothing(orders: Table) -> None:
    orders.append(order_rows(1))
    before = orders.metadata_location
    assert orders.expire().removed_snapshots == ()
    assert orders.refresh().metadata_location == before


def test_metadata_files_are_left_alone(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    before = [f for f in orders.io.list(orders.location) if f.endswith(".metadata.json")]
    orders.expire(older_than=FUTURE)
    after = [f for f in orders.io.list(orders.location) if f.endswith(".metadata.json")]
    assert set(before) < set(after)


@pytest.mark.parametrize("kind", ["list of a survivor", "manifest of a survivor", "manifest of an expired one"])
@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_unreadable_metadata_stops_expiry_before_anything_changes(orders: Table, kind: str, damage: str) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first, last = orders.metadata.snapshots
    orders.plan_expiry(older_than=FUTURE)  # has read all of it, which must not count
    victim = {
        "list of a survivor": last.manifest_list,
        "manifest of a survivor": _own_manifest(orders, last.manifest_list),
        "manifest of an expired one": _own_manifest(orders, first.manifest_list),
    }[kind]
    path = Path(victim.removeprefix("file://"))
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:40])
    pointer, left = orders.metadata_location, orders.io.list(orders.location)
    for attempt in (orders.plan_expiry, orders.expire):
        with pytest.raises((NotFoundError, FormatError)):
            attempt(older_than=FUTURE)
    assert orders.refresh().metadata_location == pointer
    assert orders.io.list(orders.location) == left


def _own_manifest(orders: Table, manifest_list: str) -> str:
    commit = "-".join(manifest_list.rsplit("/", 1)[-1].removesuffix(".avro").split("-")[3:])
    return f"{orders.location}/metadata/{commit}-m0.avro"


def test_plan_dry_run_and_expiry_fail_alike_if_the_list_of_a_removed_snapshot_is_gone(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2)).scan().to_arrow()
    orders.io.delete([orders.metadata.snapshots[0].manifest_list or ""])
    said = []
    for attempt in (orders.plan_expiry, partial(orders.expire, dry_run=True), orders.expire):
        with pytest.raises(NotFoundError, match="cannot expire snapshots, nothing was changed or deleted") as caught:
            attempt(older_than=FUTURE)
        said.append(str(caught.value))
    assert len(set(said)) == 1


def test_tag_made_while_expiry_runs_protects_its_snapshot(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first = orders.metadata.snapshots[0].snapshot_id
    once = [True]

    def tag_once() -> None:
        if once:
            once.pop()
            orders.refs.create_tag("just-in-time", at=first)

    slow = _through(lake, FaultyStore(_store(lake), before_swap=tag_once))
    result = slow.load_table("db.orders").expire(older_than=FUTURE)
    assert result.removed_snapshots == ()
    assert ids(orders.refresh().scan(ref="just-in-time").to_arrow()) == [1]


@pytest.mark.parametrize("spelt", ["another slash", "a link to the directory", "a link to the file"])
def test_file_that_a_live_snapshot_names_otherwise_stays(orders: Table, tmp_path: Path, spelt: str) -> None:
    orders.append(order_rows(1))
    file = orders.scan().plan().files[0].file
    path = Path(file.file_path.removeprefix("file://"))
    (tmp_path / "directory").symlink_to(path.parent)
    (tmp_path / "file").symlink_to(path)
    names = {
        "another slash": f"file:///{path}",
        "a link to the directory": f"file://{tmp_path}/directory/{path.name}",
        "a link to the file": f"file://{tmp_path}/file",
    }
    orders.overwrite(order_rows(2))
    orders.append_files([msgspec.structs.replace(file, file_path=names[spelt])])
    assert orders.expire(older_than=FUTURE).deleted_data_files == 0
    assert ids(orders.scan().to_arrow()) == [1, 2]


def test_file_added_again_after_the_swap_stays(lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    file = orders.append(order_rows(1)).scan().plan().files[0].file
    orders.overwrite(order_rows(2))
    expiring = lake.load_table("db.orders")
    load_newest = expiring._handle.load_newest

    def after_another() -> LoadedTable:
        if len(orders.metadata.snapshots) == 2:
            orders.append_files([file])
        return load_newest()

    monkeypatch.setattr(expiring._handle, "load_newest", after_another)
    result = expiring.expire(older_than=FUTURE)
    assert (result.deleted_data_files, result.deleted_manifests, result.failed) == (0, 1, ())
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


def test_what_progress_raises_goes_through_and_the_snapshots_are_gone(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))

    def told(_done: int, _of: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        orders.expire(older_than=FUTURE, progress=told)
    assert len(orders.refresh().metadata.snapshots) == 1


def test_progress_counts_over_all_batches(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expire, "_FILES_AT_ONCE", 2)
    orders.append(order_rows(1)).overwrite(order_rows(2))
    told: list[tuple[int, int]] = []
    orders.expire(older_than=FUTURE, progress=lambda done, of: told.append((done, of)))
    assert told == [(2, 3), (3, 3)]


def test_files_are_named_if_the_table_cannot_be_looked_at_again(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))

    def gone() -> TableMetadata:
        raise UnavailableError("no answer")

    monkeypatch.setattr(orders._handle, "load_newest", gone)
    before = data_files(orders)
    result = orders.expire(older_than=FUTURE)
    assert (len(result.failed), result.deleted_data_files) == (3, 0)
    assert data_files(orders) == before


def test_unknown_outcome_deletes_nothing(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    before = data_files(orders)
    shaky = _through(lake, FaultyStore(_store(lake), Fault.STORE_GOES_AWAY))
    with pytest.raises(CommitUnknownError):
        shaky.load_table("db.orders").expire(older_than=FUTURE)
    assert data_files(orders) == before


def test_lost_answer_expires_once(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    shaky = _through(lake, FaultyStore(_store(lake), Fault.LANDS_BUT_ANSWER_IS_LOST))
    assert shaky.load_table("db.orders").expire(older_than=FUTURE).deleted_data_files == 1
    assert ids(orders.refresh().scan().to_arrow()) == [2]


def test_partitioned_table_keeps_live_files_only(lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    table.append(order_rows(1)).append(order_rows(2, region="us"))
    table.replace_partitions(written_files(table, order_rows(3)))
    assert table.expire(older_than=FUTURE).deleted_data_files == 1
    assert ids(table.scan().to_arrow()) == [2, 3]
    assert data_files(table) == {p.file.file_path for p in table.scan().plan().files}


def _store(lake: Lake) -> object:
    assert isinstance(lake.catalog, PointerCatalog)
    return lake.catalog.store


def _through(lake: Lake, store: FaultyStore) -> Lake:
    catalog = PointerCatalog(store, lake.catalog.io, "unused", sleep=lambda _: None)
    return Lake(catalog, "lake", timing=Timing(sleep=lambda _: None))
