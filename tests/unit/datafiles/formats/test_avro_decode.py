"""The decoder in plain Python: what is valid Avro, and what is not."""

import io
import itertools
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from bergline.datafiles.formats.avro_decode import decode_records
from bergline.errors import FormatError
from bergline.format.encoding.avro_container import encode_bytes, encode_long


def record(type_: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "v", "type": type_}]}


def decoded(type_: Any, *values: bytes) -> list[Any]:
    found: pa.Array = decode_records(record(type_), [(len(values), b"".join(values))], ["v"])["v"]
    found.validate(full=True)
    return found.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("number", [0, -1, 63, -64, 64, 2**31, 2**63 - 1, -(2**63)])
def test_numbers_of_every_length_are_read(number: int) -> None:
    assert decoded("long", encode_long(number)) == [number]


def test_unions_take_null_in_either_place() -> None:
    one, zero = encode_long(1), encode_long(0)
    assert decoded(["null", "string"], one + encode_bytes(b"a"), zero) == [b"a", None]
    assert decoded(["string", "null"], one, zero + encode_bytes(b"a")) == [None, b"a"]


def test_arrays_come_in_blocks_with_or_without_their_size() -> None:
    items = encode_long(1) + encode_long(2)
    sized = encode_long(-2) + encode_long(len(items)) + items
    array = {"type": "array", "items": "long"}
    assert decoded(array, sized + encode_long(2) + items + b"\0", b"\0") == [[1, 2, 1, 2], []]


def test_nested_nulls_stay_in_their_place() -> None:
    inner = {"type": "record", "name": "i", "fields": [{"name": "l", "type": {"type": "array", "items": "boolean"}}]}
    one, null = encode_long(1), encode_long(0)
    full = one + encode_long(1) + b"\1" + b"\0"
    assert decoded(["null", inner], null, full, null) == [None, {"l": [True]}, None]


@pytest.mark.parametrize(
    ("type_", "data", "found"),
    [
        ("long", b"\xff" * 10 + b"\1", "expected a number of at most 64 bits"),
        ("long", b"\xff" * 9 + b"\2", "expected a number of at most 64 bits"),
        ("long", b"\xff", "found an end after 1 bytes"),
        ("long", b"\0\0", "found 1 bytes behind them"),
        ("boolean", b"\2", "expected a boolean, 0 or 1, found 2"),
        ("double", b"\0" * 7, "found an end after 7 bytes"),
        ("bytes", encode_long(5) + b"abcd", "expected 5 bytes, found 4"),
        ("bytes", encode_long(-5) + b"abcd", "expected -5 bytes, found 4"),
        ({"type": "fixed", "name": "f", "size": 2}, b"a", "expected 2 bytes, found 1"),
        (["null", "long"], encode_long(2), "expected the number of an option, 0 or 1, found 2"),
        ({"type": "array", "items": "long"}, encode_long(2**62) + b"\0" * 9, "found an end after"),
    ],
)
def test_what_is_no_avro_is_a_format_error(type_: Any, data: bytes, found: str) -> None:
    with pytest.raises(FormatError, match=found):
        decoded(type_, data)


def test_damaged_bytes_are_other_values_or_a_format_error() -> None:
    array = {"type": "array", "items": ["null", "string"]}
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", array]}]})
    out = io.BytesIO()
    for values in (None, ["a", None, "long " * 30], []):
        fastavro.schemaless_writer(out, schema, {"v": values})
    whole = out.getvalue()
    for place, byte in itertools.product(range(len(whole)), (0, 1, 2, 3, 0x7F, 0x80, 0xFF)):
        damaged = bytearray(whole)
        damaged[place] = byte
        try:
            found = decode_records(record(["null", array]), [(3, bytes(damaged))], ["v"])["v"]
        except FormatError:
            continue
        found.validate(full=True)
        assert len(found) == 3
