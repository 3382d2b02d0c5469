"""An LRU cache of response bodies, plain and in gzip, in bounded memory."""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

_LEVEL = 1  # metadata is repetitive: higher levels take several times as long, and save little
_RAW = -zlib.MAX_WBITS
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_MODULUS = 1 << 32


class CompressedPrefix(NamedTuple):
    """The beginning of a body: its compressed blocks, which may be continued, its checksum and its length."""

    blocks: bytes
    checksum: int
    length: int


def compress_prefix(data: bytes | memoryview) -> CompressedPrefix:
    """Compress the beginning of a body, or all of it."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    blocks = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    return CompressedPrefix(blocks, zlib.crc32(data), len(data))


def gzip_member(prefix: CompressedPrefix, end: bytes = b"") -> bytes:
    """The whole body as one member of gzip: the beginning, and an end that is not compressed."""
    storing = zlib.compressobj(zlib.Z_NO_COMPRESSION, zlib.DEFLATED, _RAW)
    checksum, length = zlib.crc32(end, prefix.checksum), (prefix.length + len(end)) % _MODULUS
    trailer = checksum.to_bytes(4, "little") + length.to_bytes(4, "little")
    return b"".join((_HEAD, prefix.blocks, storing.compress(end), storing.flush(), trailer))


_MIN_GZIP_BYTES = 8 * 1024


class CachedResponse:
    """The body of a response, whose suffix differs for some clients."""

    def __init__(self, key: str, body: bytes, end: bytes = b"") -> None:
        self.key = key
        self.body = body
        self.end = end
        self.on_branch: str | None = None
        """The branch of the lake on which alone the table is."""
        self.compressed: CompressedPrefix | None = None
        self.compressing = threading.Lock()

    @property
    def is_long(self) -> bool:
        """Whether gzip is worth its while."""
        return len(self.body) >= _MIN_GZIP_BYTES

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, in both forms."""
        return len(self.body) + (len(self.compressed.blocks) if self.compressed else 0)

    def plain(self, end: bytes | None = None) -> bytes:
        """The body, with another end where one is given."""
        return self.body if end is None else self.body.removesuffix(self.end) + end


Unless = Callable[[CachedResponse], bool] | None


class ResponseCache:
    """Answers by key; all together have so many bytes at most. Safe to use from many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._responses: OrderedDict[str, CachedResponse] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0
        self.gzip_responses = 0

    def known(self, key: str, unless: Unless = None) -> CachedResponse | None:
        """A response that was cached; not one for which `unless` holds."""
        with self._lock:
            found = self._responses.get(key)
            if found is None or (unless is not None and unless(found)):
                return None
            self._responses.move_to_end(key)
            self.hits += 1
            return found

    def find(self, key: str, make: Callable[[], CachedResponse]) -> CachedResponse:
        """A response that was cached, or is made now."""
        found = self.known(key)
        if found is not None:
            return found
        self.misses += 1
        made = make()
        with self._lock:
            if key not in self._responses and made.size <= self._max_bytes:
                self._responses[key] = made
                self._bytes += made.size
                self._shrink()
        return made

    def gzip(self, response: CachedResponse, end: bytes | None = None) -> bytes:
        """The body in gzip, with another end where one is given; it is packed the first time."""
        with response.compressing:
            packed = response.compressed or compress_prefix(
                memoryview(response.body)[: len(response.body) - len(response.end)]
            )
            if response.compressed is None:
                self._add_compressed(response, packed)
        with self._lock:
            self.gzip_responses += 1
        return gzip_member(packed, response.end if end is None else end)

    def _add_compressed(self, response: CachedResponse, prefix: CompressedPrefix) -> None:
        with self._lock:
            response.compressed = prefix
            if self._responses.get(response.key) is response:
                self._bytes += len(prefix.blocks)
                self._shrink()

    def _shrink(self) -> None:
        while self._bytes > self._max_bytes:
            self._bytes -= self._responses.popitem(last=False)[1].size
