"""Where a serialized 32-bit Roaring bitmap ends: bitmaps stand behind each other, and none says how long it is."""

import struct

from bergline.errors import FormatError

_NO_RUNS = 12346
_WITH_RUNS = 12347
_MAX_CONTAINERS = 1 << 16
_OFFSETS_FROM = 4
_MAX_ARRAY = 4096
_BITSET_SIZE = 8192


def bitmap_end(data: memoryview, start: int, source: str) -> int:
    """The byte behind the bitmap at `start`; what its containers hold is for the Roaring library to check."""
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
    # a key and a size for each container, then where each starts, which a reader does not need
    sizes = struct.unpack_from(f"<{2 * count}H", data, place)[1::2]
    place += 8 * count if not runs or count >= _OFFSETS_FROM else 4 * count
    for index, size in enumerate(sizes):
        if runs and runs[index >> 3] >> (index & 7) & 1:
            (run_count,) = struct.unpack_from("<H", data, place)
            place += 2 + 4 * run_count
        else:
            place += 2 * (size + 1) if size < _MAX_ARRAY else _BITSET_SIZE
    return place
