"""A new object written in pieces: one conditional request if it is small, else a multipart upload."""

import contextlib
import io
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from bergline.errors import InvalidInputError
from bergline.io.object_errors import exists_error, object_errors, panics_contained

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PART_BYTES = 8 * 1024 * 1024
# one batch is gathered while the parts of the batch before travel, at the same time
_BATCH_BYTES = 2 * PART_BYTES


class Destination(Protocol):
    """What an output asks of its store."""

    def create(self, location: str, data: bytes) -> None:
        """Create the whole object, if it does not exist."""
        ...

    def exists(self, location: str) -> bool:
        """Whether there is an object."""
        ...

    def delete(self, locations: list[str]) -> list[str]:
        """Delete objects."""
        ...

    def open_upload(self, location: str) -> Any:
        """A multipart upload as obstore's WritableFile; a write waits for the parts of the one before."""
        ...


class _State(Enum):
    OPEN = "open"
    MAY_EXIST = "closed, or an upload whose completion failed: the object may be there, and is ours"
    GONE = "there is nothing to remove"


class ObjectOutput:
    """An object being written; two batches of it are in memory at most.

    A small object is created by one conditional request. Uploads in parts have no condition: the location is looked at
    right before the upload is completed, so two uploads to one name at the same moment could both succeed. Names of
    data files carry a UUID.
    """

    def __init__(self, store: Destination, location: str) -> None:
        self._store = store
        self._location = location
        self._upload: Any = None
        self._state = _State.OPEN
        self._stream = _Batches(self._send)

    def stream(self) -> BinaryIO:
        """Where to write."""
        return cast("BinaryIO", self._stream)

    def close(self) -> int:
        """Complete the object and return its length."""
        self._check_open()
        rest = self._stream.take_rest()
        try:
            if self._upload is None:
                self._store.create(self._location, rest)
            else:
                self._complete(rest)
        except BaseException:
            if self._state is _State.OPEN:
                self._abort_upload()
            raise
        self._state = _State.MAY_EXIST
        return self._stream.tell()

    def abort(self) -> None:
        """Give the upload up, or delete the object if it was closed.

        If it is not known whether a small object was created, whatever is there stays: it may be another writer's.
        """
        match self._state:
            case _State.OPEN:
                self._abort_upload()
            case _State.MAY_EXIST:
                self._store.delete([self._location])
            case _State.GONE:
                pass
        self._state = _State.GONE

    def _abort_upload(self) -> None:
        self._state = _State.GONE
        if self._upload is None:
            return
        with contextlib.suppress(Exception), panics_contained():
            self._upload.write(b"")  # waits for parts under way: one that arrives after the abort would stay
        with contextlib.suppress(Exception), panics_contained():
            self._upload.__exit__(InterruptedError, InterruptedError(), None)  # obstore's way to abort

    def _send(self, batch: bytes) -> None:
        """Send a batch; after one that failed nothing may follow, or the object would have a hole."""
        self._check_open()
        try:
            with object_errors("write", self._location, changes=True):
                if self._upload is None:
                    self._upload = self._store.open_upload(self._location)
                self._upload.write(batch)
        except BaseException:
            self._abort_upload()
            raise

    def _check_open(self) -> None:
        if self._state is not _State.OPEN:
            raise InvalidInputError(f"expected an open output, found one that was closed or failed at {self._location}")

    def _complete(self, rest: bytes) -> None:
        if rest:
            self._send(rest)
        if self._store.exists(self._location):
            raise exists_error(self._location)
        self._state = _State.MAY_EXIST
        with object_errors("write", self._location, changes=True):
            self._upload.close()


class _Batches(io.RawIOBase):
    """Counts what is written and passes it on in full batches."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._send = send
        self._held = bytearray()
        self._length = 0

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self._length

    def write(self, data: "ReadableBuffer", /) -> int:
        """Take all of the data."""
        view = memoryview(data).cast("B")
        self._held += view
        self._length += len(view)
        while len(self._held) >= _BATCH_BYTES:
            batch = bytes(memoryview(self._held)[:_BATCH_BYTES])
            del self._held[:_BATCH_BYTES]
            self._send(batch)
        return len(view)

    def take_rest(self) -> bytes:
        """What does not fill a batch."""
        rest = bytes(self._held)
        self._held.clear()
        return rest
