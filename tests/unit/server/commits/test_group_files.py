"""Files of commits that are made together: read ahead, written side by side, waited for by those who need them."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import AlreadyExistsError, NotFoundError
from bergline.io.memory import MemoryFileIO
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_manifest_list
from bergline.server.commits.group_files import GroupFiles
from support.fixtures.rows import ORDERS, order_rows

LONG_S = 60.0


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def table() -> Iterator[Table]:
    with Lake(PointerCatalog(MemoryPointerStore(), MemoryFileIO(), "memory://warehouse"), "lake") as lake:
        lake.create_namespace("db")
        made = lake.create_table("db.orders", ORDERS)
        made.append(order_rows(1))
        made.append(order_rows(2))
        yield made


class MeetingFiles(MemoryFileIO):
    """A storage in which as many writers must meet before one of them ends."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._barrier = threading.Barrier(number)

    def create(self, location: str, data: bytes) -> None:
        self._barrier.wait(LONG_S)
        super().create(location, data)


def test_files_are_written_side_by_side(threads: ThreadPoolExecutor) -> None:
    io = MeetingFiles(3)
    files = GroupFiles(io, threads)
    names = [f"memory://w/{n}.avro" for n in range(3)]
    for name in names:
        files.create(name, name.encode())
    files.finish(names)
    assert [io.read(name) for name in names] == [name.encode() for name in names]


def test_file_that_cannot_be_written_is_an_error_for_who_waits_for_it(threads: ThreadPoolExecutor) -> None:
    io = MemoryFileIO()
    io.create("memory://w/taken.avro", b"other")
    files = GroupFiles(io, threads)
    files.create("memory://w/taken.avro", b"mine")
    files.create("memory://w/free.avro", b"mine")
    files.finish(["memory://w/free.avro"])
    with pytest.raises(AlreadyExistsError):
        files.finish(["memory://w/taken.avro"])
    assert io.read("memory://w/taken.avro") == b"other"


class SlowFiles(MemoryFileIO):
    """A storage that takes its time to write."""

    def create(self, location: str, data: bytes) -> None:
        time.sleep(0.1)
        super().create(location, data)


def test_files_are_deleted_once_they_are_written(threads: ThreadPoolExecutor) -> None:
    io = SlowFiles()
    files = GroupFiles(io, threads)
    files.create("memory://w/mine.avro", b"mine")
    assert files.delete(["memory://w/mine.avro", "memory://w/never.avro"]) == []
    threads.shutdown()
    assert io.list("memory://w") == []


def test_own_manifests_of_a_snapshot_are_read_ahead(table: Table, threads: ThreadPoolExecutor) -> None:
    head = table.metadata.head("main")
    assert head is not None
    own, older = load_manifest_list(table.io, head)
    forget_files()
    files = GroupFiles(table.io, threads)
    files.read_ahead(table.metadata, [head])
    kept = table.io.read(own.manifest_path)
    table.io.delete([own.manifest_path, older.manifest_path])
    assert files.read(own.manifest_path) == kept
    with pytest.raises(NotFoundError):
        files.read(older.manifest_path)


def test_what_cannot_be_read_ahead_is_said_later(table: Table, threads: ThreadPoolExecutor) -> None:
    head = table.metadata.head("main")
    assert head is not None
    own, _ = load_manifest_list(table.io, head)
    table.io.delete([own.manifest_path])
    files = GroupFiles(table.io, threads)
    files.read_ahead(table.metadata, [head])
    with pytest.raises(NotFoundError):
        files.read(own.manifest_path)


def test_local_files_are_read_when_they_are_needed(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        head = table.metadata.head("main")
        assert head is not None
        files = GroupFiles(table.io, threads)
        files.read_ahead(table.metadata, [head])
        assert head.manifest_list is not None
        table.io.delete([head.manifest_list])
        with pytest.raises(NotFoundError):
            files.read(head.manifest_list)
