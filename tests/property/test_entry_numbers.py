"""The numbers of a manifest's entries: the same record by record as in columns, and never a guess."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import FormatError
from bergline.format.manifest import entry_numbers
from bergline.format.manifest.avro import render_manifest
from bergline.format.manifest.columns import read_manifest_columns
from bergline.format.manifest.entry_numbers import EntryNumbers, read_entry_numbers
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestEntry
from bergline.format.partition.spec import parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BOOLEAN, DOUBLE, LONG, STRING, NestedField
from support.fixtures.mutations import mutated

SCHEMA = Schema(
    fields=tuple(
        NestedField(number, name, False, type_)
        for number, (name, type_) in enumerate({"n": LONG, "s": STRING, "d": DOUBLE, "b": BOOLEAN}.items(), 1)
    ),
    schema_id=0,
)
SPEC = parse_partition_by(["n", "s", "d", "b"], SCHEMA)
longs = st.integers(0, 2**63 - 1)
maybe = st.none() | longs
files = st.builds(
    DataFile,
    file_path=st.text("a/é", max_size=9),
    file_format=st.just("PARQUET"),
    partition=st.tuples(
        maybe, st.none() | st.text("xy", max_size=3), st.none() | st.floats(), st.none() | st.booleans()
    ),
    record_count=longs,
    file_size_in_bytes=longs,
    value_counts=st.none() | st.dictionaries(st.integers(0, 9), longs, max_size=3),
    lower_bounds=st.none() | st.dictionaries(st.integers(0, 9), st.binary(max_size=4), max_size=3),
    split_offsets=st.none() | st.lists(longs, max_size=3).map(tuple),
    key_metadata=st.none() | st.binary(max_size=3),
    first_row_id=maybe,
)
entries = st.lists(st.builds(ManifestEntry, st.sampled_from(EntryStatus), files, longs, maybe, maybe), max_size=4)
versions = st.sampled_from([1, 2, 3])


def rendered(written: list[ManifestEntry], version: int) -> bytes:
    return render_manifest(written, SCHEMA, SPEC, format_version=version)


def in_columns(data: bytes) -> list[EntryNumbers]:
    frame = read_manifest_columns(data, "m.avro").select(EntryNumbers._fields)
    return [EntryNumbers(*row) for row in frame.iter_rows()]


@settings(max_examples=60)
@given(entries, versions)
def test_numbers_are_those_of_the_columns(written: list[ManifestEntry], version: int) -> None:
    data = rendered(written, version)
    header, found = read_entry_numbers(data, "m.avro")
    assert list(found) == in_columns(data)
    assert header["partition-spec-id"] == b"0"


@settings(max_examples=60)
@given(entries, versions, st.randoms(use_true_random=False))
def test_damaged_manifest_gives_the_same_or_a_format_error(
    written: list[ManifestEntry], version: int, chance: random.Random
) -> None:
    damaged = mutated(rendered(written, version), chance)
    try:
        expected = in_columns(damaged)
    except FormatError:
        return
    assert list(read_entry_numbers(damaged, "m.avro")[1]) == expected


def test_large_manifest_and_one_of_another_kind_are_read_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    file = DataFile("a", "PARQUET", (1, "x", 0.5, True), 7, 8)
    data = rendered([ManifestEntry(EntryStatus.ADDED, file, 3, None, None)], 2)
    (found,) = read_entry_numbers(data, "m.avro")[1]
    assert found == EntryNumbers(1, 3, None, None, 0, 7, 8, None)
    monkeypatch.setattr(entry_numbers, "_MOST_RECORDS", 0)
    assert list(read_entry_numbers(data, "m.avro")[1]) == [found]


@pytest.mark.parametrize(
    "schema",
    [
        b"no json",
        b'"record"',
        msgspec.json.encode({"type": "record", "fields": [{"field-id": 0, "type": "string"}]}),
        msgspec.json.encode({"type": "record", "fields": [{"field-id": 0, "type": ["long", "null"]}]}),
        msgspec.json.encode({"type": "record", "fields": [{"field-id": 0, "type": "int"}] * 2}),
        msgspec.json.encode({"type": "record", "fields": [{"field-id": 9, "type": {"type": "fixed", "size": 4}}]}),
        msgspec.json.encode({"type": "record", "fields": [{"type": "int"}]}),
    ],
)
def test_unusual_schema_is_left_to_the_columns(schema: Any) -> None:
    with pytest.raises(entry_numbers.UnusualAvroError):
        entry_numbers._steps(schema)
