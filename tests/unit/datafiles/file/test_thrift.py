"""Thrift's compact protocol."""

import pytest

from bergline.datafiles.file.thrift import field_header, read_struct, read_struct_list, string_bytes, varint
from bergline.errors import FormatError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x00", {}),
        (b"\x15\x02\x00", {1: 1}),
        (b"\x15\x01\x00", {1: -1}),
        (b"\x11\x12\x00", {1: True, 2: False}),
        (b"\x05\x64\x02\x00", {50: 1}),
        (b"\x18\x02ab\x00", {1: b"ab"}),
        (b"\x17\x00\x00\x00\x00\x00\x00\xf8?\x00", {1: 1.5}),
        (b"\x19\x25\x02\x04\x00", {1: [1, 2]}),
        (b"\x19\xf5\x10" + b"\x02" * 16 + b"\x00", {1: [1] * 16}),
        (b"\x1b\x01\x58\x02\x01a\x00", {1: [(1, b"a")]}),
        (b"\x1b\x00\x00", {1: []}),
        (b"\x1c\x15\x02\x00\x00", {1: {1: 1}}),
    ],
)
def test_structs_are_dictionaries_by_field_id(data: bytes, expected: object) -> None:
    assert read_struct(data) == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "an end inside it"),
        (b"\x18\xff\xff\x03ab", "an end inside it"),
        (b"\x15" + b"\xff" * 1_000_000, "a number without end"),
        (b"\x19\xf5\xff\xff\xff\xff\x0f", "a list of 4,294,967,295 values"),
        (b"\x1d", "a type of Thrift, found 13"),
        (b"\x1c" * 1000, "at most 32 levels"),
        (b"\x17\x00", "an end inside it"),
    ],
)
def test_what_is_no_struct_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        read_struct(data)


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize(("field_id", "after"), [(1, 0), (15, 0), (16, 0), (30, 15), (31, 15), (3, 7)])
def test_what_is_encoded_is_parsed_back(number: int, field_id: int, after: int) -> None:
    first = field_header(after, 5) + varint(7) if after else b""
    data = first + field_header(field_id, 5, after=after) + varint(number) + b"\0"
    assert read_struct(data) == ({after: 7} if after else {}) | {field_id: number}


@pytest.mark.parametrize("text", ["", "a", "ü" * 200])
def test_texts_have_their_length_in_bytes(text: str) -> None:
    assert read_struct(field_header(2, 8) + string_bytes(text) + b"\0") == {2: text.encode()}


def test_structs_of_a_list_are_found_with_their_end_marks() -> None:
    data = b"\x15\x02\x11\x19\x2c" + b"\x15\x02\x00" + b"\x15\x04\x15\x06\x00" + b"\x00"
    assert list(read_struct_list(data, 3)) == [({1: 1}, 7), ({1: 2, 2: 3}, 12)]
    assert data[7] == data[12] == 0
    assert list(read_struct_list(data, 4)) == []
