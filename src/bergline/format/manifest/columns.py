"""Manifests and manifest lists as polars columns, exactly as stored: nothing is inherited yet."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from bergline.errors import FormatError
from bergline.format.encoding.avro_columns import decode_columns
from bergline.format.encoding.avro_container import Container, read_container
from bergline.format.encoding.avro_polars import RecordLayout
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.partition.columns import partition_values
from bergline.format.schema.physical_schema import parse_physical_schemas, schema_of
from bergline.format.types.types import IcebergType

_TOGETHER_BYTES = 4 * 1024 * 1024
_COUNTS = pl.List(pl.Struct({"key": pl.Int64, "value": pl.Int64}))
_BOUNDS = pl.List(pl.Struct({"key": pl.Int64, "value": pl.Binary}))
_SUMMARIES = pl.List(
    pl.Struct({"contains_null": pl.Boolean, "contains_nan": pl.Boolean, "lower": pl.Binary, "upper": pl.Binary})
)
_ENTRY = {0: ("status", pl.Int32), 1: ("snapshot_id", pl.Int64), 3: ("sequence_number", pl.Int64)} | {
    4: ("file_sequence_number", pl.Int64)
}
_MAPS: dict[int, tuple[str, Any, int, int]] = {
    108: ("column_sizes", _COUNTS, 117, 118),
    109: ("value_counts", _COUNTS, 119, 120),
    110: ("null_value_counts", _COUNTS, 121, 122),
    137: ("nan_value_counts", _COUNTS, 138, 139),
    125: ("lower_bounds", _BOUNDS, 126, 127),
    128: ("upper_bounds", _BOUNDS, 129, 130),
}
_FILE: dict[int, tuple[str, Any]] = {
    134: ("content", pl.Int32),
    100: ("file_path", pl.String),
    101: ("file_format", pl.String),
    103: ("record_count", pl.Int64),
    104: ("file_size_in_bytes", pl.Int64),
    **{field_id: (name, type_) for field_id, (name, type_, _, _) in _MAPS.items()},
    131: ("key_metadata", pl.Binary),
    132: ("split_offsets", pl.List(pl.Int64)),
    135: ("equality_ids", pl.List(pl.Int64)),
    140: ("sort_order_id", pl.Int32),
    142: ("first_row_id", pl.Int64),
    143: ("referenced_data_file", pl.String),
    144: ("content_offset", pl.Int64),
    145: ("content_size_in_bytes", pl.Int64),
}
_LIST: dict[int, tuple[str, Any]] = {
    500: ("manifest_path", pl.String),
    501: ("manifest_length", pl.Int64),
    502: ("partition_spec_id", pl.Int32),
    517: ("content", pl.Int32),
    515: ("sequence_number", pl.Int64),
    516: ("min_sequence_number", pl.Int64),
    503: ("added_snapshot_id", pl.Int64),
    504: ("added_files_count", pl.Int32),
    505: ("existing_files_count", pl.Int32),
    506: ("deleted_files_count", pl.Int32),
    512: ("added_rows_count", pl.Int64),
    513: ("existing_rows_count", pl.Int64),
    514: ("deleted_rows_count", pl.Int64),
    507: ("partitions", _SUMMARIES),
    519: ("key_metadata", pl.Binary),
    520: ("first_row_id", pl.Int64),
}


def _names(columns: Mapping[int, tuple[str, Any]]) -> dict[int, str]:
    return {field_id: column[0] for field_id, column in columns.items()}


_PARTITION_LAYOUT = RecordLayout({}, others=True)
_FILE_LAYOUT = RecordLayout(
    _names(_FILE) | {102: "partition"},
    {"partition": _PARTITION_LAYOUT}
    | {name: RecordLayout({key: "key", value: "value"}) for name, _, key, value in _MAPS.values()},
)
_ENTRY_LAYOUT = RecordLayout(_names(_ENTRY) | {2: "data_file"}, {"data_file": _FILE_LAYOUT})
_LIST_LAYOUT = RecordLayout(
    _names(_LIST),
    {"partitions": RecordLayout({509: "contains_null", 518: "contains_nan", 510: "lower", 511: "upper"})},
)
_REQUIRED = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
_REQUIRED_OF_LIST = ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id")
METRICS = frozenset(name for name, *_ in _MAPS.values())
_LISTS = (*sorted(METRICS), "split_offsets", "equality_ids")
ENTRY_COLUMNS: dict[str, Any] = dict(_ENTRY.values()) | dict(_FILE.values())
PHYSICAL_SCHEMA = "physical_schema"
"""The column with the number of each file's physical schema, null if the manifest does not record it."""
_LIST_COLUMNS: dict[str, Any] = dict(_LIST.values())
_FEW = 64  # up to this many entries, Python objects are faster than columns


