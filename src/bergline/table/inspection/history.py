"""Metadata tables from the table's metadata file alone: refs, snapshots, history, metadata log."""

import pyarrow as pa

from bergline.format.metadata.table_metadata import MetadataLogEntry, TableMetadata
from bergline.table.inspection.metadata_view import MetadataView

INSTANT = pa.timestamp("us", tz="UTC")
REFS_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)
SNAPSHOTS_SCHEMA = pa.schema(
    [
        pa.field("committed_at", INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))),
    ]
)
HISTORY_SCHEMA = pa.schema(
    [
        pa.field("made_current_at", INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)
METADATA_LOG_SCHEMA = pa.schema(
    [
        pa.field("timestamp", INSTANT, nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


def refs_table(view: MetadataView) -> pa.Table:
    """Branches and tags with their retention."""
    rows = [
        {
            "name": name,
            "type": ref.snapshot_ref_type.name,
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for name, ref in view.metadata.refs.items()
    ]
    return pa.Table.from_pylist(rows, schema=REFS_SCHEMA)


def snapshots_table(view: MetadataView) -> pa.Table:
    """Every snapshot that the table knows."""
    rows = [
        {
            "committed_at": s.timestamp_ms * 1000,
            "snapshot_id": s.snapshot_id,
            "parent_id": s.parent_snapshot_id,
            "operation": s.operation,
            "manifest_list": s.manifest_list,
            "summary": [(k, v) for k, v in s.summary.items() if k != "operation"],
        }
        for s in view.metadata.snapshots
    ]
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS_SCHEMA)


def history_table(view: MetadataView) -> pa.Table:
    """The snapshots that `main` has pointed to, and when."""
    metadata = view.metadata
    current = {s.snapshot_id for s in metadata.ancestors(metadata.current_snapshot_id)}
    known = metadata.snapshots_by_id
    rows = [
        {
            "made_current_at": e.timestamp_ms * 1000,
            "snapshot_id": e.snapshot_id,
            "parent_id": known[e.snapshot_id].parent_snapshot_id if e.snapshot_id in known else None,
            "is_current_ancestor": e.snapshot_id in current,
        }
        for e in metadata.snapshot_log
    ]
    return pa.Table.from_pylist(rows, schema=HISTORY_SCHEMA)


def metadata_log_table(view: MetadataView) -> pa.Table:
    """The metadata files that are still known, the current one last, and what `main` was when each was written."""
    current = MetadataLogEntry(view.metadata.last_updated_ms, view.metadata_location)
    rows = [_log_row(view.metadata, entry) for entry in (*view.metadata.metadata_log, current)]
    return pa.Table.from_pylist(rows, schema=METADATA_LOG_SCHEMA)


def _log_row(metadata: TableMetadata, entry: MetadataLogEntry) -> dict[str, object]:
    logged = reversed(metadata.snapshot_log)
    snapshot_id = next((e.snapshot_id for e in logged if e.timestamp_ms <= entry.timestamp_ms), None)
    snapshot = None if snapshot_id is None else metadata.snapshots_by_id.get(snapshot_id)
    return {
        "timestamp": entry.timestamp_ms * 1000,
        "file": entry.metadata_file,
        "latest_snapshot_id": snapshot_id,
        "latest_schema_id": None if snapshot is None else snapshot.schema_id,
        "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
    }
