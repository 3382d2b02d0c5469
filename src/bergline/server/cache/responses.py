"""Bodies of answers in bounded memory, as they are and in gzip: the latest stay."""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

_LEVEL = 1  # metadata is repetitive: higher levels take several times as long, and save little
_RAW = -zlib.MAX_WBITS
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_MODULUS = 1 << 32


class Packed(NamedTuple):
    """The beginning of a body: its compressed blocks, which may be continued, its checksum and its length."""

    blocks: bytes
    checksum: int
    length: int


def pack(data: bytes | memoryview) -> Packed:
    """Compress the beginning of a body, or all of it."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    blocks = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    return Packed(blocks, zlib.crc32(data), len(data))


def in_gzip(packed: Packed, end: bytes = b"") -> bytes:
    """The whole body as one member of gzip: the beginning, and an end that is not compressed."""
    storing = zlib.compressobj(zlib.Z_NO_COMPRESSION, zlib.DEFLATED, _RAW)
    checksum, length = zlib.crc32(end, packed.checksum), (packed.length + len(end)) % _MODULUS
    trailer = checksum.to_bytes(4, "little") + length.to_bytes(4, "little")
    return b"".join((_HEAD, packed.blocks, storing.compress(end), storing.flush(), trailer))


_LEAST_PACKED = 8 * 1024


class CachedResponse:
    """The body of an answer, whose end may be another for some clients."""

    def __init__(self, key: str, body: bytes, end: bytes = b"") -> None:
        self.key = key
        self.body = body
        self.end = end
        self.packed: Packed | None = None
        self.packing = threading.Lock()

    @property
    def is_long(self) -> bool:
        """Whether gzip is worth its while."""
        return len(self.body) >= _LEAST_PACKED

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, in both forms."""
        return len(self.body) + (len(self.packed.blocks) if self.packed else 0)

    def plain(self, end: bytes | None = None) -> bytes:
        """The body, with another end where one is given."""
        return self.body if end is None else self.body.removesuffix(self.end) + end


Unless = Callable[[CachedResponse], bool] | None


class ResponseCache:
    """Answers by key; all together have so many bytes at most. Safe to use from many threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[str, CachedResponse] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0
        self.gzip_answers = 0

    def known(self, key: str, unless: Unless = None) -> CachedResponse | None:
        """An answer that was kept; not one for which `unless` holds."""
        with self._lock:
            found = self._answers.get(key)
            if found is None or (unless is not None and unless(found)):
                return None
            self._answers.move_to_end(key)
            self.hits += 1
            return found

    def find(self, key: str, make: Callable[[], CachedResponse]) -> CachedResponse:
        """An answer that was kept, or is made now."""
        found = self.known(key)
        if found is not None:
            return found
        self.misses += 1
        made = make()
        with self._lock:
            if key not in self._answers and made.size <= self._most_bytes:
                self._answers[key] = made
                self._bytes += made.size
                self._shrink()
        return made

    def gzip(self, answer: CachedResponse, end: bytes | None = None) -> bytes:
        """The body in gzip, with another end where one is given; it is packed the first time."""
        with answer.packing:
            packed = answer.packed or pack(memoryview(answer.body)[: len(answer.body) - len(answer.end)])
            if answer.packed is None:
                self._add_packed(answer, packed)
        with self._lock:
            self.gzip_answers += 1
        return in_gzip(packed, answer.end if end is None else end)

    def _add_packed(self, answer: CachedResponse, packed: Packed) -> None:
        with self._lock:
            answer.packed = packed
            if self._answers.get(answer.key) is answer:
                self._bytes += len(packed.blocks)
                self._shrink()

    def _shrink(self) -> None:
        while self._bytes > self._most_bytes:
            self._bytes -= self._answers.popitem(last=False)[1].size
