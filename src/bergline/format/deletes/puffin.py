"""Puffin files: a sequence of blobs, and a footer that locates and describes each of them.

A reader needs the last `footer_size` bytes and the blobs that it wants, never the whole file.
"""

import struct
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from bergline.errors import FormatError, InvalidInputError, UnsupportedError
from bergline.format.encoding.integers import Int, Long
from bergline.format.encoding.wire import decode_json, encode_json

FOOTER_TAIL_SIZE = 12
"""The bytes at the end of a file that give the length of the footer."""
MAX_INFLATED = 1 << 28
"""The size limit for a decompressed blob or footer."""

_MAGIC = b"PFA1"
_COMPRESSED_FOOTER = 1
_CHUNK = 1 << 20


class Blob(msgspec.Struct, frozen=True):
    """A blob to write: its uncompressed content, and how to store it (`zstd` or uncompressed)."""

    type: str
    fields: tuple[int, ...]
    content: bytes
    snapshot_id: int = -1
    sequence_number: int = -1
    compression_codec: str | None = None
    properties: dict[str, str] = {}


class PuffinBlob(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The location of a blob in the file and its meaning."""

    type: str
    fields: tuple[Int, ...]
    snapshot_id: Long
    sequence_number: Long
    offset: Long
    length: Long
    compression_codec: str | None = None
    properties: dict[str, str] = {}


class PuffinMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """The footer of a Puffin file."""

    blobs: tuple[PuffinBlob, ...]
    properties: dict[str, str] = {}


def parse_puffin(data: bytes, source: str) -> PuffinMetadata:
    """Parse the footer of a file given in full."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise FormatError(f"expected a Puffin file, found {data[:4].hex() or 'nothing'} at byte 0 in {source}")
    return parse_footer(data, len(data), source)


def footer_size(tail: bytes, file_size: int, source: str) -> int:
    """The size of the footer; `tail` holds at least the last 12 bytes of the file."""
    if file_size < len(_MAGIC) + FOOTER_TAIL_SIZE or len(tail) > file_size:
        raise FormatError(f"expected a Puffin file, found {file_size} bytes in {source}")
    if len(tail) < FOOTER_TAIL_SIZE:
        raise InvalidInputError(f"expected the last {FOOTER_TAIL_SIZE} bytes of {source}, found {len(tail)}")
    if tail[-len(_MAGIC) :] != _MAGIC:
        raise FormatError(f"expected `PFA1` at the end, found {tail[-len(_MAGIC) :].hex()} in {source}")
    (payload,) = struct.unpack_from("<i", tail, len(tail) - FOOTER_TAIL_SIZE)
    size: int = len(_MAGIC) + payload + FOOTER_TAIL_SIZE
    if payload < 0 or size > file_size - len(_MAGIC):
        raise FormatError(f"expected a footer within {file_size} bytes, found a payload of {payload} in {source}")
    return size


def parse_footer(tail: bytes, file_size: int, source: str) -> PuffinMetadata:
    """Parse the footer from the last bytes of a file, at least `footer_size` of them."""
    size = footer_size(tail, file_size, source)
    if len(tail) < size:
        raise InvalidInputError(f"expected the last {size} bytes of {source}, found {len(tail)}")
    footer = tail[-size:]
    if footer[: len(_MAGIC)] != _MAGIC:
        raise FormatError(f"expected `PFA1` at byte {file_size - size}, found {footer[:4].hex()} in {source}")
    flags = int.from_bytes(footer[-8:-4], "little")
    if flags & ~_COMPRESSED_FOOTER:
        raise UnsupportedError(f"expected no other flag than a compressed footer, found {flags:#010x} in {source}")
    payload = footer[len(_MAGIC) : -FOOTER_TAIL_SIZE]
    if flags & _COMPRESSED_FOOTER:
        payload = _inflate(payload, "lz4", f"the footer of {source}")
    metadata = decode_json(payload, PuffinMetadata, f"the footer of {source}")
    _check_places(metadata.blobs, file_size - size, source)
    return metadata


def blob_content(stored: bytes, blob: PuffinBlob, source: str) -> bytes:
    """The uncompressed content of a blob, given its bytes in the file."""
    if len(stored) != blob.length:
        raise FormatError(f"expected {blob.length} bytes, found {len(stored)} at byte {blob.offset} in {source}")
    match blob.compression_codec:
        case None:
            return stored
        case "zstd" | "lz4" as codec:
            return _inflate(stored, codec, f"the blob at byte {blob.offset} of {source}")
    raise UnsupportedError(
        f"expected `zstd` or `lz4`, found `{blob.compression_codec}` at byte {blob.offset} in {source}"
    )


def render_puffin(blobs: Sequence[Blob], properties: dict[str, str]) -> tuple[bytes, PuffinMetadata]:
    """Serialize a file; also returns its footer with the offsets of the blobs."""
    parts, places, offset = [_MAGIC], [], len(_MAGIC)
    for blob in blobs:
        stored = _deflate(blob)
        places.append(
            PuffinBlob(
                type=blob.type,
                fields=blob.fields,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                offset=offset,
                length=len(stored),
                compression_codec=blob.compression_codec,
                properties=blob.properties,
            )
        )
        parts.append(stored)
        offset += len(stored)
    metadata = PuffinMetadata(tuple(places), properties)
    payload = encode_json(metadata)
    parts += [_MAGIC, payload, struct.pack("<ii", len(payload), 0), _MAGIC]
    return b"".join(parts), metadata


def replace_footer(data: bytes, metadata: PuffinMetadata, source: str) -> bytes:
    """A file with the same blobs in the same places, and another footer."""
    payload = encode_json(metadata)
    blobs = data[: len(data) - footer_size(data, len(data), source)]
    return b"".join([blobs, _MAGIC, payload, struct.pack("<ii", len(payload), 0), _MAGIC])


def _check_places(blobs: Sequence[PuffinBlob], end: int, source: str) -> None:
    start = len(_MAGIC)
    for blob in sorted(blobs, key=lambda b: (b.offset, b.length)):
        if blob.offset < start or blob.length < 0 or blob.offset + blob.length > end:
            raise FormatError(
                f"expected a `{blob.type}` blob within bytes {start} to {end}, "
                f"found {blob.length} bytes from {blob.offset} in {source}"
            )
        start = blob.offset + blob.length


def _inflate(data: bytes, codec: str, place: str) -> bytes:
    """Decompress a frame in steps, so that a small input cannot exhaust memory."""
    if not data:
        raise FormatError(f"expected `{codec}` data, found nothing in {place}")
    parts, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            while part := stream.read(_CHUNK):
                parts.append(part)
                size += len(part)
                if size > MAX_INFLATED:
                    raise UnsupportedError(f"expected at most {MAX_INFLATED} bytes of content, found more in {place}")
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"expected `{codec}` data, found {error} in {place}") from error
    return b"".join(parts)


def _deflate(blob: Blob) -> bytes:
    match blob.compression_codec:
        case None:
            return blob.content
        case "zstd":
            return bytes(pa.compress(blob.content, codec="zstd", asbytes=True))
    # LZ4 frames must carry their content size, which Arrow omits; Java does not read them either
    raise UnsupportedError(f"expected `zstd` or no codec to write, found `{blob.compression_codec}`")
