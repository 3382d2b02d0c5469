"""Manifests and manifest lists as Avro: written with the specification's column names, read by field id."""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from bergline.errors import FormatError, UnsupportedError
from bergline.format.encoding.avro_container import read_container
from bergline.format.encoding.wire import encode_json
from bergline.format.manifest.avro_encode import encoder, render_blocks, render_container, render_containers
from bergline.format.manifest.avro_schema import AvroSchema, manifest_list_schema, manifest_schema
from bergline.format.manifest.columns import entries_of, read_manifest_columns, read_manifest_list
from bergline.format.manifest.list_records import read_list_records
from bergline.format.manifest.manifest import (
    MANIFEST_COUNTS,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.partition.spec import PartitionSpec, result_type
from bergline.format.partition.transforms import UnknownTransform
from bergline.format.schema.physical_schema import render_physical_schemas
from bergline.format.schema.schema import Schema
from bergline.format.types.types import UNKNOWN, StructType

# required in v1; unused for years, and Java writes this constant
_BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
_MOST_FORMS = 256
_LIST_BLOCK = 32
_MOST_MANIFESTS = 1_000_000
_TEXT = "_text"


def render_manifest(
    entries: Iterable[ManifestEntry],
    schema: Schema,
    spec: PartitionSpec,
    *,
    format_version: int = 2,
    content: ManifestContent = ManifestContent.DATA,
) -> bytes:
    """Serialize one manifest."""
    entries = list(entries)
    avro, header, records = _encoded(entries, schema, spec, format_version, content)
    return render_container(avro, header | _physical_schemas(entries), records)


def render_manifests(
    entries: Sequence[ManifestEntry],
    schema: Schema,
    spec: PartitionSpec,
    *,
    format_version: int,
    content: ManifestContent,
    target_size: int,
) -> Iterator[tuple[bytes, Sequence[ManifestEntry]]]:
    """Serialize entries to manifests of about the target size, each returned with its entries."""
    avro, header, records = _encoded(entries, schema, spec, format_version, content)
    start = 0

    def about(first: int, count: int) -> dict[str, str]:
        return _physical_schemas(entries[first : first + count])

    for data, count in render_containers(avro, header, records, target_size, about):
        yield data, entries[start : start + count]
        start += count


def parse_manifest(data: bytes, spec: PartitionSpec, schema: Schema, source: str) -> list[ManifestEntry]:
    """The entries exactly as stored: nothing is inherited yet."""
    return entries_of(read_manifest_columns(data, source), partition_types(spec, schema), spec.spec_id, source)


def partition_types(spec: PartitionSpec, schema: Schema) -> dict[int, Any]:
    """The types of a spec's partition values by field id, in order; `unknown` for unknown transforms."""
    return {
        f.field_id: UNKNOWN if isinstance(f.transform, UnknownTransform) else result_type(f, schema)
        for f in spec.fields
    }


def render_manifest_list(
    manifests: Iterable[ManifestFile],
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    *,
    format_version: int = 2,
    first_row_id: int | None = None,
) -> bytes:
    """Serialize a manifest list; every manifest must have its sequence number."""
    header = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "first-row-id": "null" if first_row_id is None else str(first_row_id),
        "format-version": str(format_version),
    }
    if format_version < 3:  # noqa: PLR2004
        del header["first-row-id"]
    if format_version == 1:
        del header["sequence-number"]
    form, kept_as = _list_form(format_version), str(format_version)
    # nearly all of them were in an earlier list, and carry their encoded record with them
    records = [m.__dict__.get(kept_as) or _list_record(m, form, format_version) for m in manifests]
    return render_blocks(form.schema, header, _list_blocks(records))


def _list_blocks(records: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Blocks, counted from the end: new manifests come first, so all others stay in the blocks that they were in."""
    first = len(records) % _LIST_BLOCK
    if first:
        yield records[:first]
    for start in range(first, len(records), _LIST_BLOCK):
        yield records[start : start + _LIST_BLOCK]


def parse_manifest_list(data: bytes, source: str, most: int = _MOST_MANIFESTS) -> list[ManifestFile]:
    """Parse a snapshot's manifest list; FormatError, before any memory is allocated for them, if there are more."""
    container = read_container(data, source)
    if container.records > most:
        raise FormatError(f"expected up to {most:,} manifests, found {container.records:,} in {source}")
    found = read_list_records(container)
    return read_manifest_list(container, source) if found is None else found


def _encoded(
    entries: Iterable[ManifestEntry],
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent,
) -> tuple[msgspec.Raw, dict[str, str], Iterator[bytes]]:
    if format_version == 1 and content is not ManifestContent.DATA:
        raise FormatError("expected data files in a v1 table, found delete files")
    for field in spec.fields:
        if isinstance(field.transform, UnknownTransform):
            raise UnsupportedError(f"cannot write a manifest of files partitioned by the unknown `{field.transform}`")
    header = {
        "schema": _schema_text(schema),
        "schema-id": str(schema.schema_id),
        "partition-spec": encode_json(spec.fields).decode(),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
        "content": content.name.lower(),
    }
    if format_version == 1:
        del header["content"]
    form = _manifest_form(spec.partition_type(schema), format_version)
    return form.schema, header, (form.encode(e, e.data_file.file_path) for e in entries)


def _schema_text(schema: Schema) -> str:
    """The JSON of a schema, cached on the schema: all manifests of a table contain it."""
    kept = schema.__dict__
    if _TEXT not in kept:
        kept[_TEXT] = encode_json(schema).decode()
    text: str = kept[_TEXT]
    return text


def _physical_schemas(entries: Sequence[ManifestEntry]) -> dict[str, str]:
    files = [e.data_file for e in entries]
    return render_physical_schemas(f.physical_schema if f.content is FileContent.DATA else None for f in files)


class _RecordForm:
    """Encodes values as records of a schema; built once, because building it takes longer than encoding a record."""

    def __init__(self, avro: AvroSchema, values: dict[int, Callable[[Any], Any]]) -> None:
        self.schema = msgspec.Raw(msgspec.json.encode(avro))
        self._encode = encoder(avro)
        self._row = _rows(avro, values)

    def encode(self, value: Any, path: str) -> bytes:
        """The record of a value; FormatError naming the path if it does not fit."""
        try:
            return self._encode(self._row(value))
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error) as error:
            raise FormatError(f"expected values that fit their columns, found {error} for {path}") from error


