"""Avro object container files: parsed block by block, validated, and decompressed in bounded memory."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

import msgspec
import pyarrow as pa

from bergline.errors import FormatError

MAGIC = b"Obj\x01"
_SYNC_LENGTH = 16
_MAX_INFLATED = 512 * 1024 * 1024
_SNAPPY_CHECKSUM = 4
_PIECE = 1 << 20
_XZ_MEMORY = 1 << 27
_LONGEST_NUMBER = 10


class Container(msgspec.Struct, frozen=True):
    """The contents of an Avro file: its header metadata and the binary records in its blocks."""

    metadata: dict[str, bytes]
    records: int
    blocks: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """All records, concatenated."""
        return b"".join(self.blocks)

    @property
    def size(self) -> int:
        """The total size of the records in bytes."""
        return sum(map(len, self.blocks))


def read_container(data: bytes, source: str, *, max_inflated: int = _MAX_INFLATED) -> Container:
    """Parse an Avro file; FormatError naming the source if it is truncated, damaged or decompresses past the limit."""
    try:
        return _ContainerParser(data, max_inflated).container()
    except _MalformedError as error:
        raise FormatError(f"expected an Avro file, found {error} in {source}") from error


def read_header(data: bytes, source: str) -> dict[str, bytes]:
    """Parse the header metadata of an Avro file; FormatError naming the source if it is truncated or damaged."""
    try:
        return _ContainerParser(data, 0).header()
    except _MalformedError as error:
        raise FormatError(f"expected an Avro file, found {error} in {source}") from error


def encode_long(number: int) -> bytes:
    """A long in Avro's variable-length zig-zag encoding."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004  (seven bits a byte)
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_bytes(data: bytes) -> bytes:
    """A byte string prefixed with its length."""
    return encode_long(len(data)) + data


def container_header(metadata: dict[str, bytes], sync: bytes) -> bytes:
    """The header of an Avro file, up to its first block."""
    pairs = b"".join(encode_bytes(k.encode()) + encode_bytes(v) for k, v in metadata.items())
    return MAGIC + encode_long(len(metadata)) + pairs + b"\x00" + sync


class _MalformedError(Exception):
    """Describes the malformed bytes; never leaves this module."""


class _ContainerParser:
    """A cursor over the bytes of a file."""

    def __init__(self, data: bytes, max_inflated: int) -> None:
        self._data = data
        self._offset = 0
        self._left = max_inflated

    def container(self) -> Container:
        metadata = self.header()
        sync = self._take(_SYNC_LENGTH)
        inflate = _inflater(metadata.get("avro.codec", b"null"))
        records, blocks = 0, []
        while self._offset < len(self._data):
            count = self._long()
            payload = self._take(self._long())
            if count < 0 or not self._data.startswith(sync, self._offset):
                raise _MalformedError(f"a damaged block at byte {self._offset}")
            self._offset += _SYNC_LENGTH
            block = inflate(payload, self._left)
            self._left -= len(block)
            records += count
            blocks.append(block)
        if "avro.schema" not in metadata:
            raise _MalformedError("no schema in its header")
        return Container(metadata, records, tuple(blocks))

    def header(self) -> dict[str, bytes]:
        if self._take(len(MAGIC)) != MAGIC:
            raise _MalformedError("other bytes at its start")
        pairs: dict[str, bytes] = {}
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the size of the pairs in bytes, for readers that skip them
            for _ in range(count):
                key = self._take(self._long())
                try:
                    pairs[key.decode()] = self._take(self._long())
                except UnicodeDecodeError as error:
                    raise _MalformedError(f"a damaged header at byte {self._offset}") from error
        return pairs

    def _take(self, length: int) -> bytes:
        end = self._offset + length
        if length < 0 or end > len(self._data):
            raise _MalformedError(f"an end or a wrong length at byte {self._offset}")
        taken = self._data[self._offset : end]
        self._offset = end
        return taken

    def _long(self) -> int:
        data, offset = self._data, self._offset
        value = shift = 0
        try:
            while (byte := data[offset]) > 0x7F:  # noqa: PLR2004  (the last byte of a number has no high bit)
                value |= (byte & 0x7F) << shift
                shift += 7
                offset += 1
                if shift > 63:  # noqa: PLR2004
                    raise _MalformedError(f"a number beyond 64 bits at byte {offset}")
        except IndexError as error:
            raise _MalformedError(f"an end inside a number at byte {self._offset}") from error
        value |= byte << shift
        self._offset = offset + 1
        if value >> 64:
            raise _MalformedError(f"a number beyond 64 bits at byte {offset}")
        return (value >> 1) ^ -(value & 1)


