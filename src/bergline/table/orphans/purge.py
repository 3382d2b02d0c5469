"""Purge: drops a table, then deletes all its own files that metadata reaches, and earlier metadata files."""

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import Catalog, LoadedTable, UnprovenDropError
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import metadata_directory
from bergline.catalog.table_locations import OwnFiles, table_directories
from bergline.errors import (
    BerglineError,
    CommitUnknownError,
    ConflictError,
    FormatError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from bergline.format.metadata.gzip import MAX_METADATA_BYTES, unpack
from bergline.io.fileio import FileIO
from bergline.io.locations import join, normalized
from bergline.table.expiry.deletion import delete_files
from bergline.table.expiry.path_rules import PathRules
from bergline.table.expiry.reachable import CONTENT_KINDS, FileKind, StoredFile, named_files, reachable_files
from bergline.table.orphans.directory_set import DirectorySet
from bergline.table.orphans.other_tables import OtherTables

_Error = TypeVar("_Error", bound=BerglineError)
_READERS = 16
_PIECE = 2000
_METADATA_FILE = ".metadata.json"


class PurgeResult(msgspec.Struct, frozen=True):
    """How many files were deleted; `failed` ones could not be deleted, but nothing needs them any more."""

    deleted_files: int
    failed: tuple[str, ...] = ()


def purge_table(catalog: Catalog, name: TableName, *, read_all: bool = False) -> PurgeResult:
    """Drop the table in the state in which it was read, and delete its files once it is certainly gone.

    If any of its metadata cannot be read, or another table of the catalog shares its files, or it says
    `gc.enabled=false`, it raises and the table stays as it is. With `read_all` the manifests of all tables are read to
    find out, else of those that may have files in the same directories. A server with a trash deletes the files itself,
    when the table's time in the trash is over.
    """
    if catalog.purge_later(name):
        return PurgeResult(0)
    refused: tuple[str, ConflictError] | None = None
    tries = attempts(f"table `{name}` kept changing while it was purged")
    while True:
        next(tries)
        table = catalog.load_table(name)
        if refused is not None and refused[0] == table.metadata_location:
            raise refused[1]  # no other commit came first: it would only be refused again
        files = _plan_files(catalog.io, table)
        files += [] if catalog.metadata_files_stay else _forgotten_metadata(catalog.io, table, files)
        _check_not_shared(catalog, table, files, read_all=read_all)
        try:
            catalog.drop_table(name, table.metadata_location)
        except ConflictError as error:  # another commit came first: its files must be deleted as well
            refused = table.metadata_location, error
            continue
        except UnprovenDropError:  # whether it has other names is checked below
            if table.metadata_location in {dropped.metadata_location for dropped in catalog.dropped_tables()}:
                raise  # somebody else dropped it, and it went into the trash
        _check_gone(catalog, table)
        _check_again(catalog, table, files, read_all=read_all)
        if catalog.metadata_files_stay:
            staying = {normalized(location) for location in _metadata_files(table)}
            files = [location for location in files if normalized(location) not in staying]
        failed = delete_files(catalog.io, files)
        return PurgeResult(len(files) - len(failed), tuple(failed))


def purge_dropped(
    catalog: Catalog, table: LoadedTable, begin: Callable[[], bool], go_on: Callable[[], None], *, resumed: bool
) -> PurgeResult | None:
    """Delete the files of a table in the trash; None if it was restored, and nothing was deleted.

    `begin` is called when all is known and before the first file goes; `go_on` before each piece, and ends the purge by
    what it raises. Data files go before the manifests that name them, and metadata last: where a purge ended half way,
    a `resumed` one finds what is left.
    """
    stages = _stages(catalog.io, table, resumed=resumed)
    files = [location for stage in stages for location in stage]
    _check_not_shared(catalog, table, files, read_all=False)
    if not begin():
        return None
    if not resumed:
        _check_not_shared(catalog, table, files, read_all=False)  # another table may have been registered meanwhile
    deleted, failed = 0, []
    for stage in stages:
        for start in range(0, len(stage), _PIECE):
            go_on()
            piece = stage[start : start + _PIECE]
            failed += delete_files(catalog.io, piece)
            deleted += len(piece)
        if failed:
            break  # files that lead to undeleted ones stay, too
    return PurgeResult(deleted - len(failed), tuple(failed))


def _stages(io: FileIO, table: LoadedTable, *, resumed: bool) -> list[list[str]]:
    """The files in the order of deletion; for a resumed purge, those that can still be found."""
    check_purge(table)
    reached: list[StoredFile]
    try:
        reached = reachable_files(io, table.metadata)
    except NotFoundError:
        if not resumed:
            raise
        reached = _left_after_contents(io, table)
    its = OwnFiles(table.metadata)
    reached = [f for f in reached if its.has(f.location)]
    named = {normalized(f.location) for f in reached}
    own = [place for place in _metadata_files(table) if normalized(place) not in named and its.has(place)]
    forgotten = _forgotten_metadata(io, table, [*named, *own])
    contents = [f.location for f in reached if f.kind in CONTENT_KINDS.values()]
    manifests = [f.location for f in reached if f.kind is FileKind.MANIFEST]
    others = [f.location for f in reached if f.kind not in {*CONTENT_KINDS.values(), FileKind.MANIFEST}]
    return [contents, manifests, [*others, *forgotten], own]


def _left_after_contents(io: FileIO, table: LoadedTable) -> list[StoredFile]:
    """What is left once a manifest is gone: all data files were deleted before it."""
    try:
        return reachable_files(io, table.metadata, contents=False)
    except NotFoundError:  # all manifests were deleted before the first manifest list
        return named_files(table.metadata)


def _check_again(catalog: Catalog, table: LoadedTable, files: list[str], *, read_all: bool) -> None:
    """Check the other tables once more: one may have been registered or renamed between the check and the drop."""
    try:
        _check_not_shared(catalog, table, files, read_all=read_all)
    except BerglineError as error:
        told = _gone_with_files(table, error.told or error)
        raise _naming(_gone_with_files(table, error), error.neighbour, told) from error


def _gone_with_files(table: LoadedTable, why: BerglineError) -> RefusedError:
    return RefusedError(
        f"table `{table.name}` is gone, and its files stay: {why}",
        hints=[f"its files are in {table.metadata.location}; its metadata file is {table.metadata_location}"],
    )


def _check_gone(catalog: Catalog, table: LoadedTable) -> None:
    """Make sure that the catalog no longer has the table, before any file is deleted."""
    try:
        pointer = catalog.pointer(table.name)
        uuids = {catalog.load_table(table.name).metadata.table_uuid, table.metadata.table_uuid}
        if pointer != table.metadata_location and None not in uuids and len(uuids) > 1:
            return  # a new table has the name
        what = "should have been dropped, but the catalog still has it"
    except NotFoundError as error:
        if error.kind != "file":
            return
        what = f"should have been dropped, but the catalog still has it: {error}"
    except BerglineError as error:
        what = f"was dropped, but whether it is gone cannot be read: {error}"
    raise CommitUnknownError(
        f"table `{table.name}` {what}; its files stay",
        table=str(table.name),
        metadata_location=table.metadata_location,
        hints=[f"where the table is gone, its files are still in {table.metadata.location}"],
    )


def _plan_files(io: FileIO, table: LoadedTable) -> list[str]:
    """All files of its own, those that lead to others last; raises if a file that must be read cannot be."""
    check_purge(table)
    own = OwnFiles(table.metadata)
    reached = (*(f.location for f in reachable_files(io, table.metadata)), *_metadata_files(table))
    return list({normalized(location): location for location in reached if own.has(location)}.values())


def check_purge(table: LoadedTable) -> None:
    """RefusedError for a table whose properties say that others share its files."""
    collecting = table.metadata.properties.get("gc.enabled", "true")
    if collecting.lower() != "true":  # a misspelled value counts as false, too: nothing must be deleted by mistake
        raise RefusedError(
            f"cannot purge table `{table.name}`: `gc.enabled` is {collecting}, other tables may share the files",
            hints=["drop it without purging, and its files stay"],
        )


def _forgotten_metadata(io: FileIO, table: LoadedTable, known: list[str]) -> list[str]:
    """Metadata files in the table's directories that its log no longer has, but that carry the table's UUID."""
    uuid, metadata = table.metadata.table_uuid, table.metadata
    if uuid is None:
        return []
    named = {normalized(location) for location in known}
    found: dict[str, str] = {}
    for directory in (metadata_directory(metadata), join(metadata.location, "metadata")):
        with contextlib.suppress(NotFoundError):
            found |= {normalized(location): location for location in io.list(directory) if _METADATA_FILE in location}
    unknown = [location for key, location in found.items() if key not in named]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-purge") as pool:
        uuids = pool.map(lambda location: _uuid(io, location), unknown)
        return [location for location, own in zip(unknown, uuids, strict=True) if own == uuid]


class _Identity(msgspec.Struct, rename="kebab"):
    table_uuid: str | None = None


def _uuid(io: FileIO, location: str) -> str | None:
    """The UUID of the table in a metadata file; None if the file cannot be read as metadata."""
    try:
        return msgspec.json.decode(unpack(io.read(location, MAX_METADATA_BYTES), location), type=_Identity).table_uuid
    except (NotFoundError, FormatError, msgspec.MsgspecError):
        return None


def _metadata_files(table: LoadedTable) -> list[str]:
    return [*(entry.metadata_file for entry in table.metadata.metadata_log), table.metadata_location]


def _check_not_shared(catalog: Catalog, table: LoadedTable, files: list[str], *, read_all: bool) -> None:
    """Refuse if another name leads to the same table, as after registering it twice, or uses any of its files."""
    operation = f"purge table `{table.name}`"
    try:
        _compare_others(catalog, table, files, operation, read_all=read_all)
    except BerglineError as error:
        if error.told is None:  # everything in it is about other tables
            _naming(error, None, _told_of_unreadable(error, operation))
        raise


def _compare_others(catalog: Catalog, table: LoadedTable, files: list[str], operation: str, *, read_all: bool) -> None:
    rules = PathRules({}, {})
    own = {rules.exact(location) for location in files}
    directories = DirectorySet(rules, table_directories(table.metadata))
    others = OtherTables(catalog, table, directories, operation, read_all=read_all)
    for other in others.tables():
        uuid = other.metadata.table_uuid
        same = uuid is not None and uuid == table.metadata.table_uuid
        if same or any(rules.exact(location) in own for location in others.files_of(other)):
            raise _shared(table.name, "table", other.name)
    for view in others.views():
        if rules.exact(view.metadata_location) in own:
            raise _shared(table.name, "view", view.name)


def _shared(name: TableName, kind: str, other: TableName) -> RefusedError:
    def refused(who: str) -> RefusedError:
        hints = ["drop it without purging, and its files stay"]
        return RefusedError(f"cannot purge table `{name}`: {who} uses the same files", hints=hints)

    return _naming(refused(f"`{other}`"), (kind, other), refused(f"another {kind}"))


def _naming(error: _Error, neighbour: tuple[str, Any] | None, told: BerglineError) -> _Error:
    """The error with a message for callers who may not see the neighbour; None if the neighbour is unknown."""
    error.neighbour, error.told = neighbour, told
    return error


def _told_of_unreadable(error: BerglineError, operation: str) -> BerglineError:
    """The error without anything about other tables."""
    kind = UnavailableError if isinstance(error, UnavailableError) else RefusedError
    return kind(
        f"cannot {operation}: what another table or view uses cannot be read",
        hints=["the server's log says more", "drop it without purging, and its files stay"],
    )
