"""How much expiry deletes, what it tells while it does, and what is left when it cannot, or dies."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import InvalidInputError, NotFoundError
from bergline.io.fileio import FileIO
from bergline.io.local import LocalFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.scan.manifest_cache import forget_files
from bergline.sizes import render_size
from bergline.table.expiry.retention import CleanupLevel
from bergline.testing.crashes import Crash, CrashingFileIO, Steps
from support.fixtures.catalog_backends import MemoryBackend
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing

pytestmark = pytest.mark.long


FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def overwritten(orders: Table) -> Table:
    """Two snapshots, of which the first has a data file, a manifest and a list of its own."""
    return orders.append(order_rows(1)).overwrite(order_rows(2))


def files(table: Table) -> set[str]:
    return {f for f in table.io.list(table.location) if not f.endswith(".metadata.json")}


@pytest.mark.parametrize(
    ("level", "data", "of_metadata"),
    [
        ("all", 1, 2),
        ("ALL", 1, 2),
        (CleanupLevel.ALL, 1, 2),
        ("metadata", 0, 2),
        ("METADATA_ONLY", 0, 2),
        ("none", 0, 0),
    ],
)
def test_level_says_what_is_deleted(overwritten: Table, level: str, data: int, of_metadata: int) -> None:
    before = files(overwritten)
    result = overwritten.expire(older_than=FUTURE, level=level)
    assert len(result.removed_snapshots) == 1
    assert result.deleted_data_files == data
    assert result.deleted_manifests + result.deleted_manifest_lists == of_metadata
    gone = before - files(overwritten)
    assert len([f for f in gone if f.endswith(".parquet")]) == data
    assert len([f for f in gone if f.endswith(".avro")]) == of_metadata
    assert ids(overwritten.scan().to_arrow()) == [2]


@pytest.mark.parametrize("level", ["some", "", None, 5])
def test_another_level_is_refused(overwritten: Table, level: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a level of all, metadata or none"):
        overwritten.expire(older_than=FUTURE, level=level)  # type: ignore[arg-type]
    assert len(overwritten.refresh().metadata.snapshots) == 2


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_threads_are_a_number_from_one_on(overwritten: Table, threads: object) -> None:
    with pytest.raises(InvalidInputError, match="threads"):
        overwritten.expire(threads=threads)  # type: ignore[arg-type]


@pytest.mark.parametrize("inside", [False, True])
def test_dry_run_says_what_would_go_and_changes_nothing(overwritten: Table, inside: bool) -> None:
    before, there = overwritten.metadata_location, files(overwritten)
    if inside:
        with overwritten.transaction() as tx:
            tx.append(order_rows(3))
            told = tx.expire(older_than=FUTURE, dry_run=True)
            assert len(told.removed_snapshots) == 2
        assert len(overwritten.metadata.snapshots) == 3
        return
    told = overwritten.expire(older_than=FUTURE, dry_run=True)
    assert overwritten.refresh().metadata_location == before
    assert files(overwritten) == there
    assert told == overwritten.expire(older_than=FUTURE)


def test_dry_run_sees_what_others_committed(lake: Lake, overwritten: Table) -> None:
    lake.load_table("db.orders").append(order_rows(3))
    assert len(overwritten.expire(older_than=FUTURE, dry_run=True).removed_snapshots) == 2


def test_progress_is_told_until_all_is_done(overwritten: Table) -> None:
    told: list[tuple[int, int]] = []
    overwritten.expire(older_than=FUTURE, progress=lambda done, of: told.append((done, of)))
    assert told == [(3, 3)]


def test_the_result_is_printed_in_a_line(overwritten: Table) -> None:
    sizes = {f: Path(f.removeprefix("file://")).stat().st_size for f in files(overwritten)}
    overwritten.refs.create_tag("old", at=overwritten.metadata.snapshots[0].snapshot_id, max_ref_age_ms=1)
    result = overwritten.expire(older_than=FUTURE)
    gone = sum(size for f, size in sizes.items() if f not in files(overwritten) and "snap-" not in f)
    assert (result.deleted_files, result.deleted_bytes) == (3, gone)
    assert str(result) == (
        f"removed: 1 snapshot, ref `old`; deleted: 3 files of {render_size(gone)} "
        "(1 data files, 1 manifests, 1 manifest lists)"
    )
    assert str(overwritten.expire(older_than=FUTURE)) == "removed: 0 snapshots; deleted: 0 files of 0 B"


def test_level_none_goes_past_a_manifest_that_is_missing(overwritten: Table) -> None:
    first = overwritten.metadata.snapshots[0]
    (manifest,) = (f for f in files(overwritten) if f.endswith("-m0.avro") and _commit(first.manifest_list) in f)
    Path(manifest.removeprefix("file://")).unlink()
    with pytest.raises(NotFoundError, match="nothing was changed or deleted: no file") as caught:
        overwritten.expire(older_than=FUTURE)
    assert caught.value.name == manifest
    assert caught.value.hints == ('`level="none"` reads no manifests, and deletes no files',)
    assert len(overwritten.refresh().metadata.snapshots) == 2
    there = files(overwritten)
    assert len(overwritten.expire(older_than=FUTURE, level="none").removed_snapshots) == 1
    assert files(overwritten) == there


def _commit(manifest_list: str | None) -> str:
    return "-".join((manifest_list or "").rsplit("/", 1)[-1].removesuffix(".avro").split("-")[3:])


class StubbornIO(LocalFileIO):
    """Deletes no Parquet files."""

    def delete(self, locations: Iterable[str]) -> list[str]:
        given = list(locations)
        kept = [f for f in given if f.endswith(".parquet")]
        return kept + super().delete([f for f in given if f not in kept])


def test_what_cannot_be_deleted_is_told_and_not_counted(lake: Lake, overwritten: Table) -> None:
    stubborn = _through(lake, SchemeFileIO({"file": StubbornIO()}))
    result = stubborn.load_table("db.orders").expire(older_than=FUTURE)
    assert (result.deleted_data_files, result.deleted_manifests) == (0, 1)
    (left,) = result.failed
    assert left.endswith(".parquet")
    assert left in files(overwritten)


def _through(lake: Lake, io: FileIO) -> Lake:
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    return Lake(PointerCatalog(catalog.store, io, "unused"), "lake")


def test_a_process_that_dies_at_any_step_leaves_a_table_that_can_be_read() -> None:
    crash_at, finished = 0, False
    while not finished:
        crash_at += 1
        place = MemoryBackend()
        lake = Lake(PointerCatalog(place.store(), place.io(), place.warehouse), "lake")
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS)
        table.append(order_rows(1)).append(order_rows(2), branch="dev").overwrite(order_rows(3)).overwrite(
            order_rows(4)
        )
        forget_files()
        dying = CrashingFileIO(place.io(), Steps(crash_at))
        mortal = Lake(PointerCatalog(place.store(), dying, place.warehouse), "lake")
        try:
            mortal.load_table("db.t").expire(older_than=FUTURE)
            finished = True
        except Crash:
            pass
        check_nothing_is_missing(table.refresh())
        assert ids(table.scan().to_arrow()) == [4]
        assert ids(table.scan(ref="dev").to_arrow()) == [1, 2]
    assert crash_at > 15
    assert len(table.metadata.snapshots) == 2
