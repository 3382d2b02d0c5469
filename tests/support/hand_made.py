"""Iceberg tables written by hand, file by file: every number, status and partition is what the test says.

Nothing of bergline writes here but deletion vectors, which are compared with Java's bytes elsewhere.
"""

import datetime as dt
import io
import json
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro
import mmh3
import pyarrow as pa
import pyarrow.parquet as pq

from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import position_set
from bergline.format.manifest.manifest import DataFile

Field = dict[str, Any]
Values = dict[int, Any]

FILE_PATH = {"id": 2147483546, "name": "file_path", "required": True, "type": "string"}
POS = {"id": 2147483545, "name": "pos", "required": True, "type": "long"}
LINEAGE = [
    {"id": 2147483540, "name": "_row_id", "required": False, "type": "long"},
    {"id": 2147483539, "name": "_last_updated_sequence_number", "required": False, "type": "long"},
]
EXISTING, ADDED, DELETED = 0, 1, 2
_ARROW = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_EPOCH = dt.date(1970, 1, 1)


@dataclass
class Entry:
    """A file in the making: what its manifest says, and when it was committed."""

    content: int
    spec_id: int
    sequence_number: int
    record: dict[str, Any]
    rows: int
    status: int = ADDED


@dataclass
class HandMadeTable:
    """Schemas, specs and files of one table; `finish` writes the metadata file."""

    version: int
    location: str
    schemas: list[list[Field]]
    specs: list[list[Field]]
    properties: dict[str, str] = field(default_factory=dict)
    names: Sequence[str] = ("f{}",)
    """What files are called in turn, with their number."""
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    snapshots: list[dict[str, Any]] = field(default_factory=list, repr=False)
    log: list[str] = field(default_factory=list)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """What Hypothesis shows: not the bytes of the files."""
        printer.text(f"HandMadeTable(v{self.version}, schemas={self.schemas}, specs={self.specs}, {self.log})")

    def data_file(
        self,
        rows: Sequence[Values],
        *,
        schema: int = 0,
        spec: int = 0,
        sequence_number: int = 1,
        metrics: bool = True,
        ids: bool = True,
        omits: Sequence[int] = (),
        lineage: bool = False,
    ) -> Entry:
        """A data file without some columns; all rows must be in one partition."""
        fields = [f for f in self.schemas[schema] if f["id"] not in omits] + (LINEAGE if lineage else [])
        path, size = self._write_parquet(rows, fields, ids=ids)
        record = {"file_path": path, "file_format": "PARQUET", "record_count": len(rows), "file_size_in_bytes": size}
        record["block_size_in_bytes"] = 67108864
        record["partition"] = self.partition(rows[0], spec)
        if metrics:
            record |= _metrics(rows, fields)
        return Entry(0, spec, sequence_number, {"content": 0, **record}, len(rows))

    def position_deletes(
        self,
        deleted: Sequence[tuple[str, int]],
        *,
        spec: int,
        partition: dict[str, Any],
        sequence_number: int,
        referenced: str | None = None,
        metrics: bool = False,
    ) -> Entry:
        """A position delete file."""
        rows = [{FILE_PATH["id"]: path, POS["id"]: position} for path, position in sorted(deleted)]
        path, size = self._write_parquet(rows, [FILE_PATH, POS])
        record = {"content": 1, "file_path": path, "file_format": "PARQUET", "partition": partition}
        record |= {"record_count": len(rows), "file_size_in_bytes": size, "referenced_data_file": referenced}
        if metrics:
            record |= _metrics(rows, [FILE_PATH, POS])
        return Entry(1, spec, sequence_number, record, len(rows))

    def equality_deletes(
        self,
        rows: Sequence[Values],
        ids: Sequence[int],
        *,
        schema: int,
        spec: int,
        partition: dict[str, Any],
        sequence_number: int,
    ) -> Entry:
        """An equality delete file on some columns of a schema."""
        fields = [f for f in self.schemas[schema] if f["id"] in ids]
        path, size = self._write_parquet(rows, fields)
        record = {"content": 2, "file_path": path, "file_format": "PARQUET", "partition": partition}
        record |= {"record_count": len(rows), "file_size_in_bytes": size, "equality_ids": list(ids)}
        return Entry(2, spec, sequence_number, record, len(rows))

    def deletion_vectors(self, vectors: Sequence[tuple[Entry, Iterable[int]]], sequence_number: int) -> list[Entry]:
        """A Puffin file with a deletion vector for each data file."""
        path = self._path("puffin")
        stated = [DataFile(e.record["file_path"], "PARQUET", (), e.rows, 1) for e, _ in vectors]
        sets = [position_set(positions) for _, positions in vectors]
        content, deletes = deletion_vector_file(path, list(zip(stated, sets, strict=True)), "hand")
        self.files[path] = content
        names = (
            "record_count",
            "file_size_in_bytes",
            "referenced_data_file",
            "content_offset",
            "content_size_in_bytes",
        )
        return [
            Entry(
                1,
                data.spec_id,
                sequence_number,
                {
                    "content": 1,
                    "file_path": path,
                    "file_format": "PUFFIN",
                    "partition": data.record["partition"],
                    **{name: getattr(delete, name) for name in names},
                },
                delete.record_count,
            )
            for (data, _), delete in zip(vectors, deletes, strict=True)
        ]

    def manifest(
        self,
        entries: Sequence[Entry],
        *,
        sequence_number: int,
        snapshot_id: int,
        schema: int = -1,
        first_row_id: int | None = None,
    ) -> dict[str, Any]:
        """A manifest of entries of one spec and kind, written under a schema, and its row for manifest lists."""
        spec_id, is_data = entries[0].spec_id, entries[0].content == 0
        records = []
        for entry in entries:
            inherits = entry.status == ADDED and entry.sequence_number == sequence_number
            number = None if inherits else entry.sequence_number
            records.append(
                {
                    "status": entry.status,
                    "snapshot_id": None if inherits and self.version > 1 else snapshot_id,
                    "sequence_number": number,
                    "file_sequence_number": number,
                    "data_file": entry.record,
                }
            )
        path = self._path("avro")
        header = {
            "schema": json.dumps({"type": "struct", "schema-id": 0, "fields": self.schemas[-1]}),
            "partition-spec": json.dumps(self.specs[spec_id]),
            "partition-spec-id": str(spec_id),
            "format-version": str(self.version),
            "content": "data" if is_data else "deletes",
        }
        types = {f["id"]: f["type"] for f in self.schemas[schema]}
        self.files[path] = _avro_file(self._entry_schema(spec_id, types), records, header)
        counts = {s: [e for e in entries if e.status == s] for s in (ADDED, EXISTING, DELETED)}
        return {
            "manifest_path": path,
            "manifest_length": len(self.files[path]),
            "partition_spec_id": spec_id,
            "content": 0 if is_data else 1,
            "sequence_number": sequence_number,
            "min_sequence_number": min(e.sequence_number for e in entries),
            "added_snapshot_id": snapshot_id,
            "added_files_count": len(counts[ADDED]),
            "existing_files_count": len(counts[EXISTING]),
            "deleted_files_count": len(counts[DELETED]),
            "added_rows_count": sum(e.rows for e in counts[ADDED]),
            "existing_rows_count": sum(e.rows for e in counts[EXISTING]),
            "deleted_rows_count": sum(e.rows for e in counts[DELETED]),
            "partitions": [
                _summary(
                    [e.record["partition"][f["name"]] for e in entries],
                    _result_type(f["transform"], types[f["source-id"]]),
                )
                for f in self.specs[spec_id]
            ],
            "first_row_id": first_row_id,
        }

    def snapshot(
        self, manifests: Sequence[dict[str, Any]], sequence_number: int, schema: int, *, has_list: bool = True
    ) -> int:
        """A snapshot of manifests, in a list or, as old v1 tables have it, named by the snapshot itself; its id."""
        snapshot_id = 1000 + len(self.snapshots)
        snapshot = {
            "snapshot-id": snapshot_id,
            "timestamp-ms": 1_700_000_000_000 + sequence_number,
            "summary": {"operation": "overwrite", "total-records": "0", "total-data-files": "0"},
            "schema-id": schema,
        }
        if has_list:
            path = snapshot["manifest-list"] = self._path("avro")
            header = {"format-version": str(self.version)}
            self.files[path] = _avro_file(_manifest_list_schema(self.version), manifests, header)
        else:
            snapshot["manifests"] = [m["manifest_path"] for m in manifests]
        if self.version > 1:
            snapshot["sequence-number"] = sequence_number
        if self.version >= 3:
            snapshot |= {"first-row-id": 0, "added-rows": 1_000_000}
        self.snapshots.append(snapshot)
        return snapshot_id

    def finish(self) -> str:
        """Write the metadata file with the last snapshot as current; its location."""
        current = self.snapshots[-1]["snapshot-id"] if self.snapshots else -1
        metadata: dict[str, Any] = {
            "format-version": self.version,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": self.location,
            "last-sequence-number": max((s.get("sequence-number", 0) for s in self.snapshots), default=0),
            "last-updated-ms": 1_700_000_100_000,
            "last-column-id": 100,
            "current-schema-id": len(self.schemas) - 1,
            "schemas": [{"type": "struct", "schema-id": i, "fields": s} for i, s in enumerate(self.schemas)],
            "default-spec-id": len(self.specs) - 1,
            "partition-specs": [{"spec-id": i, "fields": s} for i, s in enumerate(self.specs)],
            "last-partition-id": 1100,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": self.properties,
            "current-snapshot-id": current,
            "refs": {"main": {"snapshot-id": current, "type": "branch"}} if self.snapshots else {},
            "snapshots": self.snapshots,
            "statistics": [],
            "partition-statistics": [],
            "snapshot-log": [],
            "metadata-log": [],
        }
        if self.version == 1:
            metadata |= {"schema": metadata["schemas"][-1], "partition-spec": self.specs[-1]}
            del metadata["last-sequence-number"]
        if self.version >= 3:
            metadata["next-row-id"] = 1_000_000
        path = f"{self.location}/metadata/00000-hand.metadata.json"
        self.files[path] = json.dumps(metadata).encode()
        return path

    def partition(self, row: Values, spec: int) -> dict[str, Any]:
        """The partition of a row, by the names of a spec's fields."""
        return {f["name"]: _transformed(row.get(f["source-id"]), f["transform"]) for f in self.specs[spec]}

    def _path(self, ending: str) -> str:
        number = f"{len(self.files):03}"
        if ending == "avro":
            return f"{self.location}/metadata/f{number}.avro"
        return f"{self.location}/data/{self.names[len(self.files) % len(self.names)].format(number)}.{ending}"

    def _write_parquet(self, rows: Sequence[Values], fields: Sequence[Field], *, ids: bool = True) -> tuple[str, int]:
        self.log.append(f"f{len(self.files):03}: {[f['id'] for f in fields]} {list(rows)}")
        columns = [_arrow_field(f, ids=ids) for f in fields]
        arrays = [
            pa.array([_named(r.get(f["id"]), f["type"]) for r in rows], c.type)
            for f, c in zip(fields, columns, strict=True)
        ]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(columns)), out, row_group_size=3)
        path = self._path("parquet")
        self.files[path] = out.getvalue()
        return path, len(self.files[path])

    def _entry_schema(self, spec_id: int, types: dict[int, str]) -> dict[str, Any]:
        partition = [
            _optional(f["field-id"], f["name"], _avro_type(_result_type(f["transform"], types[f["source-id"]])))
            for f in self.specs[spec_id]
        ]
        file = [
            _required(100, "file_path", "string"),
            _required(101, "file_format", "string"),
            _required(102, "partition", {"type": "record", "name": "r102", "fields": partition}),
            _required(103, "record_count", "long"),
            _required(104, "file_size_in_bytes", "long"),
            _optional(109, "value_counts", _avro_map(119, 120, "long")),
            _optional(110, "null_value_counts", _avro_map(121, 122, "long")),
            _optional(137, "nan_value_counts", _avro_map(138, 139, "long")),
            _optional(125, "lower_bounds", _avro_map(126, 127, "bytes")),
            _optional(128, "upper_bounds", _avro_map(129, 130, "bytes")),
        ]
        if self.version == 1:
            file.append(_required(105, "block_size_in_bytes", "long"))
        else:
            file += [
                _required(134, "content", "int"),
                _optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}),
                _optional(143, "referenced_data_file", "string"),
            ]
        if self.version >= 3:
            file += [
                _optional(142, "first_row_id", "long"),
                _optional(144, "content_offset", "long"),
                _optional(145, "content_size_in_bytes", "long"),
            ]
        numbers = [_optional(3, "sequence_number", "long"), _optional(4, "file_sequence_number", "long")]
        fields = [
            _required(0, "status", "int"),
            _optional(1, "snapshot_id", "long"),
            *(numbers if self.version > 1 else []),
            _required(2, "data_file", {"type": "record", "name": "r2", "fields": file}),
        ]
        return {"type": "record", "name": "manifest_entry", "fields": fields}


