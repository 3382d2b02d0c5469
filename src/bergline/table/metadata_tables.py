"""Metadata tables as Arrow, with the columns of the official runtime."""

from collections.abc import Callable

import pyarrow as pa

from bergline.errors import NotFoundError
from bergline.format.arguments import check_text
from bergline.format.metadata import TableMetadata

_INSTANT = pa.timestamp("us", tz="UTC")

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
        pa.field("committed_at", _INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)
HISTORY_SCHEMA = pa.schema(
    [
        pa.field("made_current_at", _INSTANT, nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), nullable=False),
    ]
)


def metadata_table(metadata: TableMetadata, name: str) -> pa.Table:
    """One of the metadata tables; names ignore case."""
    build = METADATA_TABLES.get(check_text(name, "the name of a metadata table").lower())
    if build is None:
        raise NotFoundError(f"no metadata table `{name}`", kind="metadata table", name=name, known=METADATA_TABLES)
    return build(metadata)


def refs_table(metadata: TableMetadata) -> pa.Table:
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
        for name, ref in metadata.refs.items()
    ]
    return pa.Table.from_pylist(rows, schema=REFS_SCHEMA)


def snapshots_table(metadata: TableMetadata) -> pa.Table:
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
        for s in metadata.snapshots
    ]
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS_SCHEMA)


def history_table(metadata: TableMetadata) -> pa.Table:
    """When `main` pointed where."""
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


METADATA_TABLES: dict[str, Callable[[TableMetadata], pa.Table]] = {
    "refs": refs_table,
    "snapshots": snapshots_table,
    "history": history_table,
}
