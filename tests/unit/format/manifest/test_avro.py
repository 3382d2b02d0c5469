"""Manifests and manifest lists as Avro bytes."""

import io
import json
import uuid
import zlib
from decimal import Decimal
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
from bergline.format.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec, parse_partition_by
from bergline.format.partition.transforms import VOID
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
)

SCHEMA = Schema(fields=(NestedField(1, "id", True, LONG), NestedField(2, "region", False, STRING)), schema_id=4)
BY_REGION = parse_partition_by(["region"], SCHEMA)
FULL_FILE = DataFile(
    file_path="memory:/data/f.parquet",
    file_format="PARQUET",
    partition=("eu",),
    record_count=3,
    file_size_in_bytes=2**40,
    content=FileContent.DATA,
    column_sizes={1: 10, 2: 20},
    value_counts={1: 3, 2: 3},
    null_value_counts={1: 0, 2: 1},
    nan_value_counts={},
    lower_bounds={1: b"\x01" + b"\x00" * 7},
    upper_bounds={1: b"\xff" * 8},
    key_metadata=b"\x00key",
    split_offsets=(4, 2**35),
    equality_ids=(1,),
    sort_order_id=0,
    referenced_data_file="memory:/data/g.parquet",
)
ENTRIES = [
    ManifestEntry(EntryStatus.ADDED, FULL_FILE),
    ManifestEntry(EntryStatus.EXISTING, DataFile("a", "PARQUET", (None,), 0, 0), 2**63 - 1, 1, 1),
    ManifestEntry(EntryStatus.DELETED, DataFile("b", "PARQUET", ("us",), 0, 0), 5, 2, 1),
]
MANIFEST = ManifestFile(
    manifest_path="memory:/m.avro",
    manifest_length=2**40,
    partition_spec_id=0,
    content=ManifestContent.DATA,
    added_snapshot_id=2**63 - 1,
    sequence_number=7,
    min_sequence_number=3,
    added_files_count=1,
    existing_files_count=2,
    deleted_files_count=3,
    added_rows_count=4,
    existing_rows_count=5,
    deleted_rows_count=6,
    partitions=(FieldSummary(True, False, b"eu", b"us"), FieldSummary(False)),
    key_metadata=b"k",
)


def header(data: bytes) -> dict[str, str]:
    return {k: v for k, v in fastavro.reader(io.BytesIO(data)).metadata.items() if not k.startswith("avro.")}


def rewritten(data: bytes, change: Any) -> bytes:
    """The same records under a changed schema, as another writer might have made them."""
    reader = fastavro.reader(io.BytesIO(data))
    records, schema = list(reader), json.loads(reader.metadata["avro.schema"])
    change(schema, records)
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    return out.getvalue()


def test_entries_survive_a_manifest() -> None:
    assert parse_manifest(render_manifest(ENTRIES, SCHEMA, BY_REGION), BY_REGION, SCHEMA, "x") == ENTRIES


def test_manifest_header_says_what_is_inside() -> None:
    found = header(render_manifest([], SCHEMA, BY_REGION))
    assert json.loads(found.pop("schema"))["schema-id"] == 4
    assert json.loads(found.pop("partition-spec"))[0]["transform"] == "identity"
    assert found == {"schema-id": "4", "partition-spec-id": "0", "format-version": "2", "content": "data"}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (BOOLEAN, False),
        (INT, -(2**31)),
        (LONG, 2**63 - 1),
        (FLOAT, 1.5),
        (DOUBLE, -0.1),
        (DATE, -800),
        (TIME, 86_399_999_999),
        (TIMESTAMP, -7),
        (TIMESTAMPTZ, 1_700_000_000_000_001),
        (STRING, "zürich"),
        (BINARY, b"\x00\xff"),
        (FixedType(3), b"abc"),
        (DecimalType(9, 2), Decimal("-14.20")),
        (DecimalType(38, 0), Decimal("9" * 38)),
        (UUID, uuid.UUID(int=77)),
    ],
    ids=str,
)
def test_partition_value_of_every_type_survives(type_: IcebergType, value: Any) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_), NestedField(2, "d", False, type_)), schema_id=0)
    spec = parse_partition_by(["c", "d"], schema)
    entries = [ManifestEntry(EntryStatus.ADDED, DataFile("f", "PARQUET", (value, None), 1, 1))]
    assert parse_manifest(render_manifest(entries, schema, spec), spec, schema, "x") == entries