def _transformed(value: Any, transform: str) -> Any:
    if value is None or transform == "void":
        return None
    if transform.startswith("bucket"):
        data = struct.pack("<q", value) if isinstance(value, int) else value.encode()
        return (mmh3.hash(data) & 0x7FFFFFFF) % int(transform[7:-1])
    if transform.startswith("truncate"):
        width = int(transform[9:-1])
        return value[:width] if isinstance(value, str) else value - value % width
    if transform == "month":
        return (value.year - 1970) * 12 + value.month - 1
    return value


def _result_type(transform: str, source: str) -> str:
    return "int" if transform.startswith("bucket") or transform == "month" else source


def _avro_type(type_: str) -> Any:
    return {"type": "int", "logicalType": "date"} if type_ == "date" else type_


def _summary(values: Sequence[Any], type_: str) -> dict[str, Any]:
    """The range of a partition field over a manifest."""
    present = [v for v in values if v is not None]
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": False,
        "lower_bound": _bound(min(present), type_) if present else None,
        "upper_bound": _bound(max(present), type_) if present else None,
    }


def _metrics(rows: Sequence[Values], fields: Sequence[Field]) -> dict[str, Any]:
    counts: dict[str, list[Any]] = {
        name: [] for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for column in fields:
        if not isinstance(column["type"], str):
            continue
        values = [row.get(column["id"]) for row in rows]
        numbers = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
        counts["value_counts"].append((column["id"], len(values)))
        counts["null_value_counts"].append((column["id"], sum(v is None for v in values)))
        if column["type"] == "double":
            counts["nan_value_counts"].append(
                (column["id"], sum(isinstance(v, float) and math.isnan(v) for v in values))
            )
        if numbers:
            # the smaller zero first, which Python does not tell apart
            ordered = sorted(numbers, key=lambda v: (v, math.copysign(1, v)) if isinstance(v, float) else v)
            counts["lower_bounds"].append((column["id"], _bound(ordered[0], column["type"])))
            counts["upper_bounds"].append((column["id"], _bound(ordered[-1], column["type"])))
    return {name: [{"key": k, "value": v} for k, v in pairs] for name, pairs in counts.items()}


def _bound(value: Any, type_: str) -> bytes:
    if type_ == "string":
        return str(value).encode()
    if type_ == "timestamp":
        return struct.pack("<q", (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))  # noqa: DTZ001
    if type_ == "date":
        return struct.pack("<i", (value - _EPOCH).days)
    return struct.pack({"int": "<i", "long": "<q", "double": "<d"}[type_], value)


def _arrow_field(column: Field, *, ids: bool = True) -> pa.Field:
    metadata = {"PARQUET:field_id": str(column["id"])} if ids else None
    return pa.field(column["name"], _arrow_type(column["type"], ids=ids), not column["required"], metadata)


def _arrow_type(type_: Any, *, ids: bool) -> pa.DataType:
    if isinstance(type_, str):
        return _ARROW[type_]
    if type_["type"] == "struct":
        return pa.struct([_arrow_field(f, ids=ids) for f in type_["fields"]])
    element = {"id": type_["element-id"], "name": "element", "required": False, "type": type_["element"]}
    return pa.list_(_arrow_field(element, ids=ids))


def _named(value: Any, type_: Any) -> Any:
    """Values of structs come by field id, Arrow wants them by name."""
    if value is None or isinstance(type_, str) or type_["type"] != "struct":
        return value
    return {f["name"]: value.get(f["id"]) for f in type_["fields"]}


def _required(field_id: int, name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "field-id": field_id}


def _optional(field_id: int, name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": field_id}


def _avro_map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    pair = [_required(key_id, "key", "int"), _required(value_id, "value", value)]
    record = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": pair}
    return {"type": "array", "items": record, "logicalType": "map"}


def _manifest_list_schema(version: int) -> dict[str, Any]:
    fields = [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
        _required(503, "added_snapshot_id", "long"),
        _required(504, "added_files_count", "int"),
        _required(505, "existing_files_count", "int"),
        _required(506, "deleted_files_count", "int"),
        _required(512, "added_rows_count", "long"),
        _required(513, "existing_rows_count", "long"),
        _required(514, "deleted_rows_count", "long"),
    ]
    summary = [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ]
    record = {"type": "record", "name": "r508", "fields": summary}
    fields.append(_optional(507, "partitions", {"type": "array", "items": record, "element-id": 508}))
    if version > 1:
        fields += [
            _required(517, "content", "int"),
            _required(515, "sequence_number", "long"),
            _required(516, "min_sequence_number", "long"),
        ]
    if version >= 3:
        fields.append(_optional(520, "first_row_id", "long"))
    return {"type": "record", "name": "manifest_file", "fields": fields}


def _avro_file(schema: dict[str, Any], records: Sequence[dict[str, Any]], metadata: dict[str, str]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), records, codec="deflate", metadata=metadata)
    return out.getvalue()
