"""Puffin files: footers, blobs and their places."""

import struct

import pyarrow as pa
import pytest

from bergline.errors import BerglineError, FormatError, InvalidInputError, UnsupportedError
from bergline.format.deletes import puffin
from bergline.format.deletes.puffin import (
    FOOTER_TAIL_SIZE,
    Blob,
    PuffinBlob,
    blob_content,
    footer_size,
    parse_footer,
    parse_puffin,
    render_puffin,
)

NOTE = Blob("note", (1, 2), b"abcdefghi", snapshot_id=7, sequence_number=3, properties={"k": "v"})
LONG = Blob("long", (5,), b"x" * 10_000, compression_codec="zstd")


def file_with_footer(payload: bytes, flags: bytes = bytes(4), blobs: bytes = b"") -> bytes:
    return b"PFA1" + blobs + b"PFA1" + payload + struct.pack("<i", len(payload)) + flags + b"PFA1"


def footer_json(offset: int, length: int) -> str:
    return f'{{"type":"t","fields":[],"snapshot-id":1,"sequence-number":1,"offset":{offset},"length":{length}}}'


def test_a_file_without_blobs_is_exactly_the_published_bytes() -> None:
    data, metadata = render_puffin([], {})
    assert data == bytes.fromhex("50464131 50464131 7b22626c6f6273223a5b5d7d 0c000000 00000000 50464131")
    assert parse_puffin(data, "f") == metadata


def test_blobs_and_properties_come_back_with_exact_places() -> None:
    data, written = render_puffin([NOTE, LONG], {"created-by": "me"})
    metadata = parse_puffin(data, "f")
    assert metadata == written
    assert metadata.properties == {"created-by": "me"}
    note, long = metadata.blobs
    assert note == PuffinBlob("note", (1, 2), 7, 3, offset=4, length=9, properties={"k": "v"})
    assert (long.offset, long.compression_codec) == (13, "zstd")
    assert long.length < 100
    contents = [blob_content(data[b.offset : b.offset + b.length], b, "f") for b in metadata.blobs]
    assert contents == [NOTE.content, LONG.content]


def test_the_footer_says_only_what_is_set_in_the_order_of_the_specification() -> None:
    data, _ = render_puffin([Blob("t", (1,), b"ab")], {})
    payload = b'{"blobs":[{"type":"t","fields":[1],"snapshot-id":-1,"sequence-number":-1,"offset":4,"length":2}]}'
    assert data == file_with_footer(payload, blobs=b"ab")


def test_a_footer_is_read_from_the_end_of_a_file_alone() -> None:
    data, metadata = render_puffin([NOTE, LONG], {})
    size = footer_size(data[-FOOTER_TAIL_SIZE:], len(data), "f")
    assert parse_footer(data[-size:], len(data), "f") == metadata
    assert parse_footer(data[-size - 5 :], len(data), "f") == metadata


@pytest.mark.parametrize("length", [0, 11, 12, 40])
def test_a_tail_that_is_too_short_is_the_callers_mistake(length: int) -> None:
    data, _ = render_puffin([NOTE], {})
    with pytest.raises(InvalidInputError, match=r"expected the last \d+ bytes of f"):
        parse_footer(data[len(data) - length :], len(data), "f")


def test_a_compressed_footer_is_read() -> None:
    plain, metadata = render_puffin([NOTE], {"p": "q" * 200})
    payload = plain[17:-12]
    compressed = pa.compress(payload, codec="lz4", asbytes=True)
    assert len(compressed) < len(payload)
    data = file_with_footer(compressed, b"\x01\0\0\0", blobs=NOTE.content)
    assert parse_puffin(data, "f") == metadata


def test_an_lz4_blob_is_read() -> None:
    stored = pa.compress(b"y" * 5000, codec="lz4", asbytes=True)
    blob = PuffinBlob("t", (), 1, 1, 4, len(stored), "lz4")
    assert blob_content(stored, blob, "f") == b"y" * 5000


