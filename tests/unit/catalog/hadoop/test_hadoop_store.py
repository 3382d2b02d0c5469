"""Pointers by version files on local disk."""

import errno
from pathlib import Path

import pytest

import bergline
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.errors import InvalidInputError, StorageError, UnavailableError, UnsupportedError
from bergline.io.directories import LocalDirectories
from bergline.io.local import LocalFileIO
from bergline.testing.pointer_store_suite import ORDERS, PointerStoreSuite
from support.fixtures.concurrency import run_for_each


def open_store(directory: Path, io: LocalFileIO | None = None) -> HadoopPointerStore:
    return HadoopPointerStore(io or LocalFileIO(), LocalDirectories(), f"file://{directory}")


class OnDisk:
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self._warehouse = tmp_path / "wh"

    def make_store(self) -> PointerStore:
        return open_store(self._warehouse)


class TestVersionHintStore(OnDisk, PointerStoreSuite):
    pass


def test_one_of_many_drops_wins(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create(ORDERS, store.stage(ORDERS, None, b"1"))
    winners = []

    def race(own: HadoopPointerStore) -> None:
        if own.drop(ORDERS):
            winners.append(own)

    run_for_each(race, [open_store(tmp_path) for _ in range(8)])
    assert len(winners) == 1
    assert store.read(ORDERS) is None


def test_full_or_read_only_disk_changes_nothing_and_says_so(tmp_path: Path) -> None:
    class Full(LocalFileIO):
        def create(self, location: str, data: bytes) -> None:
            raise StorageError(f"cannot write {location}: No space left on device") from OSError(errno.ENOSPC, "full")

    store = open_store(tmp_path)
    store.create(ORDERS, first := store.stage(ORDERS, None, b"1"))
    full = open_store(tmp_path, Full())
    with pytest.raises(UnavailableError, match="No space left"):
        full.swap(ORDERS, first, full.stage(ORDERS, first, b"2"))
    assert store.read(ORDERS) == first


@pytest.mark.parametrize("uri", ["file:wh", "file:", "version-hint:wh", "version-hint:", "version-hint:memory://x"])
def test_uri_that_names_no_directory_is_refused(uri: str) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError), match="expected"):
        bergline.connect(uri, create=True)


@pytest.mark.parametrize("name", ["a/b", ".", "..", ".hidden", "x" * 256, "a\nb", "\ud800"])
def test_name_that_no_directory_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a name"):
        open_store(tmp_path).create_namespace((name,), {})
