"""Every storage that needs no server passes the same suite."""

from pathlib import Path

import pytest

from bergline.io.fileio import FileIO
from bergline.io.local import LocalFileIO
from bergline.io.memory import MemoryFileIO
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
