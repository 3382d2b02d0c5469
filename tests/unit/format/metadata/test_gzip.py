"""Compressed metadata: by name, in bounded memory, nothing but gzip."""

import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.errors import FormatError, InvalidInputError
from bergline.format.metadata.gzip import metadata_extension, pack, unpack

TEXT = b'{"format-version":2}' * 1000
NEW, LEGACY = "00001-u.gz.metadata.json", "v1.metadata.json.gz"


@pytest.mark.parametrize("location", [NEW, LEGACY, "s3://b/t/metadata/00001-u.gz.metadata.json"])
def test_both_spellings_of_the_name_mean_gzip(location: str) -> None:
    packed = pack(TEXT, location)
    assert gzip.decompress(packed) == TEXT
    assert unpack(packed, location) == TEXT
    assert pack(TEXT, location) == packed


@pytest.mark.parametrize("location", ["00001-u.metadata.json", "v1.gz.metadata.json.bak", "a.gz/v1.metadata.json"])
def test_other_names_are_plain_whatever_their_bytes(location: str) -> None:
    assert pack(TEXT, location) == TEXT
    assert unpack(gzip.compress(TEXT), location) == gzip.compress(TEXT)


def test_members_follow_one_another() -> None:
    assert unpack(gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(b"x"), NEW) == TEXT + b"x"


def test_cut_off_data_is_refused_wherever_it_is_cut() -> None:
    packed = gzip.compress(TEXT)
    for cut in range(len(packed)):
        with pytest.raises(FormatError, match=f"in {NEW}"):
            unpack(packed[:cut], NEW)


@pytest.mark.parametrize("tail", [b"x", b"\0" * 8, b"\x1f", b"\x1f\x8b\x08", b"{}"])
def test_anything_after_the_last_member_is_refused(tail: bytes) -> None:
    with pytest.raises(FormatError, match=f"in {NEW}"):
        unpack(gzip.compress(TEXT) + tail, NEW)


def test_wrong_checksum_and_plain_text_are_refused() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    with pytest.raises(FormatError, match=f"expected gzip data, found .*incorrect data check in {NEW}"):
        unpack(bytes(packed), NEW)
    with pytest.raises(FormatError, match=f"expected gzip data, found .*incorrect header check in {NEW}"):
        unpack(TEXT, NEW)


def test_data_that_inflates_beyond_the_limit_is_refused_before_it_is_all_there() -> None:
    bomb = gzip.compress(bytes(50_000_000), 9)
    with pytest.raises(FormatError, match=f"expected at most 1,000,000 bytes of metadata, found more in {NEW}"):
        unpack(bomb, NEW, limit=1_000_000)
    assert len(unpack(gzip.compress(bytes(1_000_000)), NEW, limit=1_000_000)) == 1_000_000
    with pytest.raises(FormatError, match="at most 1,000,000"):
        unpack(gzip.compress(bytes(600_000)) * 2, NEW, limit=1_000_000)


def test_many_small_members_take_no_more_than_linear_time() -> None:
    started = time.thread_time()
    assert unpack(gzip.compress(b"") * 20_000, NEW) == b""
    assert time.thread_time() - started < 5


@given(st.binary(max_size=200), st.integers(0, 255), st.integers(0, 10_000))
def test_damaged_data_gives_text_or_our_error(text: bytes, byte: int, place: int) -> None:
    packed = bytearray(gzip.compress(text))
    packed[place % len(packed)] = byte
    message = f"in {NEW}"
    try:
        unpack(bytes(packed), NEW)
    except FormatError as error:
        message = str(error)
    assert message.endswith(f"in {NEW}")


def test_extension_follows_the_property() -> None:
    key = "write.metadata.compression-codec"
    assert metadata_extension({}) == metadata_extension({key: "NONE"}) == ".metadata.json"
    assert metadata_extension({key: "gzip"}) == metadata_extension({}, "gzip") == ".gz.metadata.json"
    with pytest.raises(InvalidInputError, match=f"expected none or gzip for property `{key}`, found `zstd`"):
        metadata_extension({key: "zstd"})
