"""Planned files in the protocol's words."""

from collections.abc import Iterable, Mapping
from typing import Any

from bergline.format.defaults import encode_default
from bergline.format.manifest import DataFile, FileContent
from bergline.format.metadata import TableMetadata
from bergline.format.types import IcebergType
from bergline.scan.plan import PlannedFile

_OPTIONAL = (
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


def scan_tasks(metadata: TableMetadata, files: Iterable[PlannedFile]) -> dict[str, Any]:
    """Each file with the places of its delete files in one list of them."""
    types = {spec_id: _partition_types(metadata, spec_id) for spec_id in metadata.specs_by_id}
    deletes: dict[tuple[str, int | None], int] = {}
    listed: list[dict[str, Any]] = []
    tasks = []
    for planned in files:
        places = []
        for file in planned.deletes:
            key = file.file_path, file.content_offset
            if key not in deletes:
                deletes[key] = len(listed)
                listed.append(_content_file(file, types))
            places.append(deletes[key])
        task: dict[str, Any] = {"data-file": _content_file(planned.file, types)}
        tasks.append(task | ({"delete-file-references": places} if places else {}))
    return {"file-scan-tasks": tasks} | ({"delete-files": listed} if listed else {})


def _partition_types(metadata: TableMetadata, spec_id: int) -> tuple[IcebergType, ...]:
    spec = metadata.specs_by_id[spec_id]
    return tuple(f.type for f in spec.partition_type(metadata.schema_for(spec)).fields)


def _content_file(file: DataFile, types: Mapping[int, tuple[IcebergType, ...]]) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "spec-id": file.spec_id,
        "content": FileContent(file.content).name.lower().replace("_", "-"),
        "file-path": file.file_path,
        "file-format": file.file_format.lower(),
        "partition": [
            None if value is None else encode_default(type_, value)
            for type_, value in zip(types[file.spec_id], file.partition, strict=True)
        ],
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    if file.key_metadata is not None:
        wire["key-metadata"] = file.key_metadata.hex().upper()
    for name in _OPTIONAL:
        if (value := getattr(file, name)) is not None:
            wire[name.replace("_", "-")] = value
    return wire
