"""Damaged manifests and manifest lists: what comes out is a FormatError or entries, soon and in little memory."""

import random
import resource
import time
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import (
    Container,
    container_header,
    encode_bytes,
    encode_long,
    read_container,
)
from bergline.format.manifest.avro import parse_manifest, parse_manifest_list, render_manifest, render_manifest_list
from bergline.format.manifest.columns import read_manifest_columns
from bergline.format.manifest.inheritance import inherit, inherit_columns
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from support.fixtures.every_partition import any_file, every_partition, partition_values, vector_file
from support.fixtures.mutations import mutated, mutated_json

_SYNC = b"between two blocks"[:16]
_SECONDS = 20
_MEGABYTES = 300
VERSIONS = st.sampled_from([1, 2, 3])
chances = st.integers(0, 2**32).map(random.Random)


@cache
def manifest(version: int) -> bytes:
    schema, spec = every_partition(version)
    chance = random.Random(version)  # noqa: S311  (the same in every run)
    content = FileContent.DATA if version < 3 else FileContent.POSITION_DELETES
    files = [any_file(f"f{n}", partition_values(spec, schema, n), content, chance) for n in range(6)]
    if version == 3:
        files.append(vector_file("v", partition_values(spec, schema, 1), 1))
    entries = [ManifestEntry(EntryStatus(n % 3), file, 5, 1, 1) for n, file in enumerate(files)]
    kind = ManifestContent.DATA if version < 3 else ManifestContent.DELETES
    return render_manifest(entries, schema, spec, format_version=version, content=kind)


@cache
def manifest_list(version: int) -> bytes:
    summaries = (FieldSummary(True, False, b"a", b"b"), FieldSummary(False))
    number = 0 if version == 1 else 4
    counts = (1, 2, 3, 4, 5, 6)
    rows = [
        ManifestFile(f"m{n}", 9, 0, ManifestContent.DATA, 5, number, number, *counts, summaries, b"k", n)
        for n in (None, 1, 2, 3)
    ]
    return render_manifest_list(rows, 5, None, number, format_version=version, first_row_id=0)


def around(
    container: Container, *, records: int | None = None, data: bytes | None = None, schema: bytes | None = None
) -> bytes:
    """A container without compression, right by itself, around what may be wrong."""
    header = container_header({"avro.schema": schema or container.metadata["avro.schema"]}, _SYNC)
    count = container.records if records is None else records
    return header + encode_long(count) + encode_bytes(container.data if data is None else data) + _SYNC


def check_list(data: bytes) -> None:
    try:
        found = parse_manifest_list(data, "l.avro")
    except FormatError as error:
        assert str(error).endswith("in l.avro")  # noqa: PT017
    else:
        assert all(isinstance(m, ManifestFile) for m in found)


def check_manifest(data: bytes, version: int, first_row_id: int | None) -> None:
    schema, spec = every_partition(version)
    row = ManifestFile("m.avro", 1, 0, ManifestContent.DATA, 5, 4, 1, first_row_id=first_row_id)
    try:
        frame = read_manifest_columns(data, "m.avro")
    except FormatError as error:
        assert str(error).endswith("in m.avro")  # noqa: PT017
        return
    single, columns = [], None
    problems = []
    try:
        single = [e.data_file.first_row_id for e in inherit(parse_manifest(data, spec, schema, "m.avro"), row)]
    except FormatError as error:
        problems.append(str(error))
    try:
        columns = inherit_columns([frame], [row])
    except FormatError as error:
        problems.append(str(error))
    if not problems:
        assert columns is not None
        assert columns["first_row_id"].to_list() == single


@settings(max_examples=100)
@given(VERSIONS, chances, st.booleans())
def test_damaged_files(version: int, chance: random.Random, plain: bool) -> None:
    for data, check in ((manifest(version), check_manifest), (manifest_list(version), None)):
        whole = around(read_container(data, "x")) if plain else data
        damaged = mutated(whole, chance)
        check_list(damaged) if check is None else check(damaged, version, chance.choice([None, 5, 2**63 - 1]))


