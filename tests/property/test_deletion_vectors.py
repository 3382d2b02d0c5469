"""Puffin files and deletion vectors survive their bytes; broken ones give our own errors."""

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import FormatError, UnsupportedError
from bergline.format.deletes.deletion_vector import deletion_vector_file, parse_deletion_vector, render_deletion_vector
from bergline.format.deletes.position_set import position_set
from bergline.format.deletes.puffin import Blob, blob_content, parse_puffin, render_puffin
from bergline.format.manifest.manifest import DataFile

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
longs = st.integers(-(2**63), 2**63 - 1)
runs = st.tuples(st.integers(0, 2**18), st.integers(1, 9000), st.integers(1, 4)).map(
    lambda r: list(range(r[0], r[0] + r[1], r[2]))
)
positions = st.lists(runs | st.lists(st.integers(0, 2**35), max_size=20), max_size=4).map(lambda p: sum(p, []))  # noqa: RUF017
blobs = st.builds(
    Blob,
    type=texts,
    fields=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(tuple),
    content=st.binary(max_size=50),
    snapshot_id=longs,
    sequence_number=longs,
    compression_codec=st.sampled_from([None, "zstd"]),
    properties=st.dictionaries(texts, texts, max_size=2),
)
edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 4),
        st.binary(max_size=4) | st.sampled_from([b"\xff\xff", b"\0\0", b"\x3a\x30", b"\x3b\x30", b"\xff\x0f"]),
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """Some bytes at some places replaced by others."""
    for where, length, new in changes:
        place = int(where * len(data))
        data = data[:place] + new + data[place + length :]
    return data


@given(positions)
def test_positions_survive_a_vector(members: list[int]) -> None:
    expected = position_set(members)
    assert set(expected) == set(members)
    found = parse_deletion_vector(render_deletion_vector(expected), "f", len(set(members)))
    assert found == expected
    assert list(found) == sorted(set(members)) == found.to_arrow().to_pylist()


@given(positions, st.integers(0, 2**18 + 10) | st.integers(2**32 - 5, 2**32 + 5), st.integers(0, 300))
def test_a_mask_says_which_positions_of_a_range_are_in_the_set(members: list[int], start: int, rows: int) -> None:
    contained = set(members)
    mask = position_set(members).to_mask(rows, start)
    assert mask.to_pylist() == [p in contained for p in range(start, start + rows)]


@given(positions, positions)
def test_a_union_is_the_union(left: list[int], right: list[int]) -> None:
    assert set(position_set(left).union(position_set(right))) == set(left) | set(right)


@given(positions, edits, st.booleans())
@settings(max_examples=300)
def test_a_broken_vector_is_a_format_error_or_another_vector(
    members: list[int], changes: list[tuple[float, int, bytes]], head: bool
) -> None:
    """The checksum is right, so that what comes after it is what judges the bytes."""
    content = render_deletion_vector(position_set(members))[4:-4]
    broken = edited(content[:80], changes) + content[80:] if head else edited(content, changes)
    blob = struct.pack(">i", len(broken)) + broken + struct.pack(">I", zlib.crc32(broken))
    try:
        found = parse_deletion_vector(blob, "f")
    except FormatError as error:
        assert str(error).endswith(" in f")  # noqa: PT017
        return
    assert sum(1 for _ in found) == len(found)
    found.to_mask(100, 65_500)


@given(st.lists(blobs, max_size=4), st.dictionaries(texts, texts, max_size=2))
def test_blobs_survive_a_file(written: list[Blob], properties: dict[str, str]) -> None:
    data, metadata = render_puffin(written, properties)
    assert parse_puffin(data, "f") == metadata
    contents = [blob_content(data[b.offset : b.offset + b.length], b, "f") for b in metadata.blobs]
    assert contents == [b.content for b in written]
    assert [b.properties for b in metadata.blobs] == [b.properties for b in written]


@given(st.lists(blobs, max_size=2), edits)
@settings(max_examples=300)
def test_a_broken_file_is_refused_or_read_within_its_bounds(
    written: list[Blob], changes: list[tuple[float, int, bytes]]
) -> None:
    data, _ = render_puffin(written, {"created-by": "me"})
    broken = edited(data, changes)
    try:
        footer = parse_puffin(broken, "f")
        for blob in footer.blobs:
            blob_content(broken[blob.offset : blob.offset + blob.length], blob, "f")
    except (FormatError, UnsupportedError) as error:
        assert "f" in str(error)  # noqa: PT017


@given(st.binary(max_size=60))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="in f"):
        parse_puffin(data, "f")
    with pytest.raises(FormatError, match="in f"):
        parse_deletion_vector(data, "f")


@given(st.lists(positions, max_size=3))
def test_every_vector_of_a_file_is_where_its_delete_file_says(sets: list[list[int]]) -> None:
    vectors = [(DataFile(f"{i}", "PARQUET", (), 1, 1), position_set(s)) for i, s in enumerate(sets)]
    content, deletes = deletion_vector_file("x", vectors, "me")
    for (data, expected), delete in zip(vectors, deletes, strict=True):
        assert delete.referenced_data_file == data.file_path
        assert delete.content_offset is not None
        assert delete.content_size_in_bytes is not None
        stored = content[delete.content_offset : delete.content_offset + delete.content_size_in_bytes]
        assert parse_deletion_vector(stored, "x", delete.record_count) == expected