def test_partition_field_without_a_column_is_null() -> None:
    spec = PartitionSpec(1, (PartitionField(99, 1001, "gone", VOID), *BY_REGION.fields))
    entry = ManifestEntry(EntryStatus.ADDED, DataFile("a", "PARQUET", (None, "eu"), 1, 1, spec_id=1))
    data = render_manifest([entry], SCHEMA, spec)
    assert parse_manifest(data, spec, SCHEMA, "x") == [entry]
    wrong = ManifestEntry(EntryStatus.ADDED, DataFile("a", "PARQUET", (5, "eu"), 1, 1, spec_id=1))
    with pytest.raises(FormatError, match="expected null, found 5"):
        render_manifest([wrong], SCHEMA, spec)


def test_partition_uuid_may_be_written_as_its_bytes() -> None:
    schema = Schema(fields=(NestedField(1, "c", False, UUID),), schema_id=0)
    spec, value = parse_partition_by(["c"], schema), uuid.UUID(int=77)
    entries = [ManifestEntry(EntryStatus.ADDED, DataFile("f", "PARQUET", (value.bytes,), 1, 1))]
    assert parse_manifest(render_manifest(entries, schema, spec), spec, schema, "x")[0].data_file.partition == (value,)


def test_columns_are_found_by_id_not_by_name() -> None:
    def rename(schema: dict[str, Any], records: list[dict[str, Any]]) -> None:
        schema["fields"][0]["name"] = "state"
        for record in records:
            record["state"] = record.pop("status")

    data = rewritten(render_manifest(ENTRIES, SCHEMA, BY_REGION), rename)
    assert parse_manifest(data, BY_REGION, SCHEMA, "x") == ENTRIES


def test_file_format_is_read_in_any_case() -> None:
    def lower(_: dict[str, Any], records: list[dict[str, Any]]) -> None:
        for record in records:
            record["data_file"]["file_format"] = "parquet"

    data = rewritten(render_manifest(ENTRIES, SCHEMA, BY_REGION), lower)
    assert parse_manifest(data, BY_REGION, SCHEMA, "x")[0].data_file.file_format == "PARQUET"


def test_partition_field_missing_in_the_file_reads_as_null() -> None:
    data = render_manifest(
        [ManifestEntry(EntryStatus.ADDED, DataFile("f", "PARQUET", (), 1, 1))], SCHEMA, UNPARTITIONED
    )
    assert parse_manifest(data, BY_REGION, SCHEMA, "x")[0].data_file.partition == (None,)


def test_manifest_list_survives() -> None:
    data = render_manifest_list([MANIFEST, msgspec.structs.replace(MANIFEST, partitions=None)], 9, 8, 7)
    assert parse_manifest_list(data, "x") == [MANIFEST, msgspec.structs.replace(MANIFEST, partitions=None)]
    assert header(data) == {
        "snapshot-id": "9",
        "parent-snapshot-id": "8",
        "sequence-number": "7",
        "format-version": "2",
    }


def test_list_with_more_manifests_than_any_table_has_is_refused_before_they_are_read() -> None:
    data = render_manifest_list([MANIFEST], 8, 7, 5)
    number, record, sync = 1_000_001, read_container(data, "list").data, data[-16:]
    deflated = zlib.compress(record * number, wbits=-zlib.MAX_WBITS)
    head = data[: data.index(sync) + len(sync)]
    crafted = head + encode_long(number) + encode_bytes(deflated) + sync
    assert len(crafted) < 1_000_000
    with pytest.raises(FormatError, match="expected up to 1,000,000 manifests, found 1,000,001 in list"):
        parse_manifest_list(crafted, "list")


def test_root_snapshot_has_the_word_null_as_parent() -> None:
    assert header(render_manifest_list([], 9, None, 1))["parent-snapshot-id"] == "null"


@pytest.mark.parametrize("missing", ["sequence_number", "min_sequence_number"])
def test_unnumbered_manifest_is_never_written(missing: str) -> None:
    with pytest.raises(FormatError, match="sequence number before writing, found none for memory:/m"):
        render_manifest_list([msgspec.structs.replace(MANIFEST, **{missing: None})], 9, None, 1)


