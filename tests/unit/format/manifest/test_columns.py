"""Manifests and lists of writers who do things their own way, read by field id."""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import msgspec
import pytest

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import container_header, encode_bytes, encode_long, read_container
from bergline.format.manifest.avro import parse_manifest, parse_manifest_list, render_manifest, render_manifest_list
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.partition.spec import parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, NestedField

SCHEMA = Schema(
    fields=(NestedField(1, "id", True, LONG), NestedField(2, "region", False, STRING), NestedField(3, "n", False, INT)),
    schema_id=0,
)
SPEC = parse_partition_by(["region", "n", "bucket(4, id)"], SCHEMA)
FILE = DataFile(
    file_path="f",
    file_format="PARQUET",
    partition=("eu", -7, 3),
    record_count=3,
    file_size_in_bytes=2**40,
    column_sizes={1: 10, 2: 2**40 + 7},
    value_counts={1: 3},
    null_value_counts={},
    nan_value_counts=None,
    lower_bounds={1: b"\x01", 2: b""},
    upper_bounds={1: b"\xff"},
    key_metadata=b"key",
    split_offsets=(4, 2**35),
    sort_order_id=0,
)
DELETE = msgspec.structs.replace(
    FILE, content=FileContent.EQUALITY_DELETES, equality_ids=(1, 2), partition=(None, None, None), split_offsets=None
)
ENTRIES = [
    ManifestEntry(EntryStatus.ADDED, FILE, 7),
    ManifestEntry(EntryStatus.EXISTING, FILE, 8, 2, 1),
    ManifestEntry(EntryStatus.DELETED, DELETE, 9, 2, 1),
]
MANIFEST = ManifestFile(
    *("m", 9, 2, ManifestContent.DATA, 8, 7, 3, 1, 2, 3, 4, 5, 6),
    partitions=(FieldSummary(True, False, b"eu", b"us"), FieldSummary(False), FieldSummary(False, True)),
    key_metadata=b"k",
    first_row_id=11,
)
MANIFESTS = [MANIFEST, msgspec.structs.replace(MANIFEST, partitions=None, first_row_id=None)]
Change = Callable[[dict[str, Any]], None]


def rewritten(data: bytes, change: Change, records: Callable[[list[Any]], list[Any]] = list, **options: Any) -> bytes:
    """The same values under a schema in which `change` was made to every record type, innermost first."""
    reader = fastavro.reader(io.BytesIO(data))
    schema = json.loads(reader.metadata["avro.schema"])
    found = [walk(schema, record) for record in reader]
    apply(schema, change)
    out = io.BytesIO()
    fastavro.writer(out, schema, records([unwalk(schema, record) for record in found]), **options)
    return out.getvalue()


def walk(schema: Any, value: Any) -> Any:
    """A value with the fields of records named by their ids."""
    match schema:
        case ["null", other]:
            return None if value is None else walk(other, value)
        case {"type": "record", "fields": fields}:
            return {f["field-id"]: walk(f["type"], value[f["name"]]) for f in fields}
        case {"type": "array", "items": items}:
            return [walk(items, v) for v in value]
    return value


def unwalk(schema: Any, value: Any) -> Any:
    """The value again, for a schema with other names; other columns get their samples."""
    match schema:
        case ["null", other] | [other, "null"]:
            return None if value is None else unwalk(other, value)
        case {"type": "record", "fields": fields}:
            return {f["name"]: sample(f) if is_other(f) else unwalk(f["type"], value[f["field-id"]]) for f in fields}
        case {"type": "array", "items": items}:
            return [unwalk(items, v) for v in value]
    return value


def is_other(field: dict[str, Any]) -> bool:
    return field["name"].startswith("other")


def sample(field: dict[str, Any]) -> Any:
    return SAMPLES[int(field["name"].removeprefix("other"))][1]


def apply(schema: Any, change: Change) -> None:
    match schema:
        case list():
            for option in schema:
                apply(option, change)
        case {"type": "record", "fields": fields}:
            for field in fields:
                apply(field["type"], change)
            change(schema)
        case {"type": "array", "items": items}:
            apply(items, change)