def test_unknown_fields_of_the_footer_are_passed_over() -> None:
    blob = footer_json(4, 2).removesuffix("}") + ',"later":{"a":[1]},"compression-codec":null}'
    data = file_with_footer(f'{{"blobs":[{blob}],"new":1}}'.encode(), blobs=b"ab")
    assert parse_puffin(data, "f").blobs == (PuffinBlob("t", (), 1, 1, 4, 2),)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a Puffin file, found nothing at byte 0 in f"),
        (b"PFA1", "found 4 bytes in f"),
        (b"PFA2" + file_with_footer(b'{"blobs":[]}')[4:], "expected a Puffin file, found 50464132 at byte 0 in f"),
        (file_with_footer(b'{"blobs":[]}')[:-1] + b"2", "expected `PFA1` at the end, found 50464132 in f"),
        (b"PFA1PFA2" + file_with_footer(b'{"blobs":[]}')[8:], "expected `PFA1` at byte 4, found 50464132 in f"),
        (b"PFA1PFA1" + struct.pack("<iI", -1, 0) + b"PFA1", "found a payload of -1 in f"),
        (b"PFA1PFA1" + struct.pack("<iI", 2**31 - 1, 0) + b"PFA1", "found a payload of 2147483647 in f"),
        (file_with_footer(b"{}"), r"missing required field `blobs` at \$ in the footer of f"),
        (file_with_footer(b'{"blobs":[{}]}'), r"missing required field `type` at \$.blobs\[0\]"),
        (file_with_footer(b"\xff"), "in the footer of f"),
        (file_with_footer(b"{", b"\x01\0\0\0"), "expected `lz4` data, found .* in the footer of f"),
        (file_with_footer(b"", b"\x01\0\0\0"), "expected `lz4` data, found nothing in the footer of f"),
    ],
)
def test_broken_files_are_format_errors_that_name_the_place(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_puffin(data, "f")


@pytest.mark.parametrize(
    "blobs",
    [
        [(3, 1)],
        [(-4, 1)],
        [(4, -1)],
        [(4, 11)],
        [(15, 0)],
        [(2**63 - 1, 2**63 - 1)],
        [(4, 5), (8, 2)],
        [(6, 1), (4, 5)],
    ],
)
def test_blobs_outside_the_file_or_over_each_other_are_refused(blobs: list[tuple[int, int]]) -> None:
    payload = f'{{"blobs":[{",".join(footer_json(*b) for b in blobs)}]}}'.encode()
    with pytest.raises(FormatError, match=r"expected a `t` blob within bytes .* in f"):
        parse_puffin(file_with_footer(payload, blobs=bytes(10)), "f")


def test_reserved_flags_are_not_guessed_at() -> None:
    with pytest.raises(UnsupportedError, match="found 0x00000002 in f"):
        parse_puffin(file_with_footer(b'{"blobs":[]}', b"\x02\0\0\0"), "f")


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_content_that_inflates_without_end_is_refused(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(puffin, "MAX_INFLATED", 1 << 22)
    stored = pa.compress(bytes(1 << 23), codec=codec, asbytes=True)
    with pytest.raises(UnsupportedError, match="expected at most 4194304 bytes of content, found more in the blob at"):
        blob_content(stored, PuffinBlob("t", (), 1, 1, 4, len(stored), codec), "f")


@pytest.mark.parametrize(
    ("stored", "codec", "error"),
    [
        (b"abc", None, FormatError),
        (b"ab", "gzip", UnsupportedError),
        (b"ab", "zstd", FormatError),
        (b"ab", "lz4", FormatError),
        (pa.compress(b"abc", codec="zstd", asbytes=True)[:-1], "zstd", FormatError),
    ],
)
def test_stored_bytes_that_are_not_what_the_footer_says(
    stored: bytes, codec: str | None, error: type[BerglineError]
) -> None:
    length = 2 if codec is None else len(stored)
    with pytest.raises(error, match="byte 4"):
        blob_content(stored, PuffinBlob("t", (), 1, 1, 4, length, codec), "f")


def test_lz4_is_not_written() -> None:
    with pytest.raises(UnsupportedError, match="expected `zstd` or no codec to write, found `lz4`"):
        render_puffin([Blob("t", (), b"", compression_codec="lz4")], {})
