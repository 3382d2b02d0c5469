"""A new object written in pieces: one conditional request if it is small, otherwise a multipart upload."""

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
# one batch is filled while the parts of the previous batch are uploaded in parallel
_BATCH_BYTES = 2 * PART_BYTES


class Destination(Protocol):
    """What an output needs from its store."""

    def create(self, location: str, data: bytes) -> None:
        """Create the object, if it does not exist."""
        ...

    def exists(self, location: str) -> bool:
        """Whether there is an object."""
        ...

    def delete(self, locations: list[str]) -> list[str]:
        """Delete objects."""
        ...

    def open_upload(self, location: str) -> Any:
        """A multipart upload as obstore's WritableFile; a write waits for the previous one."""
        ...


class _State(Enum):
    OPEN = "open"
    MAY_EXIST = "closed, or an upload whose completion failed: the object may be there, and is ours"
    GONE = "there is nothing to remove"


class ObjectOutput:
    """An object being written; at most two batches are in memory.

    A small object is created by one conditional request. Multipart uploads are unconditional: the location is checked
    right before completion, so two simultaneous uploads to one name could both succeed. Data files have UUIDs.
    """

    def __init__(self, store: Destination, location: str) -> None:
        self._store = store
        self._location = location
        self._upload: Any = None
        self._state = _State.OPEN
        self._stream = _Batches(self._send)

    def stream(self) -> BinaryIO:
        return cast("BinaryIO", self._stream)

    def close(self) -> int:
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
        """Abort the upload, or delete the object if it was closed.

        If it is unknown whether a small object was created, it stays: it may be another writer's.
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
            self._upload.write(b"")  # waits for parts in flight: one that arrives after the abort would stay
        with contextlib.suppress(Exception), panics_contained():
            self._upload.__exit__(InterruptedError, InterruptedError(), None)  # this is how obstore aborts

    def _send(self, batch: bytes) -> None:
        """Send a batch; nothing may follow a failed one, or the object would have a gap."""
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
    """A stream that counts what is written and passes it on in full batches."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._send = send
        self._held = bytearray()
        self._length = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, data: "ReadableBuffer", /) -> int:
        view = memoryview(data).cast("B")
        self._held += view
        self._length += len(view)
        while len(self._held) >= _BATCH_BYTES:
            batch = bytes(memoryview(self._held)[:_BATCH_BYTES])
            del self._held[:_BATCH_BYTES]
            self._send(batch)
        return len(view)

    def take_rest(self) -> bytes:
        """The remaining bytes, less than a batch."""
        rest = bytes(self._held)
        self._held.clear()
        return rest
