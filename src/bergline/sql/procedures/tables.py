"""`CALL system.register_table`, `rewrite_manifests` and `rewrite_table_path`, with the official columns."""

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError
from bergline.lake.lake import Lake
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.operations.rewrite_manifests import RewriteManifests
from bergline.table.table import Table

_REGISTERED = {
    "current_snapshot_id": None,
    "total_records_count": "total-records",
    "total_data_files_count": "total-data-files",
}


def register_table(lake: Lake, name: TableName, *, metadata_file: str) -> pa.Table:
    """Register an existing table under a name; the row describes its current snapshot."""
    snapshot = lake.register_table(name, metadata_file).current_snapshot
    row = dict.fromkeys(_REGISTERED)
    if snapshot is not None:
        details = {column: snapshot.summary.get(key) for column, key in _REGISTERED.items() if key is not None}
        row = {"current_snapshot_id": snapshot.snapshot_id} | {
            column: None if text is None else int(text) for column, text in details.items()
        }
    return pa.Table.from_pylist([row], schema=pa.schema([pa.field(column, pa.int64()) for column in _REGISTERED]))


def rewrite_manifests(
    table: Table,
    *,
    use_caching: bool = False,  # noqa: ARG001  (how the official runtime works, not what it does)
    spec_id: int | None = None,
    sort_by: tuple[str, ...] | None = None,
) -> pa.Table:
    """Rewrite the manifests of a partition spec, by default the current one, clustered by partition."""
    if sort_by == ():
        raise InvalidInputError("expected partition fields in `sort_by`, found none")
    spec_id = table.spec.spec_id if spec_id is None else spec_id
    operation = RewriteManifests(table.io, spec_id=spec_id, sort_by=sort_by or ())
    table.commit(operation)
    snapshot = operation.snapshot
    counts = ("manifests-replaced", "manifests-created")
    rewritten, added = (0 if snapshot is None else int(snapshot.summary[key]) for key in counts)
    names = ("rewritten_manifests_count", "added_manifests_count")
    schema = pa.schema([pa.field(name, pa.int32(), nullable=False) for name in names])
    return pa.Table.from_pylist([dict(zip(names, (rewritten, added), strict=True))], schema=schema)


def rewrite_table_path(
    table: Table,
    *,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
) -> pa.Table:
    """Stage the table's metadata for another place, and list which files are to be copied where."""
    done = table.rewrite_path(
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
        create_file_list=create_file_list,
    )
    row = {
        "latest_version": done.latest_version,
        "file_list_location": done.file_list_location or "N/A",
        "rewritten_manifest_file_paths_count": done.rewritten_manifests,
        "rewritten_delete_file_paths_count": done.rewritten_delete_files,
    }
    types = (pa.string(), pa.string(), pa.int32(), pa.int32())
    return pa.Table.from_pylist([row], schema=pa.schema(list(zip(row, types, strict=True))))


TABLE_PROCEDURES: dict[str, Procedure] = {
    "register_table": Procedure(
        (TABLE, Parameter("metadata_file", "string", required=True)), register_table, makes_table=True
    ),
    "rewrite_manifests": Procedure(
        (
            TABLE,
            Parameter("use_caching", "boolean"),
            Parameter("spec_id", "int"),
            Parameter("sort_by", "array<string>"),
        ),
        rewrite_manifests,
    ),
    "rewrite_table_path": Procedure(
        (
            TABLE,
            Parameter("source_prefix", "string", required=True),
            Parameter("target_prefix", "string", required=True),
            Parameter("start_version", "string"),
            Parameter("end_version", "string"),
            Parameter("staging_location", "string"),
            Parameter("create_file_list", "boolean"),
        ),
        rewrite_table_path,
    ),
}
