"""Table metadata as JSON: lenient where other writers differ, exact in what we write."""

from typing import Any

import msgspec

from bergline.errors import FormatError, UnsupportedError
from bergline.format.integers import Int, Long
from bergline.format.metadata import (
    FORMAT_VERSION,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
    TableMetadata,
    check_invariants,
)
from bergline.format.partition import PartitionSpec
from bergline.format.refs import MAIN, SnapshotRef, SnapshotRefType
from bergline.format.schema import Schema
from bergline.format.snapshot import Snapshot
from bergline.format.sorting import SortOrder
from bergline.format.wire import decode_json, encode_json

NO_SNAPSHOT = -1


class _Version(msgspec.Struct, rename="kebab"):
    format_version: Int


class _Wire(msgspec.Struct, rename="kebab"):
    """What a v2 file may hold; `refs` and the lists may be missing."""

    format_version: Int
    table_uuid: str
    location: str
    last_sequence_number: Long
    last_updated_ms: Long
    last_column_id: Int
    current_schema_id: Int
    schemas: tuple[Schema, ...]
    default_spec_id: Int
    partition_specs: tuple[PartitionSpec, ...]
    last_partition_id: Int
    default_sort_order_id: Int
    sort_orders: tuple[SortOrder, ...]
    properties: dict[str, str] = {}
    current_snapshot_id: Long | None = None
    refs: dict[str, SnapshotRef] | None = None
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()


def parse_metadata(data: bytes, source: str) -> TableMetadata:
    """The metadata in a file's bytes; `source` is named in errors."""
    version = decode_json(data, _Version, source).format_version
    if version != FORMAT_VERSION:
        raise UnsupportedError(
            f"expected format version {FORMAT_VERSION}, found {version} in {source}",
            hints=["bergline reads and writes v2 tables so far; v1 and v3 are on their way"],
        )
    wire = decode_json(data, _Wire, source)
    current = None if wire.current_snapshot_id == NO_SNAPSHOT else wire.current_snapshot_id
    refs = wire.refs
    if refs is None or (MAIN not in refs and current is not None):
        main = {} if current is None else {MAIN: SnapshotRef(current, SnapshotRefType.BRANCH)}
        refs = (refs or {}) | main
    fields = msgspec.structs.asdict(wire) | {"current_snapshot_id": current, "refs": refs}
    try:
        return check_invariants(TableMetadata(**fields))
    except FormatError as error:
        raise FormatError(f"{error} in {source}") from error


def render_metadata(metadata: TableMetadata) -> bytes:
    """The bytes of a metadata file, keys in Java's order."""
    check_invariants(metadata)
    current = NO_SNAPSHOT if metadata.current_snapshot_id is None else metadata.current_snapshot_id
    wire: dict[str, Any] = {name.replace("_", "-"): value for name, value in msgspec.structs.asdict(metadata).items()}
    return encode_json(wire | {"current-snapshot-id": current})
