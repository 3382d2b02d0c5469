"""The file of a backup: lines of JSON in gzip, of which the last has the count of all rows and a checksum.

The first line says what it is. A line that is an object begins a table and names its columns; lists are its rows.
"""

import contextlib
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar

import msgspec

from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    FormatError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)

VERSION = 1
_LEVEL = 4
_LONGEST_LINE = 64 * 1024 * 1024
_ENCODER = msgspec.json.Encoder()
BackupRow = Sequence[Any]
_Line = TypeVar("_Line")


class BackupHeader(msgspec.Struct, frozen=True, rename="kebab"):
    """What a backup is of, and when it was made."""

    bergline_backup: int
    """The version of the file's format."""
    catalog: str
    layout: int
    """The version of the database's layout; 0 for one that bergline has never changed."""
    made_ms: int
    made_by: str


class BackupSummary(msgspec.Struct, frozen=True):
    """A backup that is whole: its header, its rows by table, and its checksum."""

    header: BackupHeader
    rows: dict[str, int]
    sha256: str


class BackupTable(NamedTuple):
    """A table whose rows follow, and its columns."""

    name: str
    columns: tuple[str, ...]


class _TableLine(msgspec.Struct, frozen=True):
    table: str
    columns: tuple[str, ...]


class _EndLine(msgspec.Struct, frozen=True):
    rows: dict[str, int]
    sha256: str


class BackupWriter:
    """Writes a backup to a file that appears under its name once it is whole; only its owner may read it."""

    def __init__(self, path: str, header: BackupHeader) -> None:
        self._path = path
        self._partial = f"{path}.{os.getpid()}.partial"
        self._header = header
        self._digest = hashlib.sha256()
        self._rows: dict[str, int] = {}
        self._table = ""

    def __enter__(self) -> Self:
        if os.path.lexists(self._path):
            raise AlreadyExistsError(f"`{self._path}` exists: a backup replaces no file", kind="file", name=self._path)
        with _failing("write", self._path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._partial)  # what is left of another, or what others put there
            descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._raw: BinaryIO = os.fdopen(descriptor, "wb")
        self._stream = gzip.GzipFile("", "wb", _LEVEL, self._raw, mtime=0)
        try:
            self._write(_ENCODER.encode(self._header) + b"\n")
        except BaseException:
            self._let_go()
            raise
        return self

    def begin(self, table: BackupTable) -> None:
        """Begin the rows of a table."""
        self._table = table.name
        self._rows[table.name] = 0
        self._write(_ENCODER.encode(_TableLine(table.name, table.columns)) + b"\n")

    def add(self, rows: Sequence[BackupRow]) -> None:
        """Add rows to the table that was begun last."""
        self._rows[self._table] += len(rows)
        self._write(_ENCODER.encode_lines(rows))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._let_go()

    def summary(self) -> BackupSummary:
        """What was written."""
        return BackupSummary(self._header, dict(self._rows), self._digest.hexdigest())

    def _finish(self) -> None:
        end = _EndLine(self._rows, self._digest.hexdigest())
        with _failing("write", self._path):
            self._stream.write(_ENCODER.encode(end) + b"\n")
            self._stream.close()
            self._raw.flush()
            os.fsync(self._raw.fileno())
            os.replace(self._partial, self._path)

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()
        with contextlib.suppress(OSError):
            self._raw.close()
        with contextlib.suppress(OSError):
            os.unlink(self._partial)

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        with _failing("write", self._path):
            self._stream.write(data)


class BackupReader:
    """Reads a backup line by line; FormatError if it is damaged, at the latest at its end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._digest = hashlib.sha256()
        self._counts: dict[str, int] = {}
        self._summary: BackupSummary | None = None

    def __enter__(self) -> Self:
        with _failing("read", self._path):
            self._file = open(self._path, "rb")
        self._stream = gzip.GzipFile(fileobj=self._file, mode="rb")
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def position(self) -> int:
        """How many of them are read."""
        return self._file.tell()

    @property
    def summary(self) -> BackupSummary:
        """The summary of a backup that was read to its end."""
        assert self._summary is not None  # noqa: S101
        return self._summary

    def rows(self) -> Iterator[tuple[BackupTable, list[Any]]]:
        """All rows, each with its table; the summary is there once they are read."""
        table: BackupTable | None = None
        while True:
            line, read_before = self._line()
            found = self._decoded(line)
            if isinstance(found, list):
                if table is None or len(found) != len(table.columns):
                    raise self._damaged("a row does not have the columns of its table")
                self._counts[table.name] += 1
                yield table, found
            elif isinstance(found, dict) and "sha256" in found:
                self._end(self._converted(found, _EndLine), read_before)
                return
            else:
                begun = self._converted(found, _TableLine)
                if begun.table in self._counts:
                    raise self._damaged(f"the table `{begun.table}` is there twice")
                table = BackupTable(begun.table, begun.columns)
                self._counts[table.name] = 0

    def _read_header(self) -> BackupHeader:
        try:
            line, _ = self._line()
            found = msgspec.json.decode(line)
            version = found["bergline-backup"]
        except UnsupportedError:
            raise
        except (BerglineError, msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError) as error:
            if isinstance(error, StorageError):
                raise
            raise FormatError(f"expected a backup of a catalog, found another file at `{self._path}`") from error
        if version != VERSION:
            raise UnsupportedError(
                f"expected a backup of format {VERSION}, found format {version} at `{self._path}`",
                hints=["a newer bergline made it: restore it with that one"],
            )
        return self._converted(found, BackupHeader)

    def _line(self) -> tuple[bytes, str]:
        """The next line, and the checksum of all before it."""
        try:
            line = self._stream.readline(_LONGEST_LINE)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._damaged(str(error)) from error
        except OSError as error:
            raise StorageError(f"cannot read `{self._path}`: {error.strerror or error}") from error
        if not line.endswith(b"\n"):
            raise self._damaged("it ends before its last line" if len(line) < _LONGEST_LINE else "a line is too long")
        before = self._digest.hexdigest() if line.startswith(b"{") else ""
        self._digest.update(line)
        return line, before

    def _end(self, end: _EndLine, sha256: str) -> None:
        try:
            more = self._stream.read(1)
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(str(error)) from error
        if more:
            raise self._damaged("something follows its last line")
        if end.sha256 != sha256 or end.rows != self._counts:
            raise self._damaged("its rows do not match its checksum")
        self._summary = BackupSummary(self.header, self._counts, sha256)

    def _decoded(self, line: bytes) -> object:
        try:
            return msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from error

    def _converted(self, value: object, kind: type[_Line]) -> _Line:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, why: str) -> FormatError:
        what = why[:1].lower() + why[1:]
        return FormatError(
            f"cannot read the backup at `{self._path}`, it is damaged: {what}",
            hints=["nothing was changed; use another copy of it"],
        )


@contextlib.contextmanager
def _failing(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"cannot {verb} `{path}`: no such file or directory", kind="file", name=path) from error
    except OSError as error:
        raise StorageError(f"cannot {verb} `{path}`: {error.strerror or error}") from error