class BlockReader:
    """The blocks of an Avro file, read one after another; FormatError naming the source where it is damaged."""

    def __init__(self, stream: BinaryIO, source: str, *, max_inflated: int = _MAX_INFLATED) -> None:
        """`max_inflated` is the largest size of a block."""
        self._stream = stream
        self._source = source
        self._max_inflated = max_inflated
        with self._named():
            parser = self._parser()
            self.metadata = parser.header()
            """The metadata of the header."""
            self._inflate = _inflater(self.metadata.get("avro.codec", b"null"))
            if "avro.schema" not in self.metadata:
                raise _MalformedError("no schema in its header")

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The number of records in each block, and their bytes."""
        with self._named():
            for count, parser, length in self._headers():
                payload = parser.take(length)
                parser.end_block()
                yield count, self._inflate(payload, self._max_inflated)

    def count(self) -> int:
        """The number of records, counted without decompressing them."""
        records = 0
        with self._named():
            for count, parser, length in self._headers():
                parser.skip(length)
                parser.end_block()
                records += count
        return records

    def _headers(self) -> "Iterator[tuple[int, _StreamParser, int]]":
        parser = self._parser()
        parser.header()
        parser.start_blocks()
        while not parser.is_at_end:
            count, length = parser.long(), parser.long()
            if count < 0 or length < 0:
                raise _MalformedError(f"a damaged block at byte {parser.place}")
            yield count, parser, length

    def _parser(self) -> "_StreamParser":
        return _StreamParser(self._stream)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except _MalformedError as error:
            raise FormatError(f"expected an Avro file, found {error} in {self._source}") from error


class _StreamParser(_ContainerParser):
    """A cursor over a file of which only a window is in memory."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(b"", 0)
        self._stream = stream
        self._size = stream.seek(0, 2)
        self._start = 0
        self._sync = b""

    @property
    def place(self) -> int:
        return self._start + self._offset

    @property
    def is_at_end(self) -> bool:
        return self.place >= self._size

    def start_blocks(self) -> None:
        self._sync = self.take(_SYNC_LENGTH)

    def end_block(self) -> None:
        if self.take(_SYNC_LENGTH) != self._sync:
            raise _MalformedError(f"a damaged block before byte {self.place}")

    def take(self, length: int) -> bytes:
        return self._take(length)

    def long(self) -> int:
        return self._long()

    def skip(self, length: int) -> None:
        if self.place + length > self._size:
            raise _MalformedError(f"an end or a wrong length at byte {self.place}")
        self._offset += length

    def _take(self, length: int) -> bytes:
        self._fill(length)
        return super()._take(length)

    def _long(self) -> int:
        self._fill(_LONGEST_NUMBER)
        return super()._long()

    def _fill(self, length: int) -> None:
        """Read ahead until this many bytes are in memory, or all that are left."""
        if self._offset + length <= len(self._data) or self._start + len(self._data) >= self._size:
            return
        rest = self._data[self._offset :]
        self._start, self._offset = self.place, 0
        self._stream.seek(self._start + len(rest))
        wanted = min(self._size - self._start, max(length, _PIECE)) - len(rest)
        more = self._stream.read(wanted) if wanted > 0 else b""
        self._data = rest + more


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
        raise _MalformedError(f"codec `{codec[:40].decode(errors='replace')}`, which is none of {known},") from None


def _stream(start: Callable[[], _Decompressor]) -> Inflate:
    def inflate(data: bytes, limit: int) -> bytes:
        decompressor = start()
        try:
            # one byte over the limit distinguishes a block that is too large from one that just fits
            block = decompressor.decompress(data, limit + 1)
        except (zlib.error, OSError, ValueError, lzma.LZMAError, EOFError) as error:
            raise _MalformedError(f"a block that cannot be inflated ({error})") from error
        if len(block) > limit:
            raise _MalformedError("blocks that inflate without end")
        if not decompressor.eof:
            raise _MalformedError("a compressed block without its end")
        return block

    return inflate


def _plain(data: bytes, limit: int) -> bytes:  # noqa: ARG001  (what is not compressed does not grow)
    return data


def _snappy(data: bytes, limit: int) -> bytes:
    body, checksum = data[:-_SNAPPY_CHECKSUM], data[-_SNAPPY_CHECKSUM:]
    length = shift = 0
    for byte in body[:5]:  # snappy data starts with its decompressed length
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004
            break
    # snappy never compresses beyond 1:64: do not allocate memory for a length above that
    if length > limit or length > 64 * len(body):
        raise _MalformedError(f"a block that says it inflates to {length:,} bytes")
    try:
        block = bytes(pa.decompress(body, decompressed_size=length, codec="snappy"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _MalformedError(f"a block that cannot be inflated ({error})") from error
    if zlib.crc32(block) != int.from_bytes(checksum, "big"):
        raise _MalformedError("a block with a wrong checksum")
    return block


def _zstandard(data: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while piece := stream.read(_PIECE):
                limit -= len(piece)
                if limit < 0:
                    raise _MalformedError("blocks that inflate without end")
                pieces.append(piece)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _MalformedError(f"a block that cannot be inflated ({error})") from error
    return b"".join(pieces)


_CODECS: dict[bytes, Inflate] = {
    b"null": _plain,
    b"deflate": _stream(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    b"snappy": _snappy,
    b"zstandard": _zstandard,
    b"bzip2": _stream(bz2.BZ2Decompressor),
    b"xz": _stream(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY)),
}
