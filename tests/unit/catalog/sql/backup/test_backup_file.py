"""The file of a backup: whole, or refused."""

import gzip
import os
import stat
from pathlib import Path

import pytest

from bergline.catalog.sql.backup.backup_file import (
    VERSION,
    BackupHeader,
    BackupReader,
    BackupSummary,
    BackupTable,
    BackupWriter,
)
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    FormatError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)

HEADER = BackupHeader(VERSION, "lake", 6, 1_700_000_000_000, "bergline 1")
T, U = BackupTable("t", ("a", "b")), BackupTable("u", ("c",))
ROWS = [(1, "x"), (2, None), (3, "ü\n")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lake.backup"
    with BackupWriter(str(path), HEADER) as writer:
        writer.begin(T)
        writer.add(ROWS)
        writer.begin(U)
    return path


def read(path: Path) -> BackupSummary:
    with BackupReader(str(path)) as reader:
        assert list(reader.rows()) == [(T, list(row)) for row in ROWS]
        return reader.summary


def rewrite(path: Path, old: bytes, new: bytes) -> None:
    """Change what is in the file; its gzip is right."""
    text = gzip.decompress(path.read_bytes())
    assert old in text
    path.write_bytes(gzip.compress(text.replace(old, new)))


def test_backup_is_read_as_it_was_written(file: Path) -> None:
    summary = read(file)
    assert (summary.header, summary.rows) == (HEADER, {"t": 3, "u": 0})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [f.name for f in file.parent.iterdir()] == ["lake.backup"]


def test_every_truncation_and_every_changed_byte_is_noticed(file: Path) -> None:
    whole = file.read_bytes()
    harmless = {4, 5, 6, 7, 8, 9}  # time and system in the header of gzip
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"damaged|expected a backup"):
            read(file)
    for place in set(range(len(whole))) - harmless:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(FormatError):
            read(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'[1,"x"]', b'[1,"y"]', "do not match its checksum"),
        (b"[2,null]\n", b"", "do not match its checksum"),
        (b"[2,null]", b"[2]", "columns of its table"),
        (b'{"table":"u"', b'{"table":"t"', "there twice"),
        (b"[2,null]", b"[2,", "damaged"),
        (b'"made-ms":1700000000000', b'"made-ms":"now"', "damaged"),
    ],
)
def test_changed_contents_are_noticed(file: Path, old: bytes, new: bytes, message: str) -> None:
    rewrite(file, old, new)
    with pytest.raises(FormatError, match=message):
        read(file)


def test_what_follows_the_end_is_noticed(file: Path) -> None:
    file.write_bytes(file.read_bytes() + gzip.compress(b"[4]\n"))
    with pytest.raises(FormatError, match="follows its last line"):
        read(file)


@pytest.mark.parametrize(
    "data", [b"", b"PK", *(gzip.compress(text, mtime=0) for text in (b"hello\n", b"[1]\n", b"\xff\n"))]
)
def test_other_files_are_no_backup(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(FormatError, match="expected a backup of a catalog, found another file"):
        read(tmp_path / "f")


def test_newer_format_is_refused(file: Path) -> None:
    rewrite(file, b'"bergline-backup":1', b'"bergline-backup":2')
    with pytest.raises(UnsupportedError, match="expected a backup of format 1, found format 2"):
        read(file)


def test_places_without_a_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        read(tmp_path / "missing")
    with pytest.raises(StorageError, match="directory"):
        read(tmp_path)
    with pytest.raises(NotFoundError, match="cannot write"), BackupWriter(str(tmp_path / "no" / "f"), HEADER):
        pass


def test_no_file_is_replaced(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(AlreadyExistsError, match="replaces no file"), BackupWriter(str(file), HEADER):
        pass
    assert file.read_bytes() == before


def test_failed_backup_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BerglineError), BackupWriter(str(tmp_path / "f"), HEADER) as writer:  # noqa: PT012
        writer.begin(T)
        raise StorageError("the database is gone")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("links", [False, True])
def test_backup_is_not_written_into_a_file_that_somebody_put_there(tmp_path: Path, links: bool) -> None:
    theirs, path = tmp_path / "theirs", tmp_path / "lake.backup"
    theirs.write_text("")
    partial = tmp_path / f"lake.backup.{os.getpid()}.partial"
    if links:
        partial.symlink_to(theirs)
    else:
        partial.write_text("")
        partial.chmod(0o666)
    with BackupWriter(str(path), HEADER):
        assert stat.S_IMODE(partial.lstat().st_mode) == 0o600
    assert (theirs.read_text(), path.is_symlink(), stat.S_IMODE(path.stat().st_mode)) == ("", False, 0o600)
