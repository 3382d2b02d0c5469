"""Answers in gzip: what all clients get is packed once, and what one of them gets behind it is added as it is.

So keys of an object store are in no stream that is compressed, whose length would tell something about them.
"""

import zlib
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
