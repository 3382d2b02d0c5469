"""`CALL system.expire_snapshots` and `remove_orphan_files`, as in the official runtime, and `explain_expiry`."""

import datetime as dt
from collections.abc import Mapping

import pyarrow as pa

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.expiry.deletion import DEFAULT_THREADS
from bergline.table.orphans.plan import printable
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
    """Expire snapshots that no live ref protects, and delete the files that only they needed."""
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


_STREAMED_ROWS = 20_000


def remove_orphan_files(
    table: Table,
    *,
    older_than: dt.datetime | None = None,
    location: str | None = None,
    dry_run: bool = False,
    max_concurrent_deletes: int = DEFAULT_THREADS,
    file_list_view: str | None = None,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: str = "error",
    prefix_listing: bool = False,  # noqa: ARG001  (how the official runtime lists files, not which)
    stream_results: bool = False,
) -> pa.Table:
    """Delete the files in the table's directories that nothing needs; one row for each, also of a dry run."""
    if max_concurrent_deletes < 1:
        raise InvalidInputError(f"expected max_concurrent_deletes above 0, found {max_concurrent_deletes}")
    if file_list_view is not None:
        raise UnsupportedError("cannot take files from a view: call without `file_list_view`, and they are listed")
    plan = table.plan_orphans(
        older_than=older_than,
        location=location,
        equal_schemes=equal_schemes,
        equal_authorities=equal_authorities,
        prefix_mismatch=prefix_mismatch_mode.lower(),
    )
    found = [f.location for f in plan.files]
    if not dry_run:
        result = table.sweep_orphans(plan, threads=max_concurrent_deletes)
        found = sorted((*result.deleted, *result.failed))
    rows = [printable(name) for name in (found[:_STREAMED_ROWS] if stream_results else found)]
    column = pa.field("orphan_file_location", pa.string(), nullable=False)
    return pa.Table.from_arrays([pa.array(rows, pa.string())], schema=pa.schema([column]))


ORPHAN_PROCEDURES = {
    "remove_orphan_files": Procedure(
        (
            TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("location", "string"),
            Parameter("dry_run", "boolean"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("file_list_view", "string"),
            Parameter("equal_schemes", "map<string,string>"),
            Parameter("equal_authorities", "map<string,string>"),
            Parameter("prefix_mismatch_mode", "string"),
            Parameter("prefix_listing", "boolean"),
            Parameter("stream_results", "boolean"),
        ),
        remove_orphan_files,
    ),
}

EXPIRY_PROCEDURES = {
    "expire_snapshots": Procedure(
        (
            TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("retain_last", "int"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("stream_results", "boolean"),
            Parameter("snapshot_ids", "array<bigint>"),
            Parameter("clean_expired_metadata", "boolean"),
        ),
        expire_snapshots,
    ),
    "explain_expiry": Procedure(
        (
            TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("retain_last", "int"),
            Parameter("snapshot_ids", "array<bigint>"),
            Parameter("clean_expired_metadata", "boolean"),
        ),
        explain_expiry,
    ),
}
