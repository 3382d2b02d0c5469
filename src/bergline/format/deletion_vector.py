"""Deletion vectors: the deleted positions of one data file, as a blob in a Puffin file."""

import struct
import zlib
from collections.abc import Sequence

from pyroaring import BitMap

from bergline.errors import FormatError, InvalidInputError
from bergline.format.manifest import DataFile, FileContent
from bergline.format.position_set import PositionSet
from bergline.format.puffin import Blob, render_puffin
from bergline.format.roaring import bitmap_end

DELETION_VECTOR_TYPE = "deletion-vector-v1"

_MAGIC = bytes.fromhex("d1d33964")
_LENGTH_AND_CHECKSUM = 8
_MAGIC_AND_COUNT = 12
_MAX_BLOB = 2**31 - 1
_MAX_KEY = 2**31 - 1
_ROW_POSITION_ID = 2147483645
_EMPTY_BITMAP = BitMap().serialize()


def parse_deletion_vector(blob: bytes, source: str, cardinality: int | None = None) -> PositionSet:
    """The positions of a blob; `cardinality` is the record count that its manifest entry states."""
    expected = len(blob) - _LENGTH_AND_CHECKSUM
    if expected < _MAGIC_AND_COUNT:
        raise FormatError(f"expected a deletion vector, found {len(blob)} bytes in {source}")
    (length,), (checksum,) = struct.unpack_from(">i", blob), struct.unpack_from(">I", blob, len(blob) - 4)
    if length != expected:
        raise FormatError(f"expected length {expected} at byte 0, found {length} in {source}")
    vector = memoryview(blob)[4:-4]
    if vector[:4] != _MAGIC:
        raise FormatError(f"expected a deletion vector, found {vector[:4].hex()} at byte 4 in {source}")
    if zlib.crc32(vector) != checksum:
        raise FormatError(f"expected checksum {checksum:08x}, found {zlib.crc32(vector):08x} in {source}")
    positions = PositionSet(_parse_bitmaps(vector, source))
    if cardinality is not None and cardinality != len(positions):
        raise FormatError(f"expected {cardinality} positions, found {len(positions)} in {source}")
    return positions


def render_deletion_vector(positions: PositionSet) -> bytes:
    """The blob of a set, byte for byte as Java writes it: an empty bitmap for each key that is skipped."""
    last_key = max(positions.bitmaps, default=-1)
    if len(_EMPTY_BITMAP) * last_key > _MAX_BLOB:
        raise InvalidInputError(f"expected positions that fit in {_MAX_BLOB} bytes, found {positions.last}")
    parts = [_MAGIC, struct.pack("<q", last_key + 1)]
    for key in range(last_key + 1):
        parts += [struct.pack("<I", key), _render_bitmap(positions.bitmaps.get(key))]
    vector = b"".join(parts)
    if len(vector) + _LENGTH_AND_CHECKSUM > _MAX_BLOB:
        raise InvalidInputError(f"expected a deletion vector of {_MAX_BLOB} bytes at most, found {len(vector)}")
    return struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


def deletion_vector_file(
    path: str, vectors: Sequence[tuple[DataFile, PositionSet]], created_by: str
) -> tuple[bytes, tuple[DataFile, ...]]:
    """The Puffin file at `path` with a deletion vector for each data file, and the delete files to commit."""
    if len({data.file_path for data, _ in vectors}) != len(vectors):
        raise InvalidInputError(f"expected one deletion vector for each data file, found several in {path}")
    content, footer = render_puffin([_blob(*vector) for vector in vectors], {"created-by": created_by})
    deletes = tuple(
        DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=path,
            file_format="PUFFIN",
            partition=data.partition,
            spec_id=data.spec_id,
            record_count=len(positions),
            file_size_in_bytes=len(content),
            referenced_data_file=data.file_path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        for (data, positions), blob in zip(vectors, footer.blobs, strict=True)
    )
    return content, deletes


def _blob(data: DataFile, positions: PositionSet) -> Blob:
    # spec: the snapshot and its number are not known yet, -1 stands for both
    return Blob(
        type=DELETION_VECTOR_TYPE,
        fields=(_ROW_POSITION_ID,),
        content=render_deletion_vector(positions),
        snapshot_id=-1,
        sequence_number=-1,
        properties={"referenced-data-file": data.file_path, "cardinality": str(len(positions))},
    )


def _parse_bitmaps(vector: memoryview, source: str) -> dict[int, BitMap]:
    (count,) = struct.unpack_from("<Q", vector, 4)
    place, last_key, found = _MAGIC_AND_COUNT, -1, 0
    bitmaps = {}
    while place < len(vector):
        key = int.from_bytes(vector[place : place + 4], "little")
        if not last_key < key <= _MAX_KEY:
            raise FormatError(f"expected keys that ascend up to {_MAX_KEY}, found {key} after {last_key} in {source}")
        end = bitmap_end(vector, place + 4, source)
        try:
            bitmap = BitMap.deserialize(bytes(vector[place + 4 : end]))
        except ValueError as error:
            raise FormatError(f"expected a Roaring bitmap, found {error} at byte {place} in {source}") from error
        place, last_key, found = end, key, found + 1
        if bitmap:
            bitmaps[key] = bitmap
    if found != count:
        raise FormatError(f"expected {count} bitmaps, found {found} in {source}")
    return bitmaps


def _render_bitmap(bitmap: BitMap | None) -> bytes:
    if bitmap is None:
        return _EMPTY_BITMAP
    smallest = bitmap.copy()
    smallest.run_optimize()
    return smallest.serialize()
