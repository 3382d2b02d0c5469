"""Purge: drop a table, then delete every file that its metadata reaches."""

import msgspec

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import ConflictError, NotFoundError, RefusedError
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.table.reachable import plan_cleanup

_TRIES = 100


class PurgeResult(msgspec.Struct, frozen=True):
    """How many files were deleted; `failed` ones could not be, and nothing needs them any more."""

    deleted_files: int
    failed: tuple[str, ...] = ()


def purge_table(catalog: Catalog, name: TableName) -> PurgeResult:
    """Drop the table as it was read, and delete its files once it is certain that it is gone.

    If any of its metadata cannot be read, or another table of the catalog shares its files, or it says
    `gc.enabled=false`, it raises and the table stays as it is.
    """
    for _ in range(_TRIES):
        table = catalog.load_table(name)
        files = _plan_files(catalog.io, table)
        _check_not_shared(catalog, table, files)
        try:
            catalog.drop_table(name, table.metadata_location)
        except ConflictError:  # a commit came first: its files are to go as well
            continue
        failed = catalog.io.delete(files)
        return PurgeResult(len(files) - len(failed), tuple(failed))
    raise ConflictError(f"table `{name}` moved on each of {_TRIES} times that it was to be purged")


def _plan_files(io: FileIO, table: LoadedTable) -> list[str]:
    """All files, those that lead to others last; raises if one that must be read cannot be."""
    metadata = table.metadata
    collecting = metadata.properties.get("gc.enabled", "true")
    if collecting.lower() != "true":  # a misspelt value too: nothing is deleted by mistake
        raise RefusedError(
            f"cannot purge table `{table.name}`: `gc.enabled` is {collecting}, other tables may share the files",
            hints=["drop it without purging, and its files stay"],
        )
    nothing = msgspec.structs.replace(metadata, snapshots=(), refs={}, statistics=(), partition_statistics=())
    cleanup = plan_cleanup(io, metadata, nothing)
    reached = (
        *cleanup.content_files,
        *cleanup.manifests,
        *cleanup.manifest_lists,
        *cleanup.statistics,
        *(entry.metadata_file for entry in metadata.metadata_log),
        table.metadata_location,
    )
    return list({normalized(location): location for location in reached}.values())


def _check_not_shared(catalog: Catalog, table: LoadedTable, files: list[str]) -> None:
    """Refuse where another name leads to the same table, as after registering it twice."""
    own = {normalized(location) for location in files}
    for namespace in catalog.list_namespaces():
        for other in catalog.list_tables(namespace):
            if other != table.name and _is_same_table(catalog, other, table, own):
                raise RefusedError(
                    f"cannot purge table `{table.name}`: `{other}` uses the same files",
                    hints=["drop it without purging, and its files stay"],
                )


def _is_same_table(catalog: Catalog, other: TableName, table: LoadedTable, files: set[str]) -> bool:
    """Whether another name has one of these files, or has moved on from one of them."""
    try:
        pointer = normalized(catalog.pointer(other))
    except NotFoundError:  # dropped since it was listed
        return False
    if pointer in files:
        return True
    beside = pointer.rpartition("/")[0] == normalized(table.metadata_location).rpartition("/")[0]
    return beside and catalog.load_table(other).metadata.table_uuid == table.metadata.table_uuid
