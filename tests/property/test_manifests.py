"""Manifests and manifest lists survive their bytes."""

import math
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import read_container
from bergline.format.manifest.avro import (
    parse_manifest,
    parse_manifest_list,
    render_manifest,
    render_manifest_list,
)
from bergline.format.manifest.columns import read_manifest_list
from bergline.format.manifest.inheritance import assign_numbers, inherit
from bergline.format.manifest.list_records import read_list_records
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.manifest.summary import summarize_partitions
from bergline.format.partition.spec import parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import DOUBLE, LONG, STRING, TIMESTAMPTZ, NestedField

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "s", False, STRING),
        NestedField(3, "t", False, TIMESTAMPTZ),
        NestedField(4, "d", False, DOUBLE),
    ),
    schema_id=0,
)
SPEC = parse_partition_by(["bucket(16, id)", "s", "day(t)", "d"], SCHEMA)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
longs = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**63 - 1)
small = st.integers(0, 2**31 - 1)
maps = st.none() | st.dictionaries(small, counts, max_size=3)
bounds = st.none() | st.dictionaries(small, st.binary(max_size=6), max_size=3)
partitions = st.tuples(
    st.none() | st.integers(0, 15),
    st.none() | texts,
    st.none() | st.integers(-700_000, 2_900_000),
    st.none() | st.floats(allow_nan=False),
)
files = st.builds(
    DataFile,
    file_path=texts,
    file_format=st.sampled_from(["PARQUET", "AVRO", "ORC"]),
    partition=partitions,
    record_count=counts,
    file_size_in_bytes=counts,
    content=st.sampled_from(FileContent),
    column_sizes=maps,
    value_counts=maps,
    null_value_counts=maps,
    nan_value_counts=maps,
    lower_bounds=bounds,
    upper_bounds=bounds,
    key_metadata=st.none() | st.binary(max_size=4),
    split_offsets=st.none() | st.lists(counts, max_size=3).map(tuple),
    equality_ids=st.none() | st.lists(small, max_size=3).map(tuple),
    sort_order_id=st.none() | small,
    referenced_data_file=st.none() | texts,
)
numbers = st.none() | counts
entries = st.builds(ManifestEntry, st.sampled_from(EntryStatus), files, numbers, numbers, numbers)
summaries = st.builds(
    FieldSummary,
    st.booleans(),
    st.none() | st.booleans(),
    st.none() | st.binary(max_size=4),
    st.none() | st.binary(max_size=4),
)
manifests = st.builds(
    ManifestFile,
    texts,
    counts,
    small,
    st.sampled_from(ManifestContent),
    longs,
    counts,
    counts,
    small,
    small,
    small,
    counts,
    counts,
    counts,
    st.none() | st.lists(summaries, max_size=3).map(tuple),
    st.none() | st.binary(max_size=4),
)


@settings(max_examples=60)
@given(st.lists(entries, max_size=4))
def test_entries_survive_a_manifest(written: list[ManifestEntry]) -> None:
    assert parse_manifest(render_manifest(written, SCHEMA, SPEC), SPEC, SCHEMA, "x") == written


@settings(max_examples=60)
@given(st.lists(manifests, max_size=4), longs, st.none() | longs, counts)
def test_manifests_survive_a_list(written: list[ManifestFile], snapshot: int, parent: int | None, number: int) -> None:
    assert parse_manifest_list(render_manifest_list(written, snapshot, parent, number), "x") == written


@settings(max_examples=60)
@given(st.lists(manifests, min_size=1, max_size=2), st.data())
def test_damaged_list_gives_manifests_or_a_format_error(written: list[ManifestFile], data: st.DataObject) -> None:
    damaged = bytearray(render_manifest_list(written, 1, None, 1))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    found: list[ManifestFile] = []
    problem = "in l.avro"
    try:
        found = parse_manifest_list(bytes(damaged), "l.avro")
    except FormatError as error:
        problem = str(error)
    assert problem.endswith("in l.avro")
    assert all(isinstance(m, ManifestFile) for m in found)


@settings(max_examples=100)
@given(st.lists(manifests, max_size=4), st.sampled_from([1, 2, 3]), st.data())
def test_records_and_columns_of_a_list_agree(written: list[ManifestFile], version: int, data: st.DataObject) -> None:
    """What is read record by record, known or not, damaged or not, is what columns give; the rest is left to them."""
    if version == 1:
        written = [
            msgspec.structs.replace(m, content=ManifestContent.DATA, sequence_number=0, min_sequence_number=0)
            for m in written
        ]
    if version == 3:
        written = [msgspec.structs.replace(m, first_row_id=data.draw(numbers)) for m in written]
    whole = read_container(render_manifest_list(written, 1, None, 1, format_version=version), "x")
    assert read_list_records(whole) == read_list_records(whole) == read_manifest_list(whole, "x") == written
    for manifest in read_list_records(whole) or ():
        kept = manifest.__dict__[str(version)]
        assert (
            kept == read_container(render_manifest_list([fresh(manifest)], 1, None, 1, format_version=version), "").data
        )
    damaged = bytearray(whole.data)
    for _ in range(data.draw(st.integers(0, 2)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    records = data.draw(st.integers(0, len(written) + 1))
    for content in (bytes(damaged), cut):
        odd = msgspec.structs.replace(whole, blocks=(content,), records=records)
        found = read_list_records(odd)
        assert found is None or found == read_manifest_list(odd, "x")


def fresh(manifest: ManifestFile) -> ManifestFile:
    """The same without what is kept with it."""
    return msgspec.structs.replace(manifest)


@settings(max_examples=60)
@given(st.lists(entries, max_size=4))
def test_summaries_cover_every_partition_value(written: list[ManifestEntry]) -> None:
    struct = SPEC.partition_type(SCHEMA)
    for position, summary in enumerate(summarize_partitions(written, struct)):
        type_ = struct.fields[position].type
        for value in (e.data_file.partition[position] for e in written):
            assert summary.contains_null or value is not None
            if value is not None:
                assert decode_value(type_, summary.lower_bound) <= value <= decode_value(type_, summary.upper_bound)
                assert not (isinstance(value, float) and math.isnan(value))


@given(files, st.integers(1, 2**40), st.integers(1, 2**40), st.integers(1, 2**40))
def test_added_entries_take_the_number_of_the_commit_that_won(
    file: Any, first: int, second: int, snapshot: int
) -> None:
    entry = ManifestEntry(EntryStatus.ADDED, file)
    unassigned = ManifestFile("m", 1, 0, ManifestContent.DATA, snapshot)
    for number in (first, second):
        (manifest,) = assign_numbers([unassigned], snapshot, number)
        (seen,) = inherit([entry], manifest)
        assert (seen.snapshot_id, seen.sequence_number, seen.file_sequence_number) == (snapshot, number, number)
        assert seen.data_file == msgspec.structs.replace(file, spec_id=0)
