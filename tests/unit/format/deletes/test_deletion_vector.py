"""Deletion vectors as bytes, and the delete files that name them."""

import struct
import zlib
from collections.abc import Iterable

import pytest

from bergline.errors import FormatError, InvalidInputError
from bergline.format.deletes.deletion_vector import deletion_vector_file, parse_deletion_vector, render_deletion_vector
from bergline.format.deletes.position_set import position_set
from bergline.format.deletes.puffin import parse_puffin
from bergline.format.manifest.manifest import DataFile, FileContent

MAGIC = bytes.fromhex("d1d33964")
EMPTY = struct.pack("<II", 12346, 0)


def array_bitmap(*values: int, key: int = 0) -> bytes:
    """A bitmap with one array container, by the published layout."""
    header = struct.pack("<IIHHI", 12346, 1, key, len(values) - 1, 16)
    return header + struct.pack(f"<{len(values)}H", *values)


def run_bitmap(*runs: tuple[int, int], size: int) -> bytes:
    """A bitmap with one run container."""
    pairs = b"".join(struct.pack("<HH", *run) for run in runs)
    return struct.pack("<IBHHH", 12347, 1, 0, size - 1, len(runs)) + pairs


def vector(*bitmaps: tuple[int, bytes], count: int | None = None) -> bytes:
    """The framed blob of some bitmaps, checksum right."""
    body = b"".join(struct.pack("<I", key) + bitmap for key, bitmap in bitmaps)
    return framed(MAGIC + struct.pack("<Q", len(bitmaps) if count is None else count) + body)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))


@pytest.mark.parametrize(
    ("positions", "blob"),
    [
        ([], vector()),
        ([5, 9], vector((0, array_bitmap(5, 9)))),
        (range(10, 30), vector((0, run_bitmap((10, 19), size=20)))),
        ([2**33 + 65536 + 4], vector((0, EMPTY), (1, EMPTY), (2, array_bitmap(4, key=1)))),
    ],
    ids=["empty", "array", "run", "a later key"],
)
def test_a_vector_is_written_and_read_by_the_published_layout(positions: Iterable[int], blob: bytes) -> None:
    expected = position_set(positions)
    assert render_deletion_vector(expected) == blob
    assert parse_deletion_vector(blob, "f", len(expected)) == expected


def test_keys_may_be_left_out() -> None:
    assert list(parse_deletion_vector(vector((3, array_bitmap(1)), (7, array_bitmap(2))), "f")) == [
        3 * 2**32 + 1,
        7 * 2**32 + 2,
    ]


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "found 0 bytes in f"),
        (vector()[:19], "found 19 bytes in f"),
        (struct.pack(">i", 13) + vector()[4:], "expected length 12 at byte 0, found 13 in f"),
        (vector() + b"\0", "expected length 13 at byte 0, found 12 in f"),
        (framed(b"\0" * 12), "expected a deletion vector, found 00000000 at byte 4 in f"),
        (vector()[:-1] + b"\0", "expected checksum .* found .* in f"),
        (vector((0, array_bitmap(1)), count=2), "expected 2 bitmaps, found 1 in f"),
        (vector((0, array_bitmap(1)), count=0), "expected 0 bitmaps, found 1 in f"),
        (vector(count=2**64 - 1), "found 0 in f"),
        (vector((1, EMPTY), (1, EMPTY)), "expected keys that ascend up to 2147483647, found 1 after 1 in f"),
        (vector((2, EMPTY), (1, EMPTY)), "found 1 after 2 in f"),
        (vector((2**31, EMPTY)), "found 2147483648 after -1 in f"),
        (framed(MAGIC + struct.pack("<QI", 1, 0)), "expected a Roaring bitmap at byte 16, found the end"),
        (framed(MAGIC + struct.pack("<Q", 1) + b"\0"), "expected a Roaring bitmap"),
        (vector((0, b"\0" * 8)), "found cookie 0x00000000 at byte 16 in f"),
        (vector((0, struct.pack("<II", 12346, 65537))), "expected 65536 containers at most, found 65537"),
        (vector((0, array_bitmap(1, 2)[:-1])), "found the end of the vector in f"),
        (vector((0, run_bitmap((1, 2), size=3)[:-1])), "found the end of the vector in f"),
        (vector((0, array_bitmap(2, 1))), "found .*not strictly increasing at byte 12 in f"),
        (vector((0, array_bitmap(1, 1))), "found .*not strictly increasing at byte 12 in f"),
        (vector((0, run_bitmap((65535, 1), size=2))), "expected a Roaring bitmap, found .* at byte 12 in f"),
        (vector((0, run_bitmap((5, 5), (7, 1), size=8))), "expected a Roaring bitmap, found .* at byte 12 in f"),
        (vector((0, array_bitmap(1) + b"\0" * 3)), "expected keys that ascend"),
    ],
)
def test_broken_vectors_are_format_errors(blob: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_deletion_vector(blob, "f")


def test_the_manifest_must_count_the_positions_right() -> None:
    blob = render_deletion_vector(position_set([1, 2]))
    with pytest.raises(FormatError, match="expected 3 positions, found 2 in f"):
        parse_deletion_vector(blob, "f", 3)


def test_a_position_whose_vector_would_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected positions that fit in 2147483647 bytes, found"):
        render_deletion_vector(position_set([2**62]))


def test_a_file_of_vectors_names_each_data_file_and_its_place() -> None:
    data = [DataFile(f"d{i}.parquet", "PARQUET", (i, "p"), 100, 999, spec_id=i) for i in range(2)]
    sets = [position_set([1, 5]), position_set(range(50))]
    content, deletes = deletion_vector_file("x.puffin", list(zip(data, sets, strict=True)), "me")
    footer = parse_puffin(content, "x.puffin")
    assert footer.properties == {"created-by": "me"}
    for file, positions, delete, blob in zip(data, sets, deletes, footer.blobs, strict=True):
        assert delete == DataFile(
            "x.puffin",
            "PUFFIN",
            file.partition,
            len(positions),
            len(content),
            content=FileContent.POSITION_DELETES,
            spec_id=file.spec_id,
            referenced_data_file=file.file_path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        assert (blob.type, blob.fields, blob.snapshot_id, blob.sequence_number, blob.compression_codec) == (
            "deletion-vector-v1",
            (2147483645,),
            -1,
            -1,
            None,
        )
        assert blob.properties == {"referenced-data-file": file.file_path, "cardinality": str(len(positions))}
        stored = content[blob.offset : blob.offset + blob.length]
        assert parse_deletion_vector(stored, "x.puffin", delete.record_count) == positions


def test_one_data_file_has_one_vector_only() -> None:
    file = DataFile("d.parquet", "PARQUET", (), 100, 999)
    with pytest.raises(InvalidInputError, match="expected one deletion vector for each data file, found several"):
        deletion_vector_file("x.puffin", [(file, position_set([1])), (file, position_set([2]))], "me")