def test_list_of_a_v1_writer_reads_as_data_with_number_zero() -> None:
    def to_v1(schema: dict[str, Any], records: list[dict[str, Any]]) -> None:
        gone = {"content", "sequence_number", "min_sequence_number"}
        schema["fields"] = [f for f in schema["fields"] if f["name"] not in gone]
        for record in records:
            for name in gone:
                del record[name]

    (found,) = parse_manifest_list(rewritten(render_manifest_list([MANIFEST], 9, None, 7), to_v1), "x")
    assert (found.content, found.sequence_number, found.min_sequence_number) == (ManifestContent.DATA, 0, 0)


@pytest.mark.parametrize("data", [b"", b"Obj", b"Obj\x01", b"PAR1" * 10, b"\x00" * 100, b"{}"])
def test_what_is_no_avro_is_refused_with_its_source(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"expected an Avro file, found .* in m\.avro"):
        parse_manifest(data, BY_REGION, SCHEMA, "m.avro")
    with pytest.raises(FormatError, match=r"expected an Avro file, found .* in l\.avro"):
        parse_manifest_list(data, "l.avro")


def outcome(data: bytes, spec: PartitionSpec) -> list[ManifestEntry] | FormatError:
    try:
        return parse_manifest(data, spec, SCHEMA, "m.avro")
    except FormatError as error:
        return error


def test_truncated_manifest_is_refused_wherever_it_is_cut() -> None:
    data = render_manifest(ENTRIES, SCHEMA, BY_REGION)
    # cut exactly before its first block the file is a manifest without entries
    results = [outcome(data[:cut], BY_REGION) for cut in range(len(data) - 16)]
    assert [r for r in results if not isinstance(r, FormatError)] in ([], [[]])


@pytest.mark.long
def test_damaged_manifest_gives_entries_or_a_format_error() -> None:
    data = render_manifest(ENTRIES, SCHEMA, BY_REGION)
    damaged = [bytes([*data[:n], data[n] ^ 0xFF, *data[n + 1 :]]) for n in range(len(data))]
    kinds = {type(outcome(d, BY_REGION)) for d in damaged}
    assert kinds == {list, FormatError}


@pytest.mark.parametrize(
    "change",
    [
        lambda schema, _: schema["fields"][4].pop("field-id"),
        lambda _, records: records[0].update(status=9),
        lambda _, records: records[0]["data_file"].update(content=9),
    ],
    ids=["no data_file", "unknown status", "unknown content"],
)
def test_manifest_that_breaks_the_specification_is_refused(change: Any) -> None:
    data = rewritten(render_manifest(ENTRIES, SCHEMA, BY_REGION), change)
    with pytest.raises(FormatError, match=r"in m\.avro"):
        parse_manifest(data, BY_REGION, SCHEMA, "m.avro")


def test_avro_file_of_something_else_is_refused() -> None:
    out = io.BytesIO()
    fastavro.writer(out, {"type": "array", "items": "int"}, [[1]])
    with pytest.raises(FormatError, match=r"expected an Avro record, found .* in m\.avro"):
        parse_manifest_list(out.getvalue(), "m.avro")


def partitions(*values: Any) -> list[ManifestEntry]:
    return [ManifestEntry(EntryStatus.ADDED, DataFile("f", "PARQUET", (v,), 1, 1)) for v in values]


def retyped(data: bytes, type_: Any, value: Any) -> bytes:
    """The same manifest with another type and value of its partition field."""

    def change(schema: dict[str, Any], records: list[dict[str, Any]]) -> None:
        file = next(f for f in schema["fields"] if f["name"] == "data_file")["type"]
        partition = next(f for f in file["fields"] if f["name"] == "partition")["type"]
        partition["fields"][0]["type"] = ["null", type_]
        for record in records:
            record["data_file"]["partition"] = {"c": value}

    return rewritten(data, change)


@pytest.mark.parametrize(
    ("type_", "avro", "value"),
    [
        (INT, "string", "7"),
        (STRING, "bytes", b"7"),
        (BOOLEAN, "int", 1),
        (DOUBLE, "long", 1),
        (BINARY, "string", "x"),
        (FixedType(3), "bytes", b"four"),
        (UUID, "bytes", b"short"),
        (UUID, "string", "no uuid"),
        (DecimalType(9, 2), "bytes", b"\x01" * 17),
        (DecimalType(9, 2), "bytes", b""),
        (DATE, {"type": "record", "name": "inside", "fields": [{"name": "x", "type": "int"}]}, {"x": 1}),
    ],
    ids=str,
)
def test_partition_value_of_another_type_is_refused(type_: IcebergType, avro: Any, value: Any) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),), schema_id=0)
    spec = parse_partition_by(["c"], schema)
    data = retyped(render_manifest(partitions(None), schema, spec), avro, value)
    with pytest.raises(FormatError, match=r"expected `.*` in partition field 1000, found .* in m\.avro"):
        parse_manifest(data, spec, schema, "m.avro")


