"""Answers in gzip, whose end is added."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from bergline.server.cache.responses import in_gzip, pack


@given(st.binary(max_size=2000), st.binary(max_size=300))
def test_beginning_and_end_are_one_member_of_gzip(beginning: bytes, end: bytes) -> None:
    reader = zlib.decompressobj(wbits=31)
    assert reader.decompress(in_gzip(pack(beginning), end)) == beginning + end
    assert reader.eof
    assert reader.unused_data == b""


def test_long_ends_are_taken_too() -> None:
    packed = pack(b'{"a":1}' * 10_000)
    assert len(packed.blocks) < 1000
    for end in (b"", b"x" * 70_000, b"y" * 200_000):
        assert zlib.decompress(in_gzip(packed, end), wbits=31) == b'{"a":1}' * 10_000 + end


def test_the_end_is_not_compressed() -> None:
    secret = b'"s3.secret-access-key":"secret secret secret"'
    assert secret in in_gzip(pack(secret * 100), secret)
