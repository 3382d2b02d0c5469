"""Every storage that needs no server passes the same suite."""

from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from bergline.io.fileio import FileIO
from bergline.io.local import LocalFileIO
from bergline.io.memory import MemoryFileIO
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.open_store import OpenStore
from bergline.testing.file_io_suite import FileIOSuite


class TestLocalFileIO(FileIOSuite):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self._directory = f"{tmp_path}/ware house"

    def make_io(self) -> FileIO:
        return LocalFileIO()

    def make_directory(self) -> str:
        return self._directory


class TestMemoryFileIO(FileIOSuite):
    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self._io = MemoryFileIO()

    def make_io(self) -> FileIO:
        return self._io

    def make_directory(self) -> str:
        return "memory://warehouse"


class TestObjectStoreFileIO(FileIOSuite):
    """On the client's own store in memory; `tests/s3` has the same on a real server."""

    large = 40 * 1024 * 1024 + 17

    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self._io = ObjectStoreFileIO()
        bucket = MemoryStore()
        self._io._stores["s3", "bucket"] = OpenStore(obstore, bucket, bucket)

    def make_io(self) -> FileIO:
        return self._io

    def make_directory(self) -> str:
        return "s3://bucket/ware house"