@cache
def _list_form(format_version: int) -> _RecordForm:
    return _RecordForm(manifest_list_schema(format_version), _MANIFEST_VALUES)


@lru_cache(maxsize=_MOST_FORMS)
def _manifest_form(partition: StructType, format_version: int) -> _RecordForm:
    return _RecordForm(manifest_schema(partition, format_version), _ENTRY_VALUES)


def _list_record(manifest: ManifestFile, form: _RecordForm, format_version: int) -> bytes:
    """The encoded record of a manifest, cached on the manifest: the next manifest lists contain it again."""
    record = form.encode(_check_manifest(manifest, format_version), manifest.manifest_path)
    manifest.__dict__[str(format_version)] = record
    return record


def _rows(avro: AvroSchema, values: dict[int, Callable[[Any], Any]]) -> Callable[[Any], list[Any]]:
    """A function that orders the fields of a value as in the schema."""
    getters = []
    for field in avro["fields"]:
        nested = field["field-id"] == _DATA_FILE_ID
        getters.append(_nested_row(field["type"]) if nested else values[field["field-id"]])
    return lambda value: [get(value) for get in getters]


def _nested_row(avro: AvroSchema) -> Callable[[Any], list[Any]]:
    getters = [_FILE_VALUES[f["field-id"]] for f in avro["fields"]]
    return lambda entry: [get(entry.data_file) for get in getters]


def _check_manifest(manifest: ManifestFile, format_version: int) -> ManifestFile:
    if manifest.sequence_number is None or manifest.min_sequence_number is None:
        raise FormatError(f"expected a sequence number before writing, found none for {manifest.manifest_path}")
    if format_version == 1:
        if manifest.content is not ManifestContent.DATA or manifest.sequence_number != 0:
            raise FormatError(f"expected data with number 0 in a v1 list, found others for {manifest.manifest_path}")
        return manifest
    for name in MANIFEST_COUNTS:
        if getattr(manifest, name) is None:
            raise FormatError(f"expected `{name}` in a manifest list, found none for {manifest.manifest_path}")
    return manifest


_DATA_FILE_ID = 2
_ENTRY_VALUES: dict[int, Callable[[Any], Any]] = {
    0: lambda e: int(e.status),
    1: attrgetter("snapshot_id"),
    3: attrgetter("sequence_number"),
    4: attrgetter("file_sequence_number"),
}
_FILE_VALUES: dict[int, Callable[[Any], Any]] = {
    134: lambda f: int(f.content),
    100: attrgetter("file_path"),
    101: attrgetter("file_format"),
    102: attrgetter("partition"),
    103: attrgetter("record_count"),
    104: attrgetter("file_size_in_bytes"),
    105: lambda _: _BLOCK_SIZE_IN_BYTES,
    108: attrgetter("column_sizes"),
    109: attrgetter("value_counts"),
    110: attrgetter("null_value_counts"),
    137: attrgetter("nan_value_counts"),
    125: attrgetter("lower_bounds"),
    128: attrgetter("upper_bounds"),
    131: attrgetter("key_metadata"),
    132: attrgetter("split_offsets"),
    135: attrgetter("equality_ids"),
    140: attrgetter("sort_order_id"),
    142: attrgetter("first_row_id"),
    143: attrgetter("referenced_data_file"),
    144: attrgetter("content_offset"),
    145: attrgetter("content_size_in_bytes"),
}
_MANIFEST_VALUES: dict[int, Callable[[Any], Any]] = {
    500: attrgetter("manifest_path"),
    501: attrgetter("manifest_length"),
    502: attrgetter("partition_spec_id"),
    517: lambda m: int(m.content),
    515: attrgetter("sequence_number"),
    516: attrgetter("min_sequence_number"),
    503: attrgetter("added_snapshot_id"),
    504: attrgetter("added_files_count"),
    505: attrgetter("existing_files_count"),
    506: attrgetter("deleted_files_count"),
    512: attrgetter("added_rows_count"),
    513: attrgetter("existing_rows_count"),
    514: attrgetter("deleted_rows_count"),
    507: lambda m: None if m.partitions is None else [_summary_row(s) for s in m.partitions],
    519: attrgetter("key_metadata"),
    520: attrgetter("first_row_id"),
}


def _summary_row(summary: FieldSummary) -> tuple[Any, ...]:
    return summary.contains_null, summary.contains_nan, summary.lower_bound, summary.upper_bound
