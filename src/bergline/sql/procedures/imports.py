"""`CALL system.add_files`, `snapshot` and `migrate`, with the official columns; files stay where they are."""

from collections.abc import Mapping

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidInputError,
    RefusedError,
    UnsupportedError,
)
from bergline.io.locations import normalized
from bergline.lake.lake import Lake
from bergline.sql.names.engine_context import EngineContext
from bergline.sql.names.resolve import name_parts
from bergline.sql.names.session_catalog import SessionTable, session_table_name
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.table import Table

_NOT_COPIED = {
    "path",
    "transient_lastDdlTime",
    "serialization.format",
    "location",
    "provider",
    "owner",
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
}
"""Properties that are about the files of the source, or that Spark keeps for itself."""
_FORMATS = ("parquet", "orc", "avro")
_BACKUP = "_BACKUP_"


def add_files(
    table: Table,
    *,
    engine: EngineContext,
    source_table: str,
    partition_filter: Mapping[str, str] | None = None,
    check_duplicate_files: bool = True,  # noqa: ARG001  (a file is in a table only once: it is always checked)
    parallelism: int = 1,
) -> pa.Table:
    """Add the files of a directory or of a Spark table, where they are."""
    _check_parallelism(parallelism)
    parts = name_parts(source_table)
    source: str | dict[str, dict[str, str]]
    if len(parts) == 2 and parts[0].lower() in _FORMATS:  # noqa: PLR2004
        source = parts[1]
        if parts[0].lower() != "parquet":
            raise UnsupportedError(f"expected Parquet files, found `{parts[0].lower()}` as the format of `{parts[1]}`")
    else:
        catalog = engine.session_catalog()
        described = catalog.table(session_table_name(parts, source_table))
        described.check_importable()
        source = catalog.files(described)
    files = table.add_files(source, partition_filter=partition_filter, engine=engine.row_engine())
    partitions = {file.partition for file in files}
    changed = len(partitions) if any(partitions) else None
    return pa.Table.from_pylist(
        [{"added_files_count": len(files), "changed_partition_count": changed}],
        schema=pa.schema(
            [
                pa.field("added_files_count", pa.int64(), nullable=False),
                pa.field("changed_partition_count", pa.int64()),
            ]
        ),
    )


def snapshot(
    lake: Lake,
    name: TableName,
    *,
    engine: EngineContext,
    source_table: str,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    parallelism: int = 1,
) -> pa.Table:
    """Create a table that reads the files of a Spark table, which stays as it is; no file is ever deleted for it."""
    _check_parallelism(parallelism)
    catalog = engine.session_catalog()
    source = catalog.table(session_table_name(name_parts(source_table), source_table))
    source.check_importable()
    own = {"gc.enabled": "false", "snapshot": "true"}
    with lake.stage_table(
        name,
        source.schema,
        partition_by=source.partition_columns,
        location=location,
        properties=_properties(source, properties) | own,
    ) as table:
        _check_apart(table.location, source)
        count = len(table.add_files(catalog.files(source), engine=engine.row_engine()))
    return _counted("imported_files_count", count)


def migrate(
    lake: Lake,
    name: TableName,
    *,
    engine: EngineContext,
    properties: Mapping[str, str] | None = None,
    drop_backup: bool = False,
    backup_table_name: str | None = None,
    parallelism: int = 1,
) -> pa.Table:
    """Turn a Spark table into a table of the lake with the same name; the Spark table becomes a backup."""
    _check_parallelism(parallelism)
    catalog = engine.session_catalog()
    source = catalog.table(session_table_name((*name.namespace, name.name), str(name)))
    source.check_importable()
    if drop_backup and source.is_managed:
        raise RefusedError(
            f"cannot drop the backup of `{source}`: Spark manages its files, and would delete them",
            hints=["call without drop_backup: the lake's table needs the files of the backup"],
        )
    if not source.survives_rename:
        raise RefusedError(
            f"cannot rename `{source}` to a backup: Spark's catalog in memory would lose its partitions",
            hints=["use `snapshot`, or a Hive metastore, or a table with a LOCATION of its own"],
        )
    if lake.table_exists(name):
        raise AlreadyExistsError(f"table `{name}` exists already", kind="table", name=str(name))
    files = _below(source, catalog.files(source))
    backup = catalog.rename(source, backup_table_name or f"{name.name}{_BACKUP}")
    try:
        moved = catalog.files(backup)
        _check_same(files, _below(backup, moved), backup)
        with lake.stage_table(
            name,
            source.schema,
            partition_by=source.partition_columns,
            location=source.location,
            properties=_properties(source, properties) | {"migrated": "true"},
        ) as table:
            count = len(table.add_files(moved, engine=engine.row_engine()))
    except CommitUnknownError:
        raise  # the table may be there, and needs the files where they are
    except Exception:
        if not lake.table_exists(name):
            catalog.rename(backup, source.name[-1])
        raise
    if drop_backup:
        catalog.drop(backup)
    return _counted("migrated_files_count", count)


def _properties(source: SessionTable, given: Mapping[str, str] | None) -> dict[str, str]:
    copied = {key: value for key, value in source.properties.items() if key not in _NOT_COPIED}
    return copied | dict(given or {})


def _below(table: SessionTable, files: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The files by their paths below the table's location, where they move with it."""
    base = normalized(table.location).rstrip("/")
    return {normalized(path).removeprefix(f"{base}/") for path in files}


def _check_same(files: set[str], moved: set[str], backup: SessionTable) -> None:
    """Refuse a backup that has lost files: where Spark manages a table, renaming it moves them."""
    if files != moved:
        raise RefusedError(f"expected {len(files)} files in `{backup}` after the rename, found {len(moved)} or others")


def _check_apart(location: str, source: SessionTable) -> None:
    """Refuse a table inside the directory of its source, or around it."""
    own, other = (f"{normalized(directory).rstrip('/')}/" for directory in (location, source.location))
    if own.startswith(other) or other.startswith(own):
        raise InvalidInputError(
            f"expected a location apart from that of `{source}`, {source.location}, found {location}"
        )


def _check_parallelism(parallelism: int) -> None:
    """How many files are read at a time is the engine's to decide; the argument is the official one."""
    if parallelism < 1:
        raise InvalidInputError(f"expected parallelism above 0, found {parallelism}")


def _counted(column: str, count: int) -> pa.Table:
    return pa.Table.from_pylist([{column: count}], schema=pa.schema([pa.field(column, pa.int64(), nullable=False)]))


_SOURCE = Parameter("source_table", "string", required=True)
_PROPERTIES = Parameter("properties", "map<string,string>")
_PARALLELISM = Parameter("parallelism", "int")
IMPORT_PROCEDURES: dict[str, Procedure] = {
    "add_files": Procedure(
        (
            TABLE,
            _SOURCE,
            Parameter("partition_filter", "map<string,string>"),
            Parameter("check_duplicate_files", "boolean"),
            _PARALLELISM,
        ),
        add_files,
        needs_engine=True,
    ),
    "snapshot": Procedure(
        (_SOURCE, TABLE, Parameter("location", "string"), _PROPERTIES, _PARALLELISM),
        snapshot,
        makes_table=True,
        needs_engine=True,
    ),
    "migrate": Procedure(
        (
            TABLE,
            _PROPERTIES,
            Parameter("drop_backup", "boolean"),
            Parameter("backup_table_name", "string"),
            _PARALLELISM,
        ),
        migrate,
        makes_table=True,
        needs_engine=True,
    ),
}
