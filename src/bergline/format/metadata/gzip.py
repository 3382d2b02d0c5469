"""Compression of metadata files, which is recognized by the file name, not by the content."""

import gzip
import io
import zlib
from collections.abc import Mapping
from typing import Final

from bergline.errors import FormatError, InvalidInputError

CODEC_PROPERTY: Final = "write.metadata.compression-codec"
MAX_METADATA_BYTES: Final = 2**30
"""The size limit for a metadata file, before and after decompression."""
_GZIP_ENDINGS = (".gz.metadata.json", ".metadata.json.gz")
_EXTENSIONS = {"none": ".metadata.json", "gzip": ".gz.metadata.json"}
_SLICE = 2**14
_CHUNK = 2**20
_GZIP_WINDOW = zlib.MAX_WBITS | 16


def metadata_extension(properties: Mapping[str, str], default: str = "none") -> str:
    """The extension of the next metadata file; uncompressed by default for tables, compressed for Java's views."""
    codec = properties.get(CODEC_PROPERTY, default)
    try:
        return _EXTENSIONS[codec.lower()]
    except KeyError:
        raise InvalidInputError(f"expected none or gzip for property `{CODEC_PROPERTY}`, found `{codec}`") from None


def pack(data: bytes, location: str) -> bytes:
    """Compress the content if the location asks for it."""
    # no timestamp in the header: the same metadata gives the same bytes
    return gzip.compress(data, mtime=0) if location.endswith(_GZIP_ENDINGS) else data


def unpack(data: bytes, location: str, limit: int = MAX_METADATA_BYTES) -> bytes:
    """Decompress content read from this location if needed; FormatError beyond `limit` bytes."""
    return _inflate(data, location, limit) if location.endswith(_GZIP_ENDINGS) else data


def _inflate(data: bytes, source: str, limit: int) -> bytes:
    """Decompress all members of a gzip file; nothing else may follow them."""
    text = io.BytesIO()
    position = 0
    try:
        while position < len(data) or not data:
            member = zlib.decompressobj(_GZIP_WINDOW)
            while not member.eof:
                # in slices, because zlib copies the unused input of each member
                piece = data[position : position + _SLICE]
                chunk = member.decompress(piece, _CHUNK)
                position += len(piece) - len(member.unconsumed_tail) - len(member.unused_data)
                if not (chunk or piece or member.eof):
                    raise FormatError(f"expected more gzip data, found the end after {len(data)} bytes in {source}")
                text.write(chunk)
                if text.tell() > limit:
                    raise FormatError(f"expected at most {limit:,} bytes of metadata, found more in {source}")
    except zlib.error as error:
        raise FormatError(f"expected gzip data, found {error} in {source}") from error
    return text.getvalue()
