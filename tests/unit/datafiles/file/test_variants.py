"""Shredded variants put together again; PySpark's decoder, which is Python alone, says what they are."""

import datetime as dt
import json
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

from bergline.datafiles.file.variants import read_variants
from bergline.errors import FormatError

EMPTY, NULL = b"\x01\x00\x00", b"\x00"
PAIR = [("value", pa.binary())]


def variant(document: Any) -> VariantVal:
    return VariantVal.parseJson(json.dumps(document))


def value(document: Any) -> bytes:
    return bytes(variant(document).value)


def shredded(type_: pa.DataType) -> pa.DataType:
    """A value that may be shredded as a type."""
    return pa.struct([*PAIR, ("typed_value", type_)])


def column(type_: pa.DataType, rows: list[Any]) -> pa.StructArray:
    return pa.array(rows, pa.struct([("metadata", pa.binary()), *PAIR, ("typed_value", type_)]))


def decoded(array: pa.StructArray) -> list[Any]:
    found = read_variants(array, "v").to_pylist()
    return [None if v is None else VariantVal(v["value"], v["metadata"]).toPython() for v in found]


@pytest.mark.parametrize(
    ("type_", "plain"),
    [
        (pa.bool_(), True),
        (pa.bool_(), False),
        (pa.int8(), -128),
        (pa.int16(), 32_000),
        (pa.int32(), -70_000),
        (pa.int64(), 2**62),
        (pa.float32(), 1.5),
        (pa.float64(), -0.1),
        (pa.decimal128(9, 2), Decimal("-1234567.89")),
        (pa.decimal128(18, 0), Decimal(10**17)),
        (pa.decimal128(38, 10), Decimal("-123456789012345678.0123456789")),
        (pa.date32(), dt.date(1969, 7, 20)),
        (pa.timestamp("us"), dt.datetime(1960, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001  (of no zone)
        (pa.timestamp("us", tz="UTC"), dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)),
        (pa.string(), "short"),
        (pa.string(), "ü" * 31),
        (pa.string(), "long" * 100),
        (pa.binary(), b"\x00\xff"),
    ],
    ids=str,
)
def test_primitives_of_every_type_are_put_back(type_: pa.DataType, plain: Any) -> None:
    rows = [{"metadata": EMPTY, "typed_value": plain}, None, {"metadata": EMPTY, "value": value("other")}]
    assert decoded(column(type_, rows)) == [plain, None, "other"]


@pytest.mark.parametrize(
    ("type_", "plain", "expected"),
    [
        (pa.time64("us"), dt.time(1, 2, 3), bytes([17 << 2]) + struct.pack("<q", 3_723_000_000)),
        (pa.timestamp("ns", tz="UTC"), 1, bytes([18 << 2]) + struct.pack("<q", 1)),
        (pa.timestamp("ns"), -1, bytes([19 << 2]) + struct.pack("<q", -1)),
        (pa.binary(16), uuid.UUID(int=7).bytes, bytes([20 << 2]) + uuid.UUID(int=7).bytes),
        (pa.uuid(), uuid.UUID(int=7).bytes, bytes([20 << 2]) + uuid.UUID(int=7).bytes),
    ],
    ids=str,
)
def test_primitives_that_pyspark_does_not_decode(type_: pa.DataType, plain: Any, expected: bytes) -> None:
    values = pa.array([plain, None], type_)
    arrays = [pa.array([EMPTY] * 2), pa.array([None, NULL]), values]
    array = pa.StructArray.from_arrays(arrays, names=["metadata", "value", "typed_value"])
    assert read_variants(array, "v").field("value").to_pylist() == [expected, NULL]


def test_objects_have_their_shredded_fields_and_the_rest() -> None:
    rest = {"email": "me@here", "deep": {"list": [1, {"x": None}], "b": "t" * 70}, "n": 1.5}
    names = variant(rest | {"kind": 0, "at": 0}).metadata
    type_ = pa.struct([("kind", shredded(pa.string())), ("at", shredded(pa.int64()))])
    both = {"kind": {"typed_value": "login"}, "at": {"typed_value": 7}}
    rows = [
        {"metadata": names, "typed_value": both},
        {"metadata": names, "value": value(rest), "typed_value": both},
        {"metadata": names, "value": value(rest), "typed_value": {"kind": {}, "at": {}}},
        {"metadata": names, "typed_value": {"kind": {"value": NULL}, "at": {"value": value("late")}}},
        {"metadata": names, "typed_value": {"kind": {}, "at": {}}},
        {"metadata": names, "value": value("no object")},
        {"metadata": names, "value": NULL},
        {"metadata": names},
        None,
    ]
    array = column(type_, rows)
    expected = [
        {"kind": "login", "at": 7},
        rest | {"kind": "login", "at": 7},
        rest,
        {"kind": None, "at": "late"},
        {},
        "no object",
        None,
        None,
        None,
    ]
    assert decoded(array) == expected
    assert decoded(array.slice(1, 3)) == expected[1:4]
    assert read_variants(array, "v").is_valid().to_pylist() == [True] * 8 + [False]


def test_arrays_and_objects_are_nested_in_each_other() -> None:
    names = variant({"tags": 0, "x": 0}).metadata
    points = pa.list_(pa.field("element", shredded(pa.struct([("x", shredded(pa.int32()))])), nullable=False))
    type_ = pa.struct([("tags", shredded(points))])
    point = {"typed_value": {"x": {"typed_value": 1}}}
    rows = [
        {"metadata": names, "typed_value": {"tags": {"typed_value": [point, {"value": NULL}, {"value": value("t")}]}}},
        {"metadata": names, "typed_value": {"tags": {"typed_value": []}}},
        {"metadata": names, "typed_value": {"tags": {"value": value([1, 2])}}},
        None,
        {"metadata": names, "typed_value": {"tags": {"typed_value": [point] * 300}}},
    ]
    found = decoded(column(type_, rows))
    assert found == [{"tags": [{"x": 1}, None, "t"]}, {"tags": []}, {"tags": [1, 2]}, None, {"tags": [{"x": 1}] * 300}]
    assert decoded(column(type_, rows).slice(2)) == found[2:]


def test_objects_of_many_fields_are_large() -> None:
    wide = {f"field {n}": n for n in range(300)}
    names = variant(wide | {"z": 0}).metadata
    rows = [{"metadata": names, "value": value(wide), "typed_value": {"z": {"typed_value": "t" * 70_000}}}]
    assert decoded(column(pa.struct([("z", shredded(pa.string()))]), rows)) == [wide | {"z": "t" * 70_000}]


def test_fields_may_lack_their_value_or_their_typed_value() -> None:
    names = variant({"a": 0, "b": 0}).metadata
    type_ = pa.struct([("a", pa.struct(PAIR)), ("b", pa.struct([("typed_value", pa.int64())]))])
    array = pa.array(
        [{"metadata": names, "typed_value": {"a": {"value": value("x")}, "b": {"typed_value": 2}}}],
        pa.struct([("typed_value", type_), ("metadata", pa.binary())]),
    )
    assert decoded(array) == [{"a": "x", "b": 2}]


@pytest.mark.parametrize(
    ("type_", "row", "found"),
    [
        (pa.uint64(), {"metadata": EMPTY, "typed_value": 1}, "a value that is shredded as `uint64`"),
        (pa.int64(), {"typed_value": 1}, "one without metadata"),
        (pa.int64(), {"metadata": EMPTY, "value": NULL, "typed_value": 1}, "a value that is shredded and is there"),
        (pa.struct([("a", shredded(pa.int64()))]), {"metadata": EMPTY, "typed_value": {"a": {"value": NULL}}}, "`a`"),
        (
            pa.struct([("a", shredded(pa.int64()))]),
            {"metadata": EMPTY, "value": NULL, "typed_value": {"a": {}}},
            "beside a value that is no object",
        ),
        (
            pa.struct([("a", shredded(pa.int64()))]),
            {"metadata": b"\x02\x00\x00", "typed_value": {"a": {"typed_value": 1}}},
            "metadata of another version than 1",
        ),
        (
            pa.struct([("a", shredded(pa.int64()))]),
            {"metadata": b"\xc1\xff\xff\xff\xff", "typed_value": {"a": {"typed_value": 1}}},
            "one that ends too early",
        ),
        (
            pa.struct([("a", shredded(pa.int64()))]),
            {"metadata": EMPTY, "value": b"\x02\x05", "typed_value": {"a": {}}},
            "one that ends too early",
        ),
    ],
)
def test_damaged_variants_are_a_format_error(type_: pa.DataType, row: Any, found: str) -> None:
    with pytest.raises(FormatError, match=f"expected `variant` in column `s.v`, found .*{found}"):
        read_variants(column(type_, [row]), "s.v")


@pytest.mark.parametrize("names", [["metadata"], ["value", "typed_value"], ["metadata", "value", "other"]])
def test_other_structs_are_no_variants(names: list[str]) -> None:
    with pytest.raises(FormatError, match="expected `variant` in column `v`, found `struct<"):
        read_variants(pa.array([dict.fromkeys(names, b"x")]), "v")
