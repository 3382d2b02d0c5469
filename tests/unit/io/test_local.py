"""Files on local disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from bergline.io.fileio import FileIO
from bergline.io.local import (
    LocalFileIO,
    make_durable_directory,
    move_file,
    remove_directory,
    sync_directories,
    sync_file,
)
from bergline.testing.file_io_suite import FileIOSuite

IO = LocalFileIO()


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.rglob("*") if p.is_file())


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_what_is_created_can_be_read_under_any_spelling(tmp_path: Path, prefix: str) -> None:
    location = f"{prefix}{tmp_path}/deep/er/f"
    IO.create(location, b"abc")
    assert IO.read(location) == b"abc"
    assert IO.exists(location)
    assert names(tmp_path) == ["f"]


def test_file_is_read_without_allocating_what_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100)
    assert LocalFileIO().read(str(path), 2**50) == b"x" * 100  # so much memory nobody has


def test_create_never_overwrites(tmp_path: Path) -> None:
    location = f"{tmp_path}/f"
    IO.create(location, b"old")
    with pytest.raises(AlreadyExistsError) as caught:
        IO.create(location, b"new")
    assert caught.value.name == location
    assert IO.read(location) == b"old"
    assert names(tmp_path) == ["f"]


def test_create_over_a_directory_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    with pytest.raises(AlreadyExistsError):
        IO.create(f"{tmp_path}/f", b"new")
    assert names(tmp_path) == []


@pytest.mark.parametrize("below", ["x", "deep/er/x"])
def test_create_below_a_regular_file_is_a_storage_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(StorageError, match="cannot write"):
        IO.create(f"{tmp_path}/f/{below}", b"new")
    with pytest.raises(StorageError, match="cannot write"):
        IO.create_output(f"{tmp_path}/f/{below}")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


def test_name_that_is_too_long_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        IO.create(f"{tmp_path}/{'x' * 300}", b"new")
    assert names(tmp_path) == []


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file"):
        IO.read(f"{tmp_path}/none")
    with pytest.raises(NotFoundError, match="no file"):
        IO.open_input(f"{tmp_path}/none")
    assert not IO.exists(f"{tmp_path}/none")


def test_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        IO.read(str(tmp_path))
    assert not IO.exists(str(tmp_path))


def test_location_of_another_scheme_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="found `s3://b/x`"):
        IO.read("s3://b/x")


def test_input_can_be_read_from_anywhere(tmp_path: Path) -> None:
    IO.create(f"{tmp_path}/f", b"abcdef")
    with IO.open_input(f"{tmp_path}/f") as stream:
        stream.seek(-2, os.SEEK_END)
        assert stream.read() == b"ef"


def test_output_counts_its_bytes(tmp_path: Path) -> None:
    output = IO.create_output(f"{tmp_path}/deep/f")
    output.stream().write(b"ab")
    output.stream().write(b"c")
    assert output.stream().tell() == 3
    assert output.close() == 3
    assert IO.read(f"{tmp_path}/deep/f") == b"abc"


def test_output_never_overwrites(tmp_path: Path) -> None:
    IO.create(f"{tmp_path}/f", b"old")
    with pytest.raises(AlreadyExistsError):
        IO.create_output(f"{tmp_path}/f")
    assert IO.read(f"{tmp_path}/f") == b"old"


@pytest.mark.parametrize("closed", [False, True])
def test_abort_removes_the_file_and_may_be_repeated(tmp_path: Path, closed: bool) -> None:
    output = IO.create_output(f"{tmp_path}/f")
    output.stream().write(b"abc")
    if closed:
        output.close()
    output.abort()
    output.abort()
    assert names(tmp_path) == []


def test_delete_returns_what_could_not_be_deleted(tmp_path: Path) -> None:
    IO.create(f"{tmp_path}/a", b"")
    (tmp_path / "dir").mkdir()
    assert IO.delete([f"{tmp_path}/a", f"{tmp_path}/missing", f"{tmp_path}/dir"]) == [f"{tmp_path}/dir"]
    assert not IO.exists(f"{tmp_path}/a")


def test_list_gives_every_depth(tmp_path: Path) -> None:
    for name in ("b", "a/c", "a/d/e"):
        IO.create(f"{tmp_path}/{name}", b"")
    assert IO.list(str(tmp_path)) == [f"file://{tmp_path}/{n}" for n in ("a/c", "a/d/e", "b")]
    assert IO.list(f"{tmp_path}/none") == []


def test_directory_that_cannot_be_read_is_an_error_and_no_empty_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked").mkdir()

    def scandir(path: str) -> Any:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    real = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(StorageError, match=r"cannot list .*: Permission denied"):
        IO.list(str(tmp_path))


def test_file_is_no_directory_and_has_nothing_below(tmp_path: Path) -> None:
    IO.create(f"{tmp_path}/f", b"")
    assert IO.list(f"{tmp_path}/f") == []
    assert not IO.exists(f"{tmp_path}/f/x")


@pytest.mark.parametrize("location", ["/a\0b", "file:///a\0b", "/a\ud800b"])
def test_text_that_is_no_path_is_refused(location: str) -> None:
    for use in (IO.read, IO.open_input, IO.exists, IO.list, IO.create_output, lambda place: IO.delete([place])):
        with pytest.raises(InvalidInputError, match="expected a location"):
            use(location)


def test_new_directories_are_durable_before_what_comes_into_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    IO.create(f"{tmp_path}/a/b/f", b"x")
    places = [tmp_path, tmp_path / "a", tmp_path / "a/b/f", tmp_path / "a/b"]
    assert synced == [place.stat().st_ino for place in places]


def test_endless_path_is_a_storage_error_and_nothing_of_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        IO.create(f"{tmp_path}{'/a' * 5000}", b"")
    assert list(tmp_path.iterdir()) == []


class TestLocalFileIO(FileIOSuite):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self._directory = f"{tmp_path}/ware house"

    def make_io(self) -> FileIO:
        return LocalFileIO()

    def make_directory(self) -> str:
        return self._directory


def test_file_of_another_process_is_moved_into_a_new_directory(tmp_path: Path) -> None:
    source, location = tmp_path / "job" / "part-0", f"file://{tmp_path}/data/a=1/b=2/file"
    make_durable_directory(str(source.parent))
    source.write_bytes(b"rows")
    sync_file(str(source))
    assert move_file(f"file://{source}", location) == 4
    sync_directories([f"{tmp_path}/data/a=1/b=2"])
    assert LocalFileIO().read(location) == b"rows"
    with pytest.raises(NotFoundError, match="part-0"):
        sync_file(str(source))
    remove_directory(str(source.parent))
    assert not source.parent.exists()
