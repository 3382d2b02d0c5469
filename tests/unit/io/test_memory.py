"""Files in memory."""

import pytest

from bergline.errors import AlreadyExistsError, NotFoundError
from bergline.io.fileio import FileIO
from bergline.io.memory import MemoryFileIO
from bergline.testing.file_io_suite import FileIOSuite


@pytest.fixture
def files() -> MemoryFileIO:
    files = MemoryFileIO()
    files.create("memory:/a", b"old")
    return files


def test_create_never_overwrites(files: MemoryFileIO) -> None:
    with pytest.raises(AlreadyExistsError):
        files.create("memory:/a", b"new")
    with pytest.raises(AlreadyExistsError):
        files.create_output("memory:/a")
    assert files.read("memory:/a") == b"old"


def test_missing_file_is_not_found(files: MemoryFileIO) -> None:
    with pytest.raises(NotFoundError, match="no file memory:/none"):
        files.open_input("memory:/none")
    assert not files.exists("memory:/none")


def test_output_is_visible_only_after_close(files: MemoryFileIO) -> None:
    output = files.create_output("memory:/b")
    output.stream().write(b"abc")
    assert not files.exists("memory:/b")
    assert output.close() == 3
    assert files.open_input("memory:/b").read() == b"abc"


@pytest.mark.parametrize("closed", [False, True])
def test_abort_removes_the_object_and_may_be_repeated(files: MemoryFileIO, closed: bool) -> None:
    output = files.create_output("memory:/b")
    if closed:
        output.close()
    output.abort()
    output.abort()
    assert files.list("memory:/") == ["memory:/a"]


def test_abort_of_the_loser_keeps_the_object_of_the_winner(files: MemoryFileIO) -> None:
    first, second = files.create_output("memory:/b"), files.create_output("memory:/b")
    first.stream().write(b"first")
    first.close()
    with pytest.raises(AlreadyExistsError):
        second.close()
    second.abort()
    assert files.read("memory:/b") == b"first"


def test_list_is_below_a_directory_only(files: MemoryFileIO) -> None:
    for name in ("memory:/dir/x", "memory:/dir/y/z", "memory:/directory"):
        files.create(name, b"")
    assert files.list("memory:/dir") == ["memory:/dir/x", "memory:/dir/y/z"]


def test_delete_takes_missing_files_for_deleted(files: MemoryFileIO) -> None:
    assert files.delete(["memory:/a", "memory:/none"]) == []
    assert not files.exists("memory:/a")


class TestMemoryFileIO(FileIOSuite):
    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self._io = MemoryFileIO()

    def make_io(self) -> FileIO:
        return self._io

    def make_directory(self) -> str:
        return "memory://warehouse"