@settings(max_examples=100)
@given(VERSIONS, chances, st.sampled_from([None, None, 0, 1, 5, 7, 2**20, 2**40, 2**63 - 1]))
def test_damaged_records_in_a_whole_file(version: int, chance: random.Random, records: int | None) -> None:
    container = read_container(manifest(version), "x")
    check_manifest(around(container, data=mutated(container.data, chance), records=records), version, 7)
    container = read_container(manifest_list(version), "x")
    check_list(around(container, data=mutated(container.data, chance), records=records))


@settings(max_examples=100)
@given(VERSIONS, chances)
def test_damaged_schemas(version: int, chance: random.Random) -> None:
    for data in (manifest(version), manifest_list(version)):
        container = read_container(data, "x")
        schema = msgspec.json.encode(mutated_json(msgspec.json.decode(container.metadata["avro.schema"]), chance))
        damaged = around(container, schema=schema)
        check_manifest(damaged, version, 7)
        check_list(damaged)


@pytest.mark.parametrize("number", [2**31, 2**40, 2**62, 2**63 - 1, -1, -(2**31), -(2**62)])
@pytest.mark.parametrize("what", ["items", "pairs", "bytes", "text", "records", "block"])
def test_lengths_and_counts_beyond_the_bytes_cost_nothing(what: str, number: int) -> None:
    schema, spec = every_partition(2)
    file = DataFile(
        "the path",
        "PARQUET",
        partition_values(spec, schema, 0),
        1,
        1,
        column_sizes={7: 2**40 + 7},
        key_metadata=b"the key",
        split_offsets=(2**40 + 5,),
    )
    entries = [ManifestEntry(EntryStatus.ADDED, file)]
    container = read_container(render_manifest(entries, schema, spec), "x")
    huge = encode_long(number)
    parts: dict[str, tuple[bytes, bytes]] = {
        "items": (b"\x02" + encode_long(2**40 + 5), huge + encode_long(2**40 + 5)),
        "pairs": (b"\x02\x0e" + encode_long(2**40 + 7), huge + b"\x0e" + encode_long(2**40 + 7)),
        "bytes": (encode_bytes(b"the key"), huge + b"the key"),
        "text": (encode_bytes(b"the path"), huge + b"the path"),
    }
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if what == "records":
        damaged = around(container, records=number)
    elif what == "block":
        whole = around(container)
        damaged = whole.replace(encode_long(1) + encode_bytes(container.data), encode_long(1) + huge + container.data)
    else:
        old, new = parts[what]
        assert container.data.count(old) == 1
        damaged = around(container, data=container.data.replace(old, new))
    with pytest.raises(FormatError, match=r"in m\.avro"):
        parse_manifest(damaged, spec, schema, "m.avro")
    assert time.process_time() - started < _SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MEGABYTES * 1024


def record(*types: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(types)]}


def doubling(levels: int, width: int) -> dict[str, Any]:
    """A schema whose types hold each other, so that it is endless when written out."""
    inner: Any = "int"
    for level in range(levels):
        inner = record(record(inner, name=f"r{level}"), *([f"r{level}"] * width), name=f"s{level}")
    return inner


@pytest.mark.parametrize(
    "schema",
    [
        doubling(7, 10),
        doubling(3, 200),
        record(),
        record("null"),
        record({"type": "fixed", "name": "g", "size": 2**30}),
        record({"type": "fixed", "name": "g", "size": 2**20}, *(["g"] * 2000)),
        record({"type": "array", "items": {"type": "array", "items": "null"}}),
    ],
    ids=["types in types", "wide", "no fields", "only nulls", "large fixed", "many large fixed", "arrays of nulls"],
)
def test_schemas_that_grow_cost_nothing(schema: dict[str, Any]) -> None:
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    container = Container({"avro.schema": msgspec.json.encode(schema)}, 2**62, (b"\x00" * 100,))
    with pytest.raises(FormatError, match=r"in m\.avro"):
        read_manifest_columns(around(container), "m.avro")
    assert time.process_time() - started < _SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MEGABYTES * 1024
