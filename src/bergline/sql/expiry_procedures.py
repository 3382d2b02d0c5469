"""`CALL system.expire_snapshots`, as in the official runtime, and `explain_expiry`, which says what it would do."""

import datetime as dt

import pyarrow as pa

from bergline.errors import InvalidInputError
from bergline.table.expiry.deletion import DEFAULT_THREADS
from bergline.table.table import Table


def expire_snapshots(
    table: Table,
    *,
    older_than: dt.datetime | None = None,
    retain_last: int | None = None,
    max_concurrent_deletes: int = DEFAULT_THREADS,
    stream_results: bool | None = None,  # noqa: ARG001  (how the official runtime gathers files, not what it deletes)
    snapshot_ids: tuple[int, ...] = (),
    clean_expired_metadata: bool = False,
) -> pa.Table:
    """Forget snapshots that no live ref protects, and delete the files that only they needed."""
    if max_concurrent_deletes < 1:
        raise InvalidInputError(f"expected max_concurrent_deletes above 0, found {max_concurrent_deletes}")
    result = table.expire(
        older_than=older_than,
        retain_last=retain_last,
        snapshot_ids=snapshot_ids,
        clean_metadata=clean_expired_metadata,
        threads=max_concurrent_deletes,
    )
    row = {
        "deleted_data_files_count": result.deleted_data_files,
        "deleted_position_delete_files_count": result.deleted_position_delete_files,
        "deleted_equality_delete_files_count": result.deleted_equality_delete_files,
        "deleted_manifest_files_count": result.deleted_manifests,
        "deleted_manifest_lists_count": result.deleted_manifest_lists,
        "deleted_statistics_files_count": result.deleted_statistics_files,
    }
    return pa.Table.from_pylist([row], schema=pa.schema([pa.field(k, pa.int64()) for k in row]))


def explain_expiry(
    table: Table,
    *,
    older_than: dt.datetime | None = None,
    retain_last: int | None = None,
    snapshot_ids: tuple[int, ...] = (),
    clean_expired_metadata: bool = False,
) -> pa.Table:
    """What `expire_snapshots` would do with these arguments, and why."""
    return table.plan_expiry(
        older_than=older_than,
        retain_last=retain_last,
        snapshot_ids=snapshot_ids,
        clean_metadata=clean_expired_metadata,
    ).to_arrow()
