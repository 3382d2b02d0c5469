"""Manifests and manifest lists as Avro: written as the specification names the columns, read by field id."""

import datetime as dt
import io
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import fastavro

from bergline.errors import FormatError
from bergline.format.avro_schema import MANIFEST_LIST_SCHEMA, AvroSchema, manifest_schema
from bergline.format.manifest import (
    DataFile,
    EntryStatus,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.partition import PartitionSpec
from bergline.format.schema import Schema
from bergline.format.types import StructType
from bergline.format.values import encode_value
from bergline.format.wire import encode_json

_SYNC_INTERVAL = 1 << 20
_EPOCH_DATE = dt.date(1970, 1, 1)
_EPOCH_NAIVE = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (Avro's local timestamps carry no zone)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def render_manifest(entries: Sequence[ManifestEntry], schema: Schema, spec: PartitionSpec) -> bytes:
    """The bytes of a data manifest."""
    partition = spec.partition_type(schema)
    metadata = {
        "schema": encode_json(schema).decode(),
        "schema-id": str(schema.schema_id),
        "partition-spec": encode_json(spec.fields).decode(),
        "partition-spec-id": str(spec.spec_id),
        "format-version": "2",
        "content": "data",
    }
    avro = manifest_schema(partition)
    names = [f["name"] for f in _child(avro, "data_file", "partition")["fields"]]
    return _write(avro, (_entry_record(e, names) for e in entries), metadata)


def parse_manifest(data: bytes, spec: PartitionSpec, source: str) -> list[ManifestEntry]:
    """The entries as they stand in the file: what is null is not filled in yet."""
    reader = _open(data, source)
    entry = _names_by_id(_record_of(reader.writer_schema, source))
    file_schema = _record_of(_field_type(reader.writer_schema, 2, source), source)
    file = _names_by_id(file_schema)
    partition = _names_by_id(_record_of(_field_type(file_schema, 102, source), source))
    order = [partition.get(f.field_id) for f in spec.fields]
    try:
        return [_parse_entry(record, entry, file, order, spec.spec_id) for record in reader]
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"expected manifest entries, found {_reason(error)} in {source}") from error


def render_manifest_list(
    manifests: Iterable[ManifestFile], snapshot_id: int, parent_snapshot_id: int | None, sequence_number: int
) -> bytes:
    """The bytes of a snapshot's manifest list; every manifest must have its number by now."""
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": "2",
    }
    return _write(MANIFEST_LIST_SCHEMA, (_manifest_record(m) for m in manifests), metadata)


def parse_manifest_list(data: bytes, source: str) -> list[ManifestFile]:
    """The manifests of a snapshot."""
    reader = _open(data, source)
    names = _names_by_id(_record_of(reader.writer_schema, source))
    try:
        return [_parse_manifest(record, names) for record in reader]
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"expected manifests, found {_reason(error)} in {source}") from error


def summarize_partitions(entries: Iterable[ManifestEntry], partition: StructType) -> tuple[FieldSummary, ...]:
    """The range of each partition field over all entries."""
    columns = list(zip(*(e.data_file.partition for e in entries), strict=True)) or [()] * len(partition.fields)
    return tuple(_summary(values, f.type) for values, f in zip(columns, partition.fields, strict=True))


def _summary(values: Sequence[Any], type_: Any) -> FieldSummary:
    nans = [v for v in values if isinstance(v, float) and math.isnan(v)]
    present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    return FieldSummary(
        contains_null=any(v is None for v in values),
        contains_nan=bool(nans),
        lower_bound=encode_value(type_, min(present)) if present else None,
        upper_bound=encode_value(type_, max(present)) if present else None,
    )


def _entry_record(entry: ManifestEntry, partition_names: Sequence[str]) -> dict[str, Any]:
    file = entry.data_file
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": {
            "content": int(file.content),
            "file_path": file.file_path,
            "file_format": file.file_format,
            "partition": dict(zip(partition_names, map(_avro_value, file.partition), strict=True)),
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            "column_sizes": _pairs(file.column_sizes),
            "value_counts": _pairs(file.value_counts),
            "null_value_counts": _pairs(file.null_value_counts),
            "nan_value_counts": _pairs(file.nan_value_counts),
            "lower_bounds": _pairs(file.lower_bounds),
            "upper_bounds": _pairs(file.upper_bounds),
            "key_metadata": file.key_metadata,
            "split_offsets": _list(file.split_offsets),
            "equality_ids": _list(file.equality_ids),
            "sort_order_id": file.sort_order_id,
            "referenced_data_file": file.referenced_data_file,
        },
    }


def _parse_entry(
    record: Mapping[str, Any],
    entry: Mapping[int, str],
    file: Mapping[int, str],
    partition: Sequence[str | None],
    spec_id: int,
) -> ManifestEntry:
    data = record[entry[2]]

    def optional(field_id: int) -> Any:
        return data.get(file[field_id]) if field_id in file else None

    values = data[file[102]]
    return ManifestEntry(
        status=EntryStatus(record[entry[0]]),
        snapshot_id=record.get(entry.get(1, "")),
        sequence_number=record.get(entry.get(3, "")),
        file_sequence_number=record.get(entry.get(4, "")),
        data_file=DataFile(
            content=FileContent(optional(134) or 0),
            file_path=data[file[100]],
            file_format=data[file[101]].upper(),
            partition=tuple(None if name is None else _plain_value(values[name]) for name in partition),
            record_count=data[file[103]],
            file_size_in_bytes=data[file[104]],
            spec_id=spec_id,
            column_sizes=_mapping(optional(108)),
            value_counts=_mapping(optional(109)),
            null_value_counts=_mapping(optional(110)),
            nan_value_counts=_mapping(optional(137)),
            lower_bounds=_mapping(optional(125)),
            upper_bounds=_mapping(optional(128)),
            key_metadata=optional(131),
            split_offsets=_tuple(optional(132)),
            equality_ids=_tuple(optional(135)),
            sort_order_id=optional(140),
            referenced_data_file=optional(143),
        ),
    )


