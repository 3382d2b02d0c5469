"""Files on local disk: created atomically, never overwritten, durable before anyone is told."""

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from bergline.errors import AlreadyExistsError, NotFoundError, StorageError
from bergline.io.locations import local_path
from bergline.io.ranges import check_range


class LocalFileIO:
    """FileIO for `file:` locations and bare paths."""

    def read(self, location: str) -> bytes:
        """The whole file."""
        with self.open_input(location) as stream, _storage_errors("read", location):
            return stream.read()

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the file."""
        with self.open_input(location) as stream, _storage_errors("read", location):
            check_range(location, offset, length, os.fstat(stream.fileno()).st_size)
            stream.seek(offset)
            data = stream.read(length)
            check_range(location, offset, length, offset + len(data))  # the file may shrink meanwhile
            return data

    def open_input(self, location: str) -> BinaryIO:
        """The file, open for reading."""
        with _storage_errors("read", location):
            return open(local_path(location), "rb")

    def create(self, location: str, data: bytes) -> None:
        """Write under a name of our own, then link it into place: readers see all of it or nothing."""
        path = local_path(location)
        directory = os.path.dirname(path)
        temporary = os.path.join(directory, f".{uuid.uuid4().hex}.tmp")
        with _storage_errors("write", location):
            _make_directory(directory, location)
            try:
                with open(temporary, "xb") as stream:
                    stream.write(data)
                    _sync(stream)
                os.link(temporary, path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
            _sync_directory(directory)

    def create_output(self, location: str) -> "LocalOutputFile":
        """A new file under its final name; readers learn of it only through a commit."""
        with _storage_errors("write", location):
            path = local_path(location)
            _make_directory(os.path.dirname(path), location)
            return LocalOutputFile(location, path)

    def exists(self, location: str) -> bool:
        """Whether there is a file."""
        return os.path.isfile(local_path(location))

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete files one by one; what fails is returned."""
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
        """Every file below a directory."""
        root = local_path(prefix)
        return sorted(
            f"file://{os.path.join(directory, name)}" for directory, _, names in os.walk(root) for name in names
        )


class LocalOutputFile:
    """A file being written in place under a name that nothing refers to yet."""

    def __init__(self, location: str, path: str) -> None:
        self._location = location
        self._path = path
        self._stream = open(path, "xb")  # noqa: SIM115  (closed by close or abort)

    def stream(self) -> BinaryIO:
        """The open file."""
        return cast("BinaryIO", self._stream)

    def close(self) -> int:
        """Flush to disk and close."""
        with _storage_errors("write", self._location):
            length = self._stream.tell()
            _sync(self._stream)
            self._stream.close()
            _sync_directory(os.path.dirname(self._path))
            return length

    def abort(self) -> None:
        """Close and remove the file."""
        with contextlib.suppress(OSError):
            self._stream.close()
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


def _make_directory(directory: str, location: str) -> None:
    try:
        os.makedirs(directory, exist_ok=True)
    except FileExistsError as error:
        raise StorageError(f"cannot write {location}: {directory} is not a directory") from error


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