@pytest.mark.parametrize(
    ("type_", "avro", "value", "expected"),
    [
        (LONG, "int", 7, 7),
        (DATE, "int", 7, 7),
        (DOUBLE, "float", 1.5, 1.5),
        (UUID, "string", str(uuid.UUID(int=77)), uuid.UUID(int=77)),
        (FixedType(3), "bytes", b"abc", b"abc"),
        (DecimalType(20, 2), "bytes", b"\xfe", Decimal("-0.02")),
    ],
    ids=str,
)
def test_partition_value_may_be_of_a_type_that_fits(type_: IcebergType, avro: Any, value: Any, expected: Any) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),), schema_id=0)
    spec = parse_partition_by(["c"], schema)
    data = retyped(render_manifest(partitions(None), schema, spec), avro, value)
    assert parse_manifest(data, spec, schema, "m.avro")[0].data_file.partition == (expected,)


@pytest.mark.parametrize("value", [b"abcde", b"\x0aabcd", None])
@pytest.mark.parametrize("lengths", [False, True])
def test_fixed_values_may_have_the_lengths_that_java_puts_before_them(lengths: bool, value: bytes | None) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, FixedType(5)),), schema_id=0)
    spec = parse_partition_by(["c"], schema)
    entries = [*partitions(value, None, value), *ENTRIES[1:2]]
    container = read_container(render_manifest(entries, schema, spec), "x")
    data = container.data.replace(value, encode_bytes(value)) if value and lengths else container.data
    of_java = {"iceberg.schema": b"{}"} if lengths else {}
    header = container_header({"avro.schema": container.metadata["avro.schema"], **of_java}, b"-" * 16)
    java = header + encode_long(len(entries)) + encode_bytes(data) + b"-" * 16
    assert parse_manifest(java, spec, schema, "m.avro") == entries


@pytest.mark.parametrize(
    ("type_", "value"), [(FixedType(5), b"abcd"), (FLOAT, "x"), (FLOAT, 1e300), (INT, 2**31), (UUID, b"short")], ids=str
)
def test_value_that_does_not_fit_its_column_is_never_written(type_: IcebergType, value: Any) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),), schema_id=0)
    with pytest.raises(FormatError, match=r"expected values that fit their columns, found .* for f"):
        render_manifest(partitions(value), schema, parse_partition_by(["c"], schema))


def test_count_beyond_its_column_is_never_written() -> None:
    with pytest.raises(FormatError, match="beyond 64 bits for memory:/m"):
        render_manifest_list([msgspec.structs.replace(MANIFEST, added_rows_count=2**63)], 9, None, 1)


def test_fixed_values_of_other_writers_are_read_as_the_schema_says() -> None:
    # read in Java's way each of these would be its first byte's length, and the record count lose a byte
    schema = Schema(fields=(NestedField(1, "c", False, FixedType(2)),), schema_id=0)
    spec = parse_partition_by(["c"], schema)
    entries = [ManifestEntry(EntryStatus.ADDED, DataFile("f", "PARQUET", (b"\x04\x04",), 100, 1))]
    assert parse_manifest(render_manifest(entries, schema, spec), spec, schema, "m.avro") == entries


def test_number_that_does_not_fit_its_column_is_refused() -> None:
    def grow(schema: dict[str, Any], records: list[dict[str, Any]]) -> None:
        schema["fields"][0]["type"] = "long"
        records[0]["status"] = 2**40

    data = rewritten(render_manifest(ENTRIES, SCHEMA, BY_REGION), grow)
    with pytest.raises(FormatError, match=r"in m\.avro"):
        parse_manifest(data, BY_REGION, SCHEMA, "m.avro")
    # the same bytes under a schema that says int
    small = data.replace(b'"status","type":"long"', b'"status","type": "int"').replace(
        b'"type": "long", "field-id": 0', b'"type":  "int", "field-id": 0'
    )
    with pytest.raises(FormatError, match=r"in m\.avro"):
        parse_manifest(small, BY_REGION, SCHEMA, "m.avro")
