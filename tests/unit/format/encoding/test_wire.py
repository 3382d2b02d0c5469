"""JSON in and out, and the words of its errors."""

from typing import Any

import msgspec
import pytest

from bergline.errors import FormatError
from bergline.format.encoding.wire import decode_json, describe_decode_error, encode_json
from bergline.format.partition.transforms import Bucket, Transform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, IcebergType, ListType


@pytest.mark.parametrize(
    "data", [b"", b"{", b'["a"', b"[1,]", b"\xff", b'["\\ud800"]', b"[" * 100_000, b"{} {}", b"NaN"]
)
def test_what_is_no_json_is_a_format_error_with_its_source(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"in f\.json"):
        decode_json(data, list[Any], "f.json")


def test_wrong_type_is_told_as_expected_found_place() -> None:
    with pytest.raises(FormatError) as caught:
        decode_json(b'{"a":["x"]}', dict[str, list[int]], "f.json")
    assert str(caught.value) == "expected `int`, found `str` at $[...][0] in f.json"


def test_error_inside_a_nested_type_names_both_places() -> None:
    inner = b'{"type":"struct","fields":[{"id":"x","name":"a","required":true,"type":"int"}]}'
    data = b'{"type":"struct","fields":[{"id":1,"name":"s","required":true,"type":%s}]}' % inner
    with pytest.raises(FormatError, match=r"at `fields\[0\]\.id` at \$\.fields\[0\]\.type in f"):
        decode_json(data, Schema, "f")


def test_types_nested_without_end_are_refused() -> None:
    deep = b'{"type":"list","element-id":1,"element-required":true,"element":' * 5000 + b'"int"' + b"}" * 5000
    with pytest.raises(FormatError, match="in f"):
        decode_json(deep, IcebergType, "f")


@pytest.mark.parametrize("data", [b"5", b"null", b"{}", b'"bucket[0]"'])
def test_transform_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"expected .* at \$ in f"):
        decode_json(data, Transform, "f")


def test_types_and_transforms_are_text() -> None:
    assert encode_json([INT, Bucket(3)]) == b'["int","bucket[3]"]'
    assert decode_json(encode_json(ListType(1, INT, True)), IcebergType, "x") == ListType(1, INT, True)


def test_error_without_place_is_at_the_root() -> None:
    assert describe_decode_error(msgspec.DecodeError("Expected `int`, got `str`")) == "expected `int`, found `str` at $"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff", r"^JSON is malformed: invalid character \(byte 0\) at \$ in file.json$"),
        (b'{"fields": "\xff"}', r"^expected UTF-8, found the byte 0xff in a text at \$ in file.json$"),
    ],
)
def test_broken_text_is_told_in_plain_words(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode_json(data, dict, "file.json")