def read_manifest_columns(data: bytes, source: str) -> pl.DataFrame:
    """The entries of a manifest: ENTRY_COLUMNS, PHYSICAL_SCHEMA, and a column for each partition field id."""
    return read_manifests_columns([(data, source)])[source]


def read_manifests_columns(files: Iterable[tuple[bytes, str]]) -> dict[str, pl.DataFrame]:
    """The entries of several manifests by source; manifests with the same schema are decoded together."""
    return {source: frame for group in manifest_groups(files) for source, frame in decode_manifests(group).items()}


def manifest_groups(files: Iterable[tuple[bytes, str]]) -> Iterator[dict[str, Container]]:
    """Decompressed manifests by source, grouped by schema into batches of a size that decodes efficiently."""
    waiting: dict[bytes, dict[str, Container]] = defaultdict(dict)
    sizes: dict[bytes, int] = defaultdict(int)
    for data, source in files:
        container = read_container(data, source)
        schema = container.metadata["avro.schema"]
        waiting[schema][source] = container
        sizes[schema] += container.size
        if sizes[schema] >= _TOGETHER_BYTES:
            del sizes[schema]
            yield waiting.pop(schema)
    yield from waiting.values()


def decode_manifests(group: Mapping[str, Container]) -> dict[str, pl.DataFrame]:
    """Decode manifests that share a schema."""
    frames = decode_columns(list(group.values()), _ENTRY_LAYOUT, list(group), _entry_columns)
    pairs = zip(group.items(), frames, strict=True)
    return {
        source: frame.with_columns(_physical_schemas(container, frame.height)) for (source, container), frame in pairs
    }


def _physical_schemas(container: Container, entries: int) -> pl.Series:
    runs = parse_physical_schemas(container.metadata, entries)
    if len(runs) == 1:
        return pl.repeat(*runs[0], dtype=pl.Int64, eager=True).alias(PHYSICAL_SCHEMA)
    numbers = [number for number, count in runs for _ in range(count)]
    return pl.Series(PHYSICAL_SCHEMA, numbers, pl.Int64)


def _entry_columns(frame: pl.DataFrame) -> pl.DataFrame:
    if not isinstance(frame.schema.get("data_file"), pl.Struct):
        raise FormatError("expected a column with field id 2, found none")
    frame = frame.unnest("data_file")
    partition = []
    if isinstance(struct := frame.schema.get("partition"), pl.Struct):
        partition = [f.name for f in struct.fields if not f.name.startswith("-")]
        frame = frame.unnest("partition")
    columns = _as(frame, ENTRY_COLUMNS, partition)
    for name in _LISTS:
        _check_inside(columns[name])
    return _check(columns, _REQUIRED, {"status": EntryStatus, "content": FileContent})


def _list_columns(frame: pl.DataFrame) -> pl.DataFrame:
    columns = _as(frame, _LIST_COLUMNS, [])
    _check_inside(columns["partitions"], "contains_null")
    return _check(columns, _REQUIRED_OF_LIST, {"content": ManifestContent})


