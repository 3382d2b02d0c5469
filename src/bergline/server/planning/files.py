"""Planned files as JSON of the protocol."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from bergline.format.encoding.wire import encode_json
from bergline.format.manifest.manifest import DataFile, FileContent, partition_key
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.defaults import encode_default
from bergline.format.types.types import IcebergType
from bergline.scan.plan import PlannedFile

_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")
_OPTIONAL = (
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


class PlannedFileJson:
    """Renders the files of one plan, with some statistics."""

    def __init__(self, metadata: TableMetadata, *, columns: frozenset[int], statistics: frozenset[int]) -> None:
        known = columns | metadata.schema.ids.keys()
        self._types = {spec_id: _partition_types(metadata, spec_id, known) for spec_id in metadata.specs_by_id}
        self._statistics = statistics
        self._partitions: dict[Any, Raw] = {}

    def scan_task(self, planned: PlannedFile, left: Raw, references: Sequence[int]) -> Raw:
        """A file, what is left of the filter for its rows, and the indexes of its delete files."""
        data = self.content_file(planned.file)
        if self._statistics:
            data |= _statistics(planned.file, self._statistics)
        task: dict[str, Any] = {"data-file": data, "residual-filter": left}
        return Raw(encode_json(task | ({"delete-file-references": references} if references else {})))

    def content_file(self, file: DataFile) -> dict[str, Any]:
        """A data or delete file."""
        wire: dict[str, Any] = {
            "spec-id": file.spec_id,
            "content": FileContent(file.content).name.lower().replace("_", "-"),
            "file-path": file.file_path,
            "file-format": file.file_format.lower(),
            "partition": self._partition(file),
            "file-size-in-bytes": file.file_size_in_bytes,
            "record-count": file.record_count,
        }
        if file.key_metadata is not None:
            wire["key-metadata"] = file.key_metadata.hex().upper()
        for name in _OPTIONAL:
            if (value := getattr(file, name)) is not None:
                wire[name.replace("_", "-")] = value
        return wire

    def _partition(self, file: DataFile) -> Raw:
        key = partition_key(file)
        found = self._partitions.get(key)
        if found is None:
            values = zip(self._types[file.spec_id], file.partition, strict=True)
            found = self._partitions[key] = Raw(encode_json([_value(type_, value) for type_, value in values]))
        return found


class ScanTasks:
    """The files of one response, each with the indexes of its delete files; `size` is their total in bytes."""

    def __init__(self, json: PlannedFileJson) -> None:
        self._json = json
        self._places: dict[tuple[str, int | None], int] = {}
        self.files: list[Raw] = []
        self.deletes: list[Raw] = []
        self.size = 0

    def add(self, planned: PlannedFile, left: Raw) -> None:
        """One more file."""
        references = [self._place(file) for file in planned.deletes]
        task = self._json.scan_task(planned, left, references)
        self.files.append(task)
        self.size += len(task)

    def _place(self, file: DataFile) -> int:
        key = file.file_path, file.content_offset
        if key not in self._places:
            self._places[key] = len(self.deletes)
            self.deletes.append(Raw(encode_json(self._json.content_file(file))))
            self.size += len(self.deletes[-1])
        return self._places[key]


def _partition_types(metadata: TableMetadata, spec_id: int, known: frozenset[int]) -> tuple[IcebergType | None, ...]:
    """The types of a spec's fields; None where they come from columns that are gone and not read.

    Java cannot read the values of such a field, and needs none.
    """
    spec = metadata.specs_by_id[spec_id]
    types = (f.type for f in spec.partition_type(metadata.schema_for(spec)).fields)
    return tuple(
        t if known.issuperset(f.source_ids or (f.source_id,)) else None for f, t in zip(spec.fields, types, strict=True)
    )


def _value(type_: IcebergType | None, value: Any) -> Any:
    """A partition value; what JSON has no number for is text, as Java writes it."""
    if type_ is None or value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return encode_default(type_, value)


def _statistics(file: DataFile, fields: frozenset[int]) -> dict[str, Any]:
    """Counts and bounds of some columns; bounds are hexadecimal, as Java reads and writes them."""
    counts = {name: getattr(file, name) for name in _COUNTS}
    bounds = {name: _hexadecimal(getattr(file, name)) for name in _BOUNDS}
    wire = {}
    for name, known in (counts | bounds).items():
        selected = {k: v for k, v in (known or {}).items() if k in fields}
        if selected:
            wire[name.replace("_", "-")] = {"keys": list(selected), "values": list(selected.values())}
    return wire


def _hexadecimal(bounds: Mapping[int, bytes] | None) -> dict[int, str]:
    return {k: v.hex().upper() for k, v in (bounds or {}).items()}
