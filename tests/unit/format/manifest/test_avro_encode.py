"""Avro records as bytes."""

import hashlib
import io
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from bergline.format.manifest.avro_encode import encoder, render_container, render_containers

PAIRS = {
    "type": "array",
    "logicalType": "map",
    "items": {
        "type": "record",
        "name": "p",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
    },
}
RECORD: Any = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}],
}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("boolean", True, True),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", -(2**63), -(2**63)),
        ("long", 4095, 4095),
        ("long", 4096, 4096),
        ("float", 1.5, 1.5),
        ("double", -0.1, -0.1),
        ("bytes", b"\x00\xff", b"\x00\xff"),
        ("string", "zürich 😀", "zürich 😀"),
        (["null", "long"], None, None),
        (["null", "long"], 7, 7),
        ({"type": "array", "items": "long"}, [1, 2, 3], [1, 2, 3]),
        ({"type": "array", "items": "long"}, [], []),
        ({"type": "fixed", "name": "f", "size": 3}, b"abc", b"abc"),
        ({"type": "fixed", "name": "f", "size": 16}, uuid.UUID(int=5), uuid.UUID(int=5).bytes),
        (
            {"type": "fixed", "name": "d", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
            Decimal("-14.20"),
            Decimal("-14.20"),
        ),
        (PAIRS, {1: b"a", 5000: b""}, [{"key": 1, "value": b"a"}, {"key": 5000, "value": b""}]),
        (PAIRS, {}, []),
        (RECORD, (5, "x"), {"n": 5, "s": "x"}),
    ],
)
def test_fastavro_reads_what_is_encoded(schema: Any, value: Any, expected: Any) -> None:
    assert fastavro.schemaless_reader(io.BytesIO(encoder(schema)(value)), schema, None) == expected


@pytest.mark.parametrize(("schema", "value"), [("int", 2**31), ("long", 2**63), ("long", -(2**63) - 1)])
def test_numbers_that_do_not_fit_are_refused(schema: str, value: int) -> None:
    with pytest.raises(OverflowError, match=r"beyond (32|64) bits"):
        encoder(schema)(value)


def test_records_are_cut_into_files_of_about_the_target_size() -> None:
    encode = encoder(RECORD)
    records = [encode((n, hashlib.sha512(str(n).encode()).hexdigest() * 5)) for n in range(2000)]
    files = list(render_containers(RECORD, {"k": "v"}, records, 50_000))
    assert [f["n"] for data, _ in files for f in fastavro.reader(io.BytesIO(data))] == list(range(2000))
    assert sum(count for _, count in files) == 2000
    sizes = [len(data) for data, _ in files]
    assert len(sizes) > 3
    assert all(50_000 <= size < 130_000 for size in sizes[:-1])


def test_one_file_without_a_target_size_and_without_records() -> None:
    data = render_container(RECORD, {"k": "v"}, [])
    reader = fastavro.reader(io.BytesIO(data))
    assert (list(reader), reader.metadata["k"]) == ([], "v")
    assert [count for _, count in render_containers(RECORD, {}, [], 10)] == [0]


def test_same_records_give_the_same_bytes() -> None:
    records = [encoder(RECORD)((1, "x"))]
    assert render_container(RECORD, {}, records) == render_container(RECORD, {}, records)