def read_manifest_list(container: Container, source: str) -> list[ManifestFile]:
    """The manifests in the manifest list of a snapshot."""
    (frame,) = decode_columns([container], _LIST_LAYOUT, [source], _list_columns)
    columns = {name: frame[name].to_list() for name in frame.columns}
    columns["content"] = [ManifestContent(c or 0) for c in columns["content"]]
    columns["partitions"] = [_summaries(p) for p in columns["partitions"]]
    for name in ("sequence_number", "min_sequence_number"):
        columns[name] = [number or 0 for number in columns[name]]
    return [ManifestFile(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def entries_of(
    frame: pl.DataFrame, partition: Mapping[int, IcebergType], spec_id: int, source: str
) -> list[ManifestEntry]:
    """Convert columns to entries; `partition` holds the types of the spec's fields by id, in order."""
    try:
        return _entries(frame, partition, spec_id)
    except FormatError as error:
        raise FormatError(f"{error} in {source}") from error


def _entries(frame: pl.DataFrame, partition: Mapping[int, IcebergType], spec_id: int) -> list[ManifestEntry]:
    return [
        ManifestEntry(EntryStatus(status), file, snapshot_id, sequence_number, file_sequence_number)
        for status, snapshot_id, sequence_number, file_sequence_number, file in zip(
            *(frame[name].to_list() for name in ("status", "snapshot_id", "sequence_number", "file_sequence_number")),
            files_of(frame, partition, spec_id),
            strict=True,
        )
    ]


def files_of(frame: pl.DataFrame, partition: Mapping[int, IcebergType], spec_id: int) -> Iterator[DataFile]:
    """Convert columns to files."""
    columns: dict[str, Any] = {name: frame[name].to_list() for name, _ in _FILE.values() if name not in METRICS}
    columns["content"] = [FileContent(c or 0) for c in columns["content"]]
    columns["file_format"] = [f.upper() for f in columns["file_format"]]
    for name in ("split_offsets", "equality_ids"):
        columns[name] = [None if v is None else tuple(v) for v in columns[name]]
    columns |= {name: _mappings(frame[name]) for name in METRICS}
    columns[PHYSICAL_SCHEMA] = [schema_of(number) for number in frame[PHYSICAL_SCHEMA].to_list()]
    values = [partition_values(frame, field_id, type_) for field_id, type_ in partition.items()]
    columns["partition"] = list(zip(*values, strict=True)) if values else [()] * frame.height
    names = tuple(columns)
    for row in zip(*columns.values(), strict=True):
        yield DataFile(spec_id=spec_id, **dict(zip(names, row, strict=True)))


def _as(frame: pl.DataFrame, columns: Mapping[str, Any], others: list[str]) -> pl.DataFrame:
    """The frame with exactly these columns: missing ones are null, narrower ones are widened."""
    found = frame.schema
    wanted = []
    for name, type_ in columns.items():
        if name not in found:
            wanted.append(pl.lit(None, type_).alias(name))
        elif found[name] != type_:
            wanted.append(pl.col(name).cast(type_, strict=True))
        else:
            wanted.append(pl.col(name))
    try:
        return frame.select(*wanted, *others)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise FormatError(f"expected columns of other types, found {str(error).splitlines()[0]}") from error


def _check(frame: pl.DataFrame, required: tuple[str, ...], codes: Mapping[str, Any]) -> pl.DataFrame:
    for name in required:
        if frame[name].null_count():
            raise FormatError(f"expected a value in every `{name}`, found null")
    for name, kinds in codes.items():
        if not frame[name].fill_null(0).is_between(0, len(kinds) - 1).all():
            raise FormatError(f"expected a {name} of 0 to {len(kinds) - 1}, found others")
    return frame


def _check_inside(column: pl.Series, *required: str) -> None:
    """Refuse nulls in lists and in the required fields of their records (by default all fields)."""
    if column.null_count() == len(column):
        return
    items = column.drop_nulls().list.explode(keep_nulls=False, empty_as_null=False)
    fields = items.struct.unnest() if isinstance(items.dtype, pl.Struct) else items.to_frame()
    for name in required or fields.columns:
        if fields[name].null_count():
            raise FormatError(f"expected a value in every `{name}` inside `{column.name}`, found null")


def _mappings(column: pl.Series) -> list[dict[int, Any] | None]:
    """Convert a column of key-value lists to dictionaries."""
    if column.null_count() == len(column):
        return [None] * len(column)
    if len(column) <= _FEW:
        return [None if v is None else {p["key"]: p["value"] for p in v} for v in column.to_list()]
    lengths = column.list.len().to_list()
    pairs = column.drop_nulls().list.explode(keep_nulls=False, empty_as_null=False).struct
    keys, values = pairs.field("key").to_list(), pairs.field("value").to_list()
    out: list[dict[int, Any] | None] = []
    start = 0
    for length in lengths:
        if length is None:
            out.append(None)
            continue
        end = start + length
        out.append(dict(zip(keys[start:end], values[start:end], strict=True)))
        start = end
    return out


def _summaries(records: list[dict[str, Any]] | None) -> tuple[FieldSummary, ...] | None:
    if records is None:
        return None
    return tuple(FieldSummary(bool(r["contains_null"]), r["contains_nan"], r["lower"], r["upper"]) for r in records)
