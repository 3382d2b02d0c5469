"""Theta sketches: exact while small, close while large, the same however the values are split."""

import struct

import pytest

from bergline.errors import FormatError, UnsupportedError
from bergline.format.encoding.theta_sketch import (
    NOMINAL_ENTRIES,
    ThetaSketch,
    ThetaSketchBuilder,
    join_sketches,
    parse_theta_sketch,
)


def longs(*values: int) -> list[bytes]:
    return [struct.pack("<q", v) for v in values]


def sketch(values: list[bytes]) -> ThetaSketch:
    builder = ThetaSketchBuilder()
    builder.add(values)
    return builder.build()


def test_sketch_of_no_values_is_javas_empty_sketch() -> None:
    assert sketch([]).to_bytes() == bytes([1, 3, 3, 0, 0, 0x1E, 0, 0])
    assert sketch([]).estimate == 0


def test_sketch_of_one_value_is_a_single_item() -> None:
    data = sketch(longs(7, 7)).to_bytes()
    assert data[:8] == bytes([1, 3, 3, 0, 0, 0x3A, 0xCC, 0x93])
    assert (len(data), parse_theta_sketch(data, "x").estimate) == (16, 1)


def test_empty_values_are_not_counted() -> None:
    assert sketch([b"", b"a", b"b"]).estimate == 2


def test_small_sketches_are_exact_and_ordered() -> None:
    found = sketch(longs(*range(NOMINAL_ENTRIES)))
    data = found.to_bytes()
    assert (found.estimate, data[0], len(data)) == (NOMINAL_ENTRIES, 2, 16 + 8 * NOMINAL_ENTRIES)
    assert list(found.hashes) == sorted(found.hashes)
    assert parse_theta_sketch(data, "x") == found


def test_large_sketches_are_close() -> None:
    found = sketch(longs(*range(200_000)))
    assert found.to_bytes()[0] == 3
    assert len(found.hashes) == NOMINAL_ENTRIES
    assert found.estimate == pytest.approx(200_000, rel=0.05)


def test_parts_join_to_the_sketch_of_all_values() -> None:
    values = longs(*range(30_000))
    parts = [sketch(values[n::7] + values[:100]) for n in range(7)]
    assert join_sketches(parts) == sketch(values)
    assert join_sketches([parse_theta_sketch(p.to_bytes(), "x") for p in parts]) == sketch(values)
    assert join_sketches([]) == ThetaSketch()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", FormatError),
        (b"\x01\x03\x03\x00\x00\x3a\xcc\x93", FormatError),
        (sketch(longs(1, 2)).to_bytes()[:-1], FormatError),
        (b"\x04" + sketch(longs(1, 2)).to_bytes()[1:], FormatError),
        (b"\x02\x03\x02" + sketch(longs(1, 2)).to_bytes()[3:], UnsupportedError),
        (sketch(longs(1, 2)).to_bytes().replace(b"\xcc\x93", b"\x00\x01", 1), UnsupportedError),
    ],
)
def test_malformed_sketches_are_refused(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error, match="in x"):
        parse_theta_sketch(data, "x")
