"""Deletion vectors: the deleted positions of one data file, as a blob in a Puffin file."""

import struct
import zlib
from collections.abc import Sequence

from pyroaring import BitMap

from bergline.errors import FormatError, InvalidInputError
from bergline.format.deletes.position_set import PositionSet
from bergline.format.deletes.puffin import Blob, render_puffin
from bergline.format.manifest.manifest import DataFile, FileContent

DELETION_VECTOR_TYPE = "deletion-vector-v1"

_MAGIC = bytes.fromhex("d1d33964")
_LENGTH_AND_CHECKSUM = 8
_MAGIC_AND_COUNT = 12
_MAX_BLOB = 2**31 - 1
_MAX_KEY = 2**31 - 1
_ROW_POSITION_ID = 2147483645
_EMPTY_BITMAP = BitMap().serialize()


def parse_deletion_vector(blob: bytes, source: str, cardinality: int | None = None) -> PositionSet:
    """Parse a blob; `cardinality` is the record count in its manifest entry."""
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
    """Serialize a set exactly as Java does, with an empty bitmap for each skipped key."""
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
    """A Puffin file at `path` with a deletion vector for each data file, and the delete files to commit."""
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
    # spec: -1 for the snapshot id and sequence number, which are not known yet
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


_NO_RUNS = 12346
_WITH_RUNS = 12347
_MAX_CONTAINERS = 1 << 16
_OFFSETS_FROM = 4
_MAX_ARRAY = 4096
_BITSET_SIZE = 8192


def bitmap_end(data: memoryview, start: int, source: str) -> int:
    """The offset just after the bitmap at `start`; the Roaring library validates its containers."""
    try:
        end = _containers_end(data, start, source)
    except struct.error:
        end = len(data) + 1
    if end > len(data):
        raise FormatError(f"expected a Roaring bitmap at byte {start}, found the end of the vector in {source}")
    return end


def _containers_end(data: memoryview, start: int, source: str) -> int:
    cookie: int
    count: int
    run_count: int
    (cookie,) = struct.unpack_from("<I", data, start)
    place, runs = start + 4, b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = bytes(data[place : place + (count + 7) // 8])
        place += (count + 7) // 8
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, place)
        place += 4
    else:
        raise FormatError(f"expected a Roaring bitmap, found cookie {cookie:#010x} at byte {start} in {source}")
    if count > _MAX_CONTAINERS:
        raise FormatError(f"expected {_MAX_CONTAINERS} containers at most, found {count} at byte {start} in {source}")
    # a key and a size for each container, then offsets that a reader does not need
    sizes = struct.unpack_from(f"<{2 * count}H", data, place)[1::2]
    place += 8 * count if not runs or count >= _OFFSETS_FROM else 4 * count
    for index, size in enumerate(sizes):
        if runs and runs[index >> 3] >> (index & 7) & 1:
            (run_count,) = struct.unpack_from("<H", data, place)
            place += 2 + 4 * run_count
        else:
            place += 2 * (size + 1) if size < _MAX_ARRAY else _BITSET_SIZE
    return place