def _manifest_record(manifest: ManifestFile) -> dict[str, Any]:
    if manifest.sequence_number is None or manifest.min_sequence_number is None:
        raise FormatError(f"expected a sequence number before writing, found none for {manifest.manifest_path}")
    summaries = manifest.partitions
    return {
        "manifest_path": manifest.manifest_path,
        "manifest_length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "content": int(manifest.content),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        "added_files_count": manifest.added_files_count,
        "existing_files_count": manifest.existing_files_count,
        "deleted_files_count": manifest.deleted_files_count,
        "added_rows_count": manifest.added_rows_count,
        "existing_rows_count": manifest.existing_rows_count,
        "deleted_rows_count": manifest.deleted_rows_count,
        "partitions": None
        if summaries is None
        else [
            {
                "contains_null": s.contains_null,
                "contains_nan": s.contains_nan,
                "lower_bound": s.lower_bound,
                "upper_bound": s.upper_bound,
            }
            for s in summaries
        ],
        "key_metadata": manifest.key_metadata,
    }


def _parse_manifest(record: Mapping[str, Any], names: Mapping[int, str]) -> ManifestFile:
    def optional(field_id: int) -> Any:
        return record.get(names[field_id]) if field_id in names else None

    partitions = optional(507)
    return ManifestFile(
        manifest_path=record[names[500]],
        manifest_length=record[names[501]],
        partition_spec_id=record[names[502]],
        content=ManifestContent(optional(517) or 0),
        sequence_number=optional(515) or 0,
        min_sequence_number=optional(516) or 0,
        added_snapshot_id=record[names[503]],
        added_files_count=optional(504),
        existing_files_count=optional(505),
        deleted_files_count=optional(506),
        added_rows_count=optional(512),
        existing_rows_count=optional(513),
        deleted_rows_count=optional(514),
        partitions=None if partitions is None else tuple(FieldSummary(**_known_summary(p)) for p in partitions),
        key_metadata=optional(519),
    )


def _known_summary(record: Mapping[str, Any]) -> dict[str, Any]:
    return {k: record.get(k) for k in ("contains_null", "contains_nan", "lower_bound", "upper_bound")}


def _write(schema: AvroSchema, records: Iterable[dict[str, Any]], metadata: dict[str, str]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate", metadata=metadata, sync_interval=_SYNC_INTERVAL)
    return out.getvalue()


def _open(data: bytes, source: str) -> Any:
    try:
        return fastavro.reader(io.BytesIO(data))
    except Exception as error:
        raise FormatError(f"expected an Avro file, found {_reason(error)} in {source}") from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} ({error})" if str(error) else type(error).__name__


def _record_of(schema: Any, source: str) -> AvroSchema:
    """A record schema, also inside a union with null."""
    options = schema if isinstance(schema, list) else [schema]
    for option in options:
        if isinstance(option, dict) and option.get("type") == "record":
            return option
    raise FormatError(f"expected an Avro record, found {str(schema)[:80]} in {source}")


def _field_type(record: Any, field_id: int, source: str) -> Any:
    for field in record["fields"]:
        if field.get("field-id") == field_id:
            return field["type"]
    raise FormatError(f"expected a column with field id {field_id}, found none in {source}")


def _names_by_id(record: AvroSchema) -> dict[int, str]:
    return {f["field-id"]: f["name"] for f in record["fields"] if "field-id" in f}


def _child(schema: AvroSchema, *path: str) -> AvroSchema:
    for name in path:
        schema = next(f["type"] for f in schema["fields"] if f["name"] == name)
    return schema


def _pairs(values: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    return None if values is None else [{"key": k, "value": v} for k, v in values.items()]


def _mapping(pairs: Iterable[Mapping[str, Any]] | None) -> dict[int, Any] | None:
    return None if pairs is None else {p["key"]: p["value"] for p in pairs}


def _tuple(values: Iterable[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _list(values: Iterable[Any] | None) -> list[Any] | None:
    # fastavro reads a tuple in a union as (type name, value)
    return None if values is None else list(values)


def _avro_value(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value


def _plain_value(value: Any) -> Any:
    """Fastavro's dates and times as days and microseconds."""
    match value:
        case dt.datetime(tzinfo=None):
            return (value - _EPOCH_NAIVE) // _MICROSECOND
        case dt.datetime():
            return (value - _EPOCH_UTC) // _MICROSECOND
        case dt.date():
            return (value - _EPOCH_DATE).days
        case dt.time():
            return (dt.datetime.combine(_EPOCH_DATE, value) - _EPOCH_NAIVE) // _MICROSECOND
        case Decimal() | uuid.UUID() | None:
            return value
    return value
