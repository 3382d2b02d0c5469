"""Avro object container files: walked block by block, checked, inflated in bounded memory and joined into one block."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

import msgspec
import pyarrow as pa

from bergline.errors import FormatError

MAGIC = b"Obj\x01"
_SYNC_LENGTH = 16
_MAX_INFLATED = 512 * 1024 * 1024
_SNAPPY_CHECKSUM = 4
_PIECE = 1 << 20
_XZ_MEMORY = 1 << 27


class Container(msgspec.Struct, frozen=True):
    """What a file holds: its header, and the binary records in its blocks."""

    metadata: dict[str, bytes]
    records: int
    blocks: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """All records, one after the other."""
        return b"".join(self.blocks)

    @property
    def size(self) -> int:
        """How many bytes all records take."""
        return sum(map(len, self.blocks))


def read_container(data: bytes, source: str, *, max_inflated: int = _MAX_INFLATED) -> Container:
    """The content of an Avro file; FormatError with the source where it is cut, damaged or inflates without end."""
    try:
        return _Walker(data, max_inflated).container()
    except _Broken as error:
        raise FormatError(f"expected an Avro file, found {error} in {source}") from error


def read_header(data: bytes, source: str) -> dict[str, bytes]:
    """What an Avro file says of itself; FormatError with the source where that is cut or damaged."""
    try:
        return _Walker(data, 0).header()
    except _Broken as error:
        raise FormatError(f"expected an Avro file, found {error} in {source}") from error


def encode_long(number: int) -> bytes:
    """A whole number in Avro's variable-length zig-zag form."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004  (seven bits a byte)
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_bytes(data: bytes) -> bytes:
    """A byte string with its length."""
    return encode_long(len(data)) + data


def container_header(metadata: dict[str, bytes], sync: bytes) -> bytes:
    """The start of an Avro file, up to its first block."""
    pairs = b"".join(encode_bytes(k.encode()) + encode_bytes(v) for k, v in metadata.items())
    return MAGIC + encode_long(len(metadata)) + pairs + b"\x00" + sync


class _Broken(Exception):  # noqa: N818  (never leaves this module)
    """What is wrong with the bytes."""


class _Walker:
    """A place in the bytes, moving forward."""

    def __init__(self, data: bytes, max_inflated: int) -> None:
        self._data = data
        self._place = 0
        self._left = max_inflated

    def container(self) -> Container:
        metadata = self.header()
        sync = self._take(_SYNC_LENGTH)
        inflate = _inflater(metadata.get("avro.codec", b"null"))
        records, blocks = 0, []
        while self._place < len(self._data):
            count = self._long()
            payload = self._take(self._long())
            if count < 0 or not self._data.startswith(sync, self._place):
                raise _Broken(f"a damaged block at byte {self._place}")
            self._place += _SYNC_LENGTH
            block = inflate(payload, self._left)
            self._left -= len(block)
            records += count
            blocks.append(block)
        if "avro.schema" not in metadata:
            raise _Broken("no schema in its header")
        return Container(metadata, records, tuple(blocks))

    def header(self) -> dict[str, bytes]:
        if self._take(len(MAGIC)) != MAGIC:
            raise _Broken("other bytes at its start")
        pairs: dict[str, bytes] = {}
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the size of the pairs in bytes, for those who skip them
            for _ in range(count):
                key = self._take(self._long())
                try:
                    pairs[key.decode()] = self._take(self._long())
                except UnicodeDecodeError as error:
                    raise _Broken(f"a damaged header at byte {self._place}") from error
        return pairs

    def _take(self, length: int) -> bytes:
        end = self._place + length
        if length < 0 or end > len(self._data):
            raise _Broken(f"an end or a wrong length at byte {self._place}")
        taken = self._data[self._place : end]
        self._place = end
        return taken

    def _long(self) -> int:
        data, place = self._data, self._place
        value = shift = 0
        try:
            while (byte := data[place]) > 0x7F:  # noqa: PLR2004  (the last byte of a number has no high bit)
                value |= (byte & 0x7F) << shift
                shift += 7
                place += 1
                if shift > 63:  # noqa: PLR2004
                    raise _Broken(f"a number beyond 64 bits at byte {place}")
        except IndexError as error:
            raise _Broken(f"an end inside a number at byte {self._place}") from error
        value |= byte << shift
        self._place = place + 1
        if value >> 64:
            raise _Broken(f"a number beyond 64 bits at byte {place}")
        return (value >> 1) ^ -(value & 1)


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


Inflate = Callable[[bytes, int], bytes]


def _inflater(codec: bytes) -> Inflate:
    try:
        return _CODECS[codec]
    except KeyError:
        known = ", ".join(c.decode() for c in _CODECS)
        raise _Broken(f"codec `{codec[:40].decode(errors='replace')}`, which is none of {known},") from None


def _stream(start: Callable[[], _Decompressor]) -> Inflate:
    def inflate(data: bytes, limit: int) -> bytes:
        decompressor = start()
        try:
            # one byte more than allowed tells a block that is too large from one that just fits
            block = decompressor.decompress(data, limit + 1)
        except (zlib.error, OSError, ValueError, lzma.LZMAError, EOFError) as error:
            raise _Broken(f"a block that cannot be inflated ({error})") from error
        if len(block) > limit:
            raise _Broken("blocks that inflate without end")
        if not decompressor.eof:
            raise _Broken("a compressed block without its end")
        return block

    return inflate


def _plain(data: bytes, limit: int) -> bytes:  # noqa: ARG001  (what is not compressed does not grow)
    return data


def _snappy(data: bytes, limit: int) -> bytes:
    body, checksum = data[:-_SNAPPY_CHECKSUM], data[-_SNAPPY_CHECKSUM:]
    length = shift = 0
    for byte in body[:5]:  # snappy begins with the length that it inflates to
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            break
    # snappy never shrinks beyond 1:64; a length above that would only make us allocate
    if length > limit or length > 64 * len(body):
        raise _Broken(f"a block that says it inflates to {length:,} bytes")
    try:
        block = bytes(pa.decompress(body, decompressed_size=length, codec="snappy"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _Broken(f"a block that cannot be inflated ({error})") from error
    if zlib.crc32(block) != int.from_bytes(checksum, "big"):
        raise _Broken("a block with a wrong checksum")
    return block


def _zstandard(data: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while piece := stream.read(_PIECE):
                limit -= len(piece)
                if limit < 0:
                    raise _Broken("blocks that inflate without end")
                pieces.append(piece)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _Broken(f"a block that cannot be inflated ({error})") from error
    return b"".join(pieces)


_CODECS: dict[bytes, Inflate] = {
    b"null": _plain,
    b"deflate": _stream(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    b"snappy": _snappy,
    b"zstandard": _zstandard,
    b"bzip2": _stream(bz2.BZ2Decompressor),
    b"xz": _stream(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)),
}
