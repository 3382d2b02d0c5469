"""Files on local disk: created atomically, never overwritten, and durable before success is reported."""

import contextlib
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from bergline.errors import AlreadyExistsError, NotFoundError, StorageError
from bergline.io.fileio import ListedFile, check_range, check_size
from bergline.io.locations import local_path, scheme_of

_KEPT_OF_NAME = 200  # of 255 bytes, so that a temporary name fits and still shows its target
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.")


class LocalFileIO:
    """FileIO for `file:` locations and bare paths."""

    def read(self, location: str, most: int | None = None) -> bytes:
        with self.open_input(location) as stream, _storage_errors("read", location):
            size = os.fstat(stream.fileno()).st_size
            check_size(location, size, most)
            data = stream.read(size + 1)  # read() allocates as much memory as it is asked for
            if len(data) > size:  # the file is growing, or has no size, like a pipe
                data += stream.read(-1 if most is None else most + 1 - len(data))
            check_size(location, len(data), most)
            return data

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        with self.open_input(location) as stream, _storage_errors("read", location):
            check_range(location, offset, length, os.fstat(stream.fileno()).st_size)
            stream.seek(offset)
            data = stream.read(length)
            check_range(location, offset, length, offset + len(data))  # the file may have shrunk
            return data

    def open_input(self, location: str) -> BinaryIO:
        with _storage_errors("read", location):
            return open(local_path(location), "rb")

    def create(self, location: str, data: bytes) -> None:
        """Write to a temporary name, then link it into place: readers see the complete file or nothing."""
        path = local_path(location)
        directory = os.path.dirname(path)
        temporary = os.path.join(directory, f".{uuid.uuid4().hex}.tmp")
        with _storage_errors("write", location):
            _make_directory(directory, location)
            try:
                with open(temporary, "xb") as stream:
                    stream.write(data)
                    _sync(stream)
                _link(temporary, path)
            finally:
                with contextlib.suppress(OSError):  # hidden; removed with orphan files
                    os.unlink(temporary)
            _sync_directory(directory)

    def create_output(self, location: str) -> "LocalOutputFile":
        """A new file, under a temporary name until it is closed."""
        with _storage_errors("write", location):
            path = local_path(location)
            _make_directory(os.path.dirname(path), location)
            if os.path.lexists(path):
                raise FileExistsError(path)
            return LocalOutputFile(location, path)

    def exists(self, location: str) -> bool:
        path = local_path(location)
        try:
            return stat.S_ISREG(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StorageError(f"cannot read {location}: {error.strerror or error}") from error

    def delete(self, locations: Iterable[str]) -> list[str]:
        failed = []
        for location in locations:
            try:
                os.unlink(local_path(location))
            except FileNotFoundError:
                continue
            except OSError:
                failed.append(location)
        return failed

    def list(self, prefix: str) -> list[str]:
        found: list[str] = []
        with _storage_errors("list", prefix):
            for directory, _, names in os.walk(local_path(prefix), onerror=_unless_missing):
                found += (f"file://{os.path.join(directory, name)}" for name in names)
        return sorted(found)

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        """All files below a directory, one directory after the other; links are not followed."""
        pending = [local_path(prefix)]
        while pending:
            directory = pending.pop()
            with _storage_errors("list", prefix):
                directories, files = _listed(directory)
            pending += directories
            yield from files


def real_directory(directory: str) -> str:
    """The path of a directory with links resolved; unchanged if it does not exist."""
    return os.path.realpath(directory)


def real_location(location: str) -> str:
    """The canonical location of a local file, with all links resolved."""
    return f"file://{os.path.realpath(local_path(location))}"


def make_directory(location: str) -> None:
    """Create a local directory for writers that expect it to exist; no-op on object stores."""
    if scheme_of(location) == "file":
        try:
            os.makedirs(local_path(location), exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make directory {location}: {error.strerror or error}") from error


def move_file(source: str, location: str) -> int:
    """Move a file to a free location and return its length. The move is durable once the new directory is."""
    with _storage_errors("write", location):
        path = local_path(location)
        if not os.path.isdir(os.path.dirname(path)):
            _make_directory(os.path.dirname(path), location)
        os.rename(local_path(source), path)
        return os.stat(path).st_size


def sync_file(location: str) -> None:
    """Make durable what another process has written to a file."""
    with _storage_errors("write", location), open(local_path(location), "rb") as stream:
        os.fsync(stream.fileno())


def sync_directories(locations: Iterable[str]) -> None:
    """Make the contents of directories durable."""
    for location in locations:
        with _storage_errors("write", location):
            _sync_directory(local_path(location))


def make_durable_directory(location: str) -> None:
    """Create a directory and its parents, each durable before anything is created in it."""
    with _storage_errors("write", location):
        _make_directory(local_path(location), location)


def remove_directory(location: str) -> None:
    """Remove a directory with all its contents, as far as possible."""
    shutil.rmtree(local_path(location), ignore_errors=True)


def is_gone(location: str) -> bool:
    """Whether a local file does not exist; other storage is not checked."""
    return scheme_of(location) == "file" and not os.path.exists(local_path(location))


def link_target(path: str) -> str:
    """The final target of a link; the path itself if it is not a link."""
    return os.path.realpath(path) if os.path.islink(path) else path


def is_temporary(name: str) -> bool:
    """Whether a file name is one of our temporary names."""
    return _TEMPORARY.match(name) is not None


class LocalOutputFile:
    """A file written under a hidden temporary name and linked into place on close."""

    def __init__(self, location: str, path: str) -> None:
        directory, name = os.path.split(path)
        self._location = location
        self._path = path
        self._directory = directory
        self._temporary = os.path.join(directory, f".{uuid.uuid4().hex}.{name[:_KEPT_OF_NAME]}")
        self._stream = open(self._temporary, "xb")  # noqa: SIM115  (closed by close or abort)
        self._created = False

    def stream(self) -> BinaryIO:
        return cast("BinaryIO", self._stream)

    def close(self) -> int:
        with _storage_errors("write", self._location):
            length = self._stream.tell()
            _sync(self._stream)
            self._stream.close()
            _link(self._temporary, self._path)
            self._created = True
            with contextlib.suppress(OSError):  # hidden; removed with orphan files
                os.unlink(self._temporary)
            _sync_directory(self._directory)
            return length

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)
        if self._created:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


@contextlib.contextmanager
def _storage_errors(verb: str, location: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"no file {location}", kind="file", name=location) from error
    except FileExistsError as error:
        raise AlreadyExistsError(f"file {location} exists already", kind="file", name=location) from error
    except OSError as error:
        raise StorageError(f"cannot {verb} {location}: {error.strerror or error}") from error


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _listed(directory: str) -> tuple[list[str], list[ListedFile]]:
    """The subdirectories and files of a directory; none if it is gone."""
    directories, files = [], []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                    found = entry.stat(follow_symlinks=False)
                    # moving a file keeps its modification time, but updates its change time
                    written_ns = max(found.st_mtime_ns, found.st_ctime_ns)
                    files.append(ListedFile(f"file://{entry.path}", found.st_size, written_ns // 1_000_000))
    return directories, files


def _make_directory(directory: str, location: str) -> None:
    """Create a directory and its parents, each durable before anything is created in it."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.stat(directory)  # refuses a path that is too long before creating a part of it
    missing = []
    while not os.path.isdir(directory) and directory != os.path.dirname(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for new in reversed(missing):
        try:
            os.mkdir(new)
        except FileExistsError as error:
            if not os.path.isdir(new):  # otherwise another writer created it meanwhile
                raise StorageError(f"cannot write {location}: {new} is not a directory") from error
        _sync_directory(os.path.dirname(new))


def _link(temporary: str, path: str) -> None:
    """Link a file into place; whatever is reported, it succeeded if both names are the same file.

    After a lost response, the request is sent again to a file server, which refuses it because of the first.
    """
    try:
        os.link(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            if os.path.samefile(temporary, path):
                return
        raise


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
