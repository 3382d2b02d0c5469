"""Directories on local disk; those of object stores are tested on a real server in tests/s3."""

from pathlib import Path

import pytest

from bergline.errors import StorageError, UnsupportedError
from bergline.io.directories import Entries, LocalDirectories, directories_for


@pytest.fixture
def directories() -> LocalDirectories:
    return LocalDirectories()


def test_entries_are_those_of_one_level(directories: LocalDirectories, tmp_path: Path) -> None:
    (tmp_path / "b/deep").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    for name in ("z", ".hidden", "b/deep/file"):
        (tmp_path / name).touch()
    assert directories.entries(f"file://{tmp_path}") == Entries(["a", "b"], [".hidden", "z"])
    assert directories.entries(str(tmp_path / "a")) == Entries([], [])


def test_what_is_no_directory_has_no_entries(directories: LocalDirectories, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("none", "file", "file/below"):
        assert directories.entries(f"file://{tmp_path}/{name}") is None


def test_directory_is_made_with_those_above_it(directories: LocalDirectories, tmp_path: Path) -> None:
    assert directories.make(f"file://{tmp_path}/a/b")
    assert directories.make(f"file://{tmp_path}/a/b")
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot make directory"):
        directories.make(f"file://{tmp_path}/file/below")


def test_only_empty_directories_are_removed(directories: LocalDirectories, tmp_path: Path) -> None:
    directories.make(f"{tmp_path}/a/b")
    assert not directories.remove(f"{tmp_path}/a")
    assert directories.remove(f"{tmp_path}/a/b")
    assert directories.remove(f"{tmp_path}/a")
    assert directories.remove(f"{tmp_path}/none")


def test_other_schemes_have_no_directories() -> None:
    with pytest.raises(UnsupportedError, match="expected a directory on disk or in an object store"):
        directories_for("memory://x", {})