def reverse(record: dict[str, Any]) -> None:
    record["fields"].reverse()


def rename(record: dict[str, Any]) -> None:
    for n, field in enumerate(record["fields"]):
        field["name"] = f"column{n}"


def null_last(record: dict[str, Any]) -> None:
    for field in record["fields"]:
        if isinstance(field["type"], list):
            field["type"].reverse()
            field.pop("default", None)


def all_optional(record: dict[str, Any]) -> None:
    for field in record["fields"]:
        if not isinstance(field["type"], list):
            field["type"] = ["null", field["type"]]


SAMPLES: list[tuple[Any, Any]] = [
    ("null", None),
    ("boolean", True),
    ("int", -5),
    ("long", 2**60),
    ("float", 1.5),
    ("double", -1.5),
    ("bytes", b"\x00\x01"),
    ("string", "text"),
    (["null", "long"], 7),
    (["string", "null"], None),
    ({"type": "map", "values": "string"}, {"a": "b", "c": "d"}),
    ({"type": "array", "items": {"type": "array", "items": "int"}}, [[1], [], [2, 3]]),
    ({"type": "fixed", "name": "other_fixed", "size": 3}, b"abc"),
    ({"type": "fixed", "name": "other_decimal", "size": 3, "logicalType": "odd"}, b"\x04ab"),
    ({"type": "enum", "name": "other_enum", "symbols": ["A", "B"]}, "B"),
    ({"type": "record", "name": "other_record", "fields": [{"name": "x", "type": ["null", "string"]}]}, {"x": "y"}),
    ({"type": "record", "name": "other_empty", "fields": []}, {}),
    ({"type": "long", "logicalType": "timestamp-millis"}, 5),
]


def with_unknown_columns(record: dict[str, Any]) -> None:
    known = list(record["fields"])
    record["fields"] = []
    for n, (type_, _) in enumerate(SAMPLES):
        named = isinstance(type_, dict) and "name" in type_
        own = {**type_, "name": f"{record['name']}_{type_['name']}"} if named else type_
        record["fields"] += [*known[n : n + 1], {"name": f"other{n}", "type": own}]
    record["fields"] += [*known[len(SAMPLES) :], {"name": "other02", "type": "int", "field-id": 99_999}]


CHANGES = [reverse, rename, null_last, all_optional, with_unknown_columns]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_manifest_of_another_writer_is_read(change: Change, version: int) -> None:
    data = rewritten(render_manifest(ENTRIES, SCHEMA, SPEC, format_version=version), change)
    assert parse_manifest(data, SPEC, SCHEMA, "x") == ENTRIES


@pytest.mark.parametrize("change", CHANGES)
def test_v1_manifest_of_another_writer_is_read(change: Change) -> None:
    entries = [msgspec.structs.replace(e, sequence_number=None, file_sequence_number=None) for e in ENTRIES[:2]]
    data = rewritten(render_manifest(entries, SCHEMA, SPEC, format_version=1), change)
    assert parse_manifest(data, SPEC, SCHEMA, "x") == entries


@pytest.mark.parametrize("change", CHANGES)
def test_list_of_another_writer_is_read(change: Change) -> None:
    data = rewritten(render_manifest_list(MANIFESTS, 8, None, 7, format_version=3), change)
    assert parse_manifest_list(data, "x") == MANIFESTS


def test_list_with_the_names_of_old_writers_is_read() -> None:
    def old_names(record: dict[str, Any]) -> None:
        for field in record["fields"]:
            field["name"] = field["name"].replace("_files_count", "_data_files_count")

    first = msgspec.structs.replace(MANIFEST, sequence_number=0, min_sequence_number=0, first_row_id=None)
    data = rewritten(render_manifest_list([first], 8, None, 0, format_version=1), old_names)
    assert b"added_data_files_count" in data
    assert parse_manifest_list(data, "x") == [first]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_blocks_may_hold_one_entry_each_in_any_codec(codec: str) -> None:
    data = rewritten(render_manifest(ENTRIES, SCHEMA, SPEC), rename, codec=codec, sync_interval=1)
    assert data.count(data[-16:]) == len(ENTRIES) + 1
    assert parse_manifest(data, SPEC, SCHEMA, "x") == ENTRIES


