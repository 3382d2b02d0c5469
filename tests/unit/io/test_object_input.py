"""The stream over an object, against one over bytes."""

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.errors import FormatError, InvalidInputError
from bergline.io import object_input
from bergline.io.object_input import ObjectInput

DATA = bytes(range(256)) * 4


def stream_over(data: bytes, tail: int, fetched: list[tuple[int, int]]) -> ObjectInput:
    def fetch(offset: int, length: int) -> bytes:
        fetched.append((offset, length))
        return data[offset : offset + length]

    return ObjectInput("s3://bucket/x", len(data), data[len(data) - tail :], fetch)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("read"), st.integers(-1, 1200)),
            st.tuples(st.just("seek"), st.integers(0, 1200)),
            st.tuples(st.just("end"), st.integers(-1024, 10)),
        ),
        max_size=12,
    ),
    tail=st.sampled_from([0, 1, 100, 1024]),
    ahead=st.sampled_from([1, 64, 5000]),
)
def test_reads_what_a_stream_over_the_bytes_reads(steps: list[tuple[str, int]], tail: int, ahead: int) -> None:
    fetched: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_input, "READ_AHEAD", ahead)
        ours, theirs = stream_over(DATA, tail, fetched), io.BytesIO(DATA)
        for step, number in steps:
            match step:
                case "read":
                    assert ours.read(number) == theirs.read(number)
                case "seek":
                    assert ours.seek(number) == theirs.seek(number)
                case _:
                    assert ours.seek(number, os.SEEK_END) == theirs.seek(number, os.SEEK_END)
            assert ours.tell() == theirs.tell()
    assert all(offset + length <= len(DATA) for offset, length in fetched)


def test_small_reads_share_one_request_and_the_end_needs_none() -> None:
    fetched: list[tuple[int, int]] = []
    data = os.urandom(3 * object_input.READ_AHEAD)
    stream = stream_over(data, 1000, fetched)
    stream.seek(-800, os.SEEK_END)
    stream.read(800)
    assert fetched == []
    stream.seek(50)
    for _ in range(100):
        stream.read(1000)
    assert fetched == [(50, object_input.READ_AHEAD)]


def test_large_read_asks_for_exactly_its_bytes() -> None:
    fetched: list[tuple[int, int]] = []
    data = os.urandom(3 * object_input.READ_AHEAD)
    stream_over(data, 0, fetched).read(object_input.READ_AHEAD + 1)
    assert fetched == [(0, object_input.READ_AHEAD + 1)]


def test_buffer_is_filled() -> None:
    buffer = bytearray(5)
    assert stream_over(b"abc", 0, []).readinto(buffer) == 3
    assert buffer == b"abc\0\0"


def test_answer_that_is_too_short_is_an_error() -> None:
    stream = ObjectInput("s3://bucket/x", 10, b"", lambda _, length: b"x" * (length - 1))
    with pytest.raises(FormatError, match="expected 10 bytes from byte 0, found 9 bytes in all in s3://bucket/x"):
        stream.read()


def test_position_before_the_start_and_closed_streams_are_refused() -> None:
    stream = stream_over(b"abc", 0, [])
    for offset, whence in ((-1, os.SEEK_SET), (-4, os.SEEK_END), (0, 9)):
        with pytest.raises(InvalidInputError, match="cannot seek"):
            stream.seek(offset, whence)
    stream.close()
    with pytest.raises(InvalidInputError, match="closed"):
        stream.read()
