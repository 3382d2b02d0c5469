"""A slow Iceberg reader, written from the specification alone: it shares no code with bergline.

It opens every file of a snapshot, prunes nothing, and works row by row in plain Python. Files come from `read`, a
function from location to bytes. Rows are dictionaries by the names of a schema, with `_file`, `_pos`, `_row_id` and
`_last_updated_sequence_number` added.
"""

import datetime as dt
import gzip
import io
import json
import math
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

Read = Callable[[str], bytes]
Row = dict[str, Any]

FILE_PATH, POS = 2147483546, 2147483545
ROW_ID, LAST_UPDATED = 2147483540, 2147483539
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
DELETED = 2


@dataclass
class File:
    """A live file of a snapshot, its numbers filled in."""

    record: dict[int, Any]
    sequence_number: int
    spec: list[dict[str, Any]]
    spec_id: int
    first_row_id: int | None = None
    partition: dict[int, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.partition = self.record.get(102) or {}

    @property
    def content(self) -> int:
        return self.record.get(134) or DATA

    @property
    def path(self) -> str:
        return str(self.record[100])

    @property
    def is_vector(self) -> bool:
        return str(self.record[101]).lower() == "puffin"

    @property
    def about(self) -> str | None:
        """The one data file that a position delete file is about."""
        if self.record.get(143) is not None:
            return str(self.record[143])
        lower, upper = ((self.record.get(i) or {}).get(FILE_PATH) for i in (125, 128))
        return lower.decode() if lower is not None and lower == upper else None

    @property
    def place(self) -> tuple[Any, ...]:
        """Spec and partition, so that NaN equals itself."""
        return self.spec_id, *(_key(self.partition.get(f["field-id"])) for f in self.spec)

    @property
    def is_global(self) -> bool:
        return all(f["transform"] == "void" for f in self.spec)


def load_metadata(read: Read, location: str) -> dict[str, Any]:
    """The metadata of a file, v1 brought into the shape of the later versions."""
    data = read(location)
    metadata: dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if "schemas" not in metadata:
        metadata["schemas"] = [{"schema-id": 0, **metadata["schema"]}]
        metadata["current-schema-id"] = metadata["schemas"][0]["schema-id"]
    if "partition-specs" not in metadata:
        metadata["partition-specs"] = [{"spec-id": 0, "fields": metadata["partition-spec"]}]
    for spec in metadata["partition-specs"]:
        for number, part in enumerate(spec["fields"]):
            part.setdefault("field-id", 1000 + number)
    return metadata


def read_rows(
    read: Read,
    location: str,
    *,
    snapshot_id: int | None = None,
    ref: str = "main",
    schema_id: int | None = None,
    keep: Callable[[Row], bool | None] = lambda _: True,
) -> list[Row]:
    """All rows of a snapshot that are not deleted and that `keep` answers true for."""
    metadata = load_metadata(read, location)
    schema = _schema(metadata, schema_id)
    data, deletes = _live_files(read, metadata, _snapshot(metadata, snapshot_id, ref))
    rows: list[Row] = []
    for file in data:
        applied = _deletes_of(file, deletes)
        deleted = _deleted_positions(read, metadata, file, applied)
        rows += [row for row in _rows_of(read, metadata, file, schema["fields"]) if row["_pos"] not in deleted]
    return [row for row in rows if keep(row)]


def list_files(
    read: Read, location: str, *, snapshot_id: int | None = None, ref: str = "main"
) -> list[tuple[str, int, list[str]]]:
    """Each data file: its path, its data sequence number, and the delete files that apply to it."""
    metadata = load_metadata(read, location)
    data, deletes = _live_files(read, metadata, _snapshot(metadata, snapshot_id, ref))
    return [(f.path, f.sequence_number, sorted(d.path for d in _deletes_of(f, deletes))) for f in data]


def _snapshot(metadata: dict[str, Any], snapshot_id: int | None, ref: str) -> dict[str, Any] | None:
    if snapshot_id is None:
        refs = metadata.get("refs") or {}
        current = metadata.get("current-snapshot-id")
        snapshot_id = refs[ref]["snapshot-id"] if ref in refs else current if ref == "main" else None
    if snapshot_id in {None, -1}:
        return None
    return next(s for s in metadata["snapshots"] if s["snapshot-id"] == snapshot_id)


def _schema(metadata: dict[str, Any], schema_id: int | None) -> dict[str, Any]:
    wanted = metadata["current-schema-id"] if schema_id is None else schema_id
    return next(s for s in metadata["schemas"] if s["schema-id"] == wanted)


# --- manifests ---


def _avro(data: bytes) -> Iterator[dict[int, Any]]:
    """Records of an Avro file by field id, at every level."""
    reader = fastavro.reader(io.BytesIO(data))
    for record in reader:
        yield _numbered(record, reader.writer_schema)


def _numbered(value: Any, schema: Any) -> Any:
    if value is None:
        return None
    if isinstance(schema, list):
        schema = next(s for s in schema if s != "null")
    if not isinstance(schema, dict):
        return value
    if schema["type"] == "record":
        return {f["field-id"]: _numbered(value[f["name"]], f["type"]) for f in schema["fields"] if "field-id" in f}
    if schema["type"] == "array":
        if schema.get("logicalType") == "map":
            return {pair["key"]: pair["value"] for pair in value}
        return [_numbered(v, schema["items"]) for v in value]
    return value


def _live_files(read: Read, metadata: dict[str, Any], snapshot: dict[str, Any] | None) -> tuple[list[File], list[File]]:
    if snapshot is None:
        return [], []
    if "manifest-list" in snapshot:
        manifests = list(_avro(read(snapshot["manifest-list"])))
    else:
        manifests = [{500: path, 502: 0, 503: snapshot["snapshot-id"]} for path in snapshot["manifests"]]
    specs = {s["spec-id"]: s["fields"] for s in metadata["partition-specs"]}
    files: list[File] = []
    for manifest in manifests:
        files += _entries(read, manifest, specs[manifest[502]])
    return [f for f in files if f.content == DATA], [f for f in files if f.content != DATA]


def _entries(read: Read, manifest: dict[int, Any], spec: list[dict[str, Any]]) -> Iterator[File]:
    number = manifest.get(515) or 0
    next_row_id = manifest.get(520)
    for entry in _avro(read(manifest[500])):
        status, record, sequence_number = entry[0], entry[2], entry.get(3)
        if status == DELETED:
            continue
        if sequence_number is None:
            assert number == 0 or status == 1, "a carried-forward entry without a number"
            sequence_number = number
        first_row_id = None
        if manifest.get(520) is not None and (record.get(134) or DATA) == DATA:
            first_row_id = record.get(142)
            if first_row_id is None:
                first_row_id = next_row_id
                next_row_id += record[103]
        yield File(record, sequence_number, spec, manifest[502], first_row_id)


# --- which deletes apply ---


def _deletes_of(data: File, deletes: list[File]) -> list[File]:
    vectors = [
        d for d in deletes if d.is_vector and d.record[143] == data.path and data.sequence_number <= d.sequence_number
    ]
    assert len(vectors) <= 1, "two deletion vectors for one file"
    found = vectors[:]
    for delete in deletes:
        if delete.is_vector:
            continue
        same_place = delete.place == data.place
        if delete.content == POSITION_DELETES:
            in_time = data.sequence_number <= delete.sequence_number
            if not vectors and in_time and same_place and delete.about in {None, data.path}:
                found.append(delete)
        elif data.sequence_number < delete.sequence_number and (same_place or delete.is_global):
            found.append(delete)
    return found


def _deleted_positions(read: Read, metadata: dict[str, Any], data: File, deletes: list[File]) -> set[int]:
    deleted: set[int] = set()
    for delete in deletes:
        if delete.is_vector:
            start, size = delete.record[144], delete.record[145]
            deleted |= set(_vector(read(delete.path)[start : start + size]))
        elif delete.content == POSITION_DELETES:
            fields = [_field(FILE_PATH, "path", "string"), _field(POS, "pos", "long")]
            rows = _rows_of(read, metadata, delete, fields)
            deleted |= {row["pos"] for row in rows if row["path"] == data.path}
        else:
            fields = [_any_field(metadata, i) for i in delete.record[135]]
            names = [f["name"] for f in fields]
            keys = {tuple(_key(row[n]) for n in names) for row in _rows_of(read, metadata, delete, fields)}
            rows = _rows_of(read, metadata, data, fields)
            deleted |= {row["_pos"] for row in rows if tuple(_key(row[n]) for n in names) in keys}
    return deleted


def _vector(blob: bytes) -> Iterator[int]:
    (count,) = struct.unpack_from("<q", blob, 8)
    place = 12
    for _ in range(count):
        (key,) = struct.unpack_from("<I", blob, place + 4)
        bitmap = BitMap.deserialize(blob[place + 8 : -4])
        yield from ((key << 32) + low for low in bitmap)
        place += 4 + len(bitmap.serialize())


def _field(field_id: int, name: str, type_: str) -> dict[str, Any]:
    return {"id": field_id, "name": name, "required": False, "type": type_}


def _any_field(metadata: dict[str, Any], field_id: int) -> dict[str, Any]:
    """A column as the newest schema that has it says, under a name of its own."""
    current = _schema(metadata, None)
    for schema in [current, *reversed(metadata["schemas"])]:
        for found in schema["fields"]:
            if found["id"] == field_id:
                return {**found, "name": f"key-{field_id}"}
    raise AssertionError(field_id)


def _key(value: Any) -> Any:
    """A value that equals as Iceberg compares: NaN equals NaN, -0.0 does not equal 0.0, null equals null."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    return (value,)


# --- rows of one file ---


def _rows_of(read: Read, metadata: dict[str, Any], file: File, fields: list[dict[str, Any]]) -> list[Row]:
    """The rows of a file in these columns; a file of another format has a Parquet file with the same rows beside it."""
    path = file.path if file.record[101] == "PARQUET" else f"{file.path}.parquet"
    with pq.ParquetFile(io.BytesIO(read(path))) as parquet:
        stored = parquet.read().to_pylist()
        columns = list(parquet.schema_arrow)
    if all(_id(c) is None for c in columns):
        columns = _mapped(columns, json.loads(metadata.get("properties", {}).get("schema.name-mapping.default", "[]")))
    by_id = {_id(c): c for c in columns if _id(c) is not None}
    constants = {
        f["source-id"]: file.partition.get(f["field-id"])
        for f in file.spec
        if f["transform"] == "identity" and f["field-id"] in file.partition
    }
    rows: list[Row] = []
    for position, values in enumerate(stored):
        row: Row = {}
        for wanted in fields:
            if wanted["id"] in by_id:
                column = by_id[wanted["id"]]
                row[wanted["name"]] = _converted(values[column.name], column, wanted["type"])
            elif wanted["id"] in constants:
                row[wanted["name"]] = _constant(constants[wanted["id"]], wanted["type"])
            else:
                row[wanted["name"]] = _default(wanted)
        row |= {"_file": file.path, "_pos": position, **_lineage(values, by_id, file, position)}
        rows.append(row)
    return rows


def _lineage(values: Row, by_id: dict[int | None, pa.Field], file: File, position: int) -> Row:
    if file.first_row_id is None:
        return {"_row_id": None, "_last_updated_sequence_number": None}

    def stored(field_id: int) -> Any:
        return values[by_id[field_id].name] if field_id in by_id else None

    row_id, updated = stored(ROW_ID), stored(LAST_UPDATED)
    return {
        "_row_id": file.first_row_id + position if row_id is None else row_id,
        "_last_updated_sequence_number": file.sequence_number if updated is None else updated,
    }


def _id(column: pa.Field) -> int | None:
    found = (column.metadata or {}).get(b"PARQUET:field_id")
    return None if found is None else int(found)


def _mapped(columns: list[pa.Field], mapping: list[dict[str, Any]]) -> list[pa.Field]:
    """Columns with the field ids of a name mapping; those that it does not name have none."""
    by_name = {name: entry for entry in mapping for name in entry["names"]}
    result = []
    for column in columns:
        entry = by_name.get(column.name, {})
        inner, type_ = entry.get("fields", []), column.type
        if pa.types.is_struct(type_):
            type_ = pa.struct(_mapped(list(type_), inner))
        elif pa.types.is_list(type_):
            type_ = pa.list_(_mapped([type_.value_field.with_name("element")], inner)[0])
        elif pa.types.is_map(type_):
            key, value = _mapped([type_.key_field.with_name("key"), type_.item_field.with_name("value")], inner)
            type_ = pa.map_(key, value)
        ids = {"PARQUET:field_id": str(entry["field-id"])} if "field-id" in entry else None
        result.append(pa.field(column.name, type_, column.nullable, ids))
    return result


def _converted(value: Any, column: pa.Field, type_: Any) -> Any:
    """A stored value as the schema has it now."""
    if value is None:
        return None
    if isinstance(type_, dict):
        if type_["type"] == "struct":
            by_id = {_id(c): c for c in column.type}
            return {
                f["name"]: _converted(value[by_id[f["id"]].name], by_id[f["id"]], f["type"])
                if f["id"] in by_id
                else _default(f)
                for f in type_["fields"]
            }
        if type_["type"] == "list":
            return [_converted(v, column.type.value_field, type_["element"]) for v in value]
        keys, items = column.type.key_field, column.type.item_field
        return [(_converted(k, keys, type_["key"]), _converted(v, items, type_["value"])) for k, v in value]
    if type_.startswith("timestamp") and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def _constant(value: Any, type_: str) -> Any:
    """A partition value as a row has it."""
    if isinstance(value, dt.datetime) and type_ in {"timestamp", "timestamp_ns"}:
        return value.replace(tzinfo=None)
    return value


def _default(wanted: dict[str, Any]) -> Any:
    """The value of a column that a file was written without."""
    value, type_ = wanted.get("initial-default"), wanted["type"]
    if value is None or not isinstance(type_, str):
        return None
    if type_ == "date":
        return dt.date.fromisoformat(value)
    if type_ == "time":
        return dt.time.fromisoformat(value)
    if type_.startswith("timestamp"):
        return dt.datetime.fromisoformat(value)
    if type_.startswith("decimal"):
        return Decimal(value)
    if type_ == "uuid":
        return uuid.UUID(value)
    if type_ == "binary" or type_.startswith("fixed"):
        return bytes.fromhex(value)
    return float(value) if type_ in {"float", "double"} else value