@pytest.mark.parametrize("times", [1, 100])
def test_few_entries_and_many_are_read_alike(times: int) -> None:
    assert parse_manifest(render_manifest(ENTRIES * times, SCHEMA, SPEC), SPEC, SCHEMA, "x") == ENTRIES * times


def test_arrays_may_come_in_pieces_with_their_sizes() -> None:
    """Avro's form for those who skip: a negative count, then how many bytes the items take."""
    container = read_container(render_manifest(ENTRIES[:1], SCHEMA, SPEC), "x")
    first, second = encode_long(4), encode_long(2**35)
    pieces = encode_long(-1) + encode_long(len(first)) + first + encode_long(1) + second
    assert container.data.count(encode_long(2) + first + second) == 1
    data = container.data.replace(encode_long(2) + first + second, pieces)
    header = container_header({"avro.schema": container.metadata["avro.schema"]}, b"-" * 16)
    odd = header + encode_long(1) + encode_bytes(data) + b"-" * 16
    assert parse_manifest(odd, SPEC, SCHEMA, "x") == ENTRIES[:1]


def test_files_without_blocks_and_with_empty_blocks_are_read() -> None:
    container = read_container(render_manifest(ENTRIES, SCHEMA, SPEC), "x")
    header = container_header({"avro.schema": container.metadata["avro.schema"]}, b"-" * 16)
    nothing = encode_long(0) + encode_bytes(b"") + b"-" * 16
    full = encode_long(3) + encode_bytes(container.data) + b"-" * 16
    assert parse_manifest(header, SPEC, SCHEMA, "x") == []
    assert parse_manifest(header + nothing + full + nothing, SPEC, SCHEMA, "x") == ENTRIES


@pytest.mark.parametrize("name", ["lower_bounds", "column_sizes", "split_offsets"])
def test_null_inside_a_list_is_refused(name: str) -> None:
    """Nobody writes it, but Avro can say it."""

    def optional_items(record: dict[str, Any]) -> None:
        for field in record["fields"]:
            match field:
                case {"name": found, "type": ["null", {"type": "array", "items": items} as array]} if found == name:
                    array["items"] = ["null", items]

    def with_null(records: list[Any]) -> list[Any]:
        records[0]["data_file"][name].append(None)
        return records

    data = render_manifest(ENTRIES, SCHEMA, SPEC)
    assert parse_manifest(rewritten(data, optional_items), SPEC, SCHEMA, "x") == ENTRIES
    with pytest.raises(FormatError, match=rf"inside `{name}`, found null in m"):
        parse_manifest(rewritten(data, optional_items, with_null), SPEC, SCHEMA, "m")


def test_summary_without_contains_null_is_refused() -> None:
    def without(records: list[Any]) -> list[Any]:
        records[0]["partitions"][1]["contains_null"] = None
        return records

    data = render_manifest_list(MANIFESTS, 8, None, 7)
    with pytest.raises(FormatError, match="`contains_null` inside `partitions`, found null in l"):
        parse_manifest_list(rewritten(data, all_optional, without), "l")


def test_known_column_of_a_fixed_type_is_refused() -> None:
    def fixed_count(record: dict[str, Any]) -> None:
        for field in record["fields"]:
            if field["name"] == "record_count":
                field["type"] = {"type": "fixed", "name": "eight", "size": 8}

    def with_bytes(records: list[Any]) -> list[Any]:
        for record in records:
            record["data_file"]["record_count"] = b"12345678"
        return records

    data = rewritten(render_manifest(ENTRIES, SCHEMA, SPEC), fixed_count, with_bytes)
    with pytest.raises(FormatError, match=r"in m$"):
        parse_manifest(data, SPEC, SCHEMA, "m")
