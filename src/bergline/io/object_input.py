"""A seekable stream over an object that requests few, large ranges."""

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from bergline.errors import InvalidInputError
from bergline.io.fileio import check_range

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_AHEAD = 1024 * 1024


class ObjectInput(io.RawIOBase):
    """Reads through a function from (offset, length) to bytes.

    Caches the end of the object, where Parquet has its footer, and the latest block.
    """

    def __init__(self, location: str, size: int, tail: bytes, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._location = location
        self._size = size
        self._tail = tail
        self._block, self._block_start = b"", 0
        self._fetch = fetch
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}.get(whence)
        if base is None or base + offset < 0:
            raise InvalidInputError(f"cannot seek to {offset} (whence {whence}) in {self._location}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        self._check_open()
        left = max(0, self._size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        data = self._take(self._position, length) if length else b""
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _check_open(self) -> None:
        if self.closed:
            raise InvalidInputError(f"expected an open stream, found a closed one over {self._location}")

    def _take(self, start: int, length: int) -> bytes:
        tail_start = self._size - len(self._tail)
        if start >= tail_start:
            return self._tail[start - tail_start : start - tail_start + length]
        inside = start - self._block_start
        if inside >= 0 and inside + length <= len(self._block):
            return self._block[inside : inside + length]
        wanted = min(max(length, READ_AHEAD), self._size - start)
        data = self._fetch(start, wanted)
        check_range(self._location, start, wanted, start + len(data))
        if wanted == length:
            return data
        self._block, self._block_start = data, start
        return data[:length]
