"""Directories are reserved for tables and views, in the transaction that makes, changes, renames or drops them."""

from collections.abc import Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, ChangedTable
from bergline.catalog.rest.protocol import endpoints
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.directories.reserved_directories import Claim, DirectoryKind
from bergline.governance.grants.securable import table_of, view_of
from bergline.server.access.directory_claims import table_directories
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request

_RENAMING = {endpoints.RENAME_TABLE.name, endpoints.RENAME_VIEW.name}
_UNDROPPING = {endpoints.UNDROP_TABLE.name, endpoints.UNDROP_VIEW.name}


def follow_directories(
    context: ServerContext,
    request: Request,
    connection: Connection,
    changed: Sequence[tuple[TableName, str | None]],
    caller: Caller,
) -> None:
    """RefusedError for a directory that belongs to something else, where directories are kept apart."""
    reserved = context.claims.directories.reserved
    kind = DirectoryKind.VIEW if request.kind == "view" else DirectoryKind.TABLE
    if request.endpoint.name in _RENAMING:
        (before, _), (after, _) = changed
        reserved.rename(connection, kind, before, after)
        return
    for name, _ in changed:
        if kind is DirectoryKind.TABLE:
            _follow_table(context, request, connection, name, caller.changes.get(name))
        else:
            _follow_view(context, request, connection, name, caller.view_locations.get(name))


def _follow_table(
    context: ServerContext, request: Request, connection: Connection, name: TableName, seen: ChangedTable | None
) -> None:
    reserved, kind = context.claims.directories.reserved, DirectoryKind.TABLE
    if seen is None:  # dropped, and its metadata cannot be read
        _drop(context, connection, Claim(kind, name), ())
        return
    before, after = seen.before, seen.after
    if before is not None and (after is None or before.table_uuid not in (None, after.table_uuid)):
        _drop(context, connection, Claim(kind, name, before.table_uuid), table_directories(before))
        before = None
    if after is None:
        return
    own = () if before is None else table_directories(before)
    directories = table_directories(after)
    if set(directories) <= set(own):
        return
    claim = context.claims.of(name, kind, after.table_uuid)
    reserved.lock(connection)
    if before is None:
        reserved.begin(connection, claim, directories)
        reserved.take_over(connection, claim)
    if request.endpoint.name in _UNDROPPING:
        reserved.restore(connection, claim, request.table)
    else:
        context.claims.check_reserved(connection, claim, [d for d in directories if d not in own], own)
    reserved.reserve(connection, claim, (*own, *directories))


def _follow_view(
    context: ServerContext, request: Request, connection: Connection, name: TableName, location: str | None
) -> None:
    reserved, claim = context.claims.directories.reserved, context.claims.of(name, DirectoryKind.VIEW)
    if request.endpoint is endpoints.DROP_VIEW:
        _drop(context, connection, claim, ())
        return
    is_new = request.endpoint in (endpoints.CREATE_VIEW, endpoints.REGISTER_VIEW, endpoints.UNDROP_VIEW)
    if is_new or location is not None:
        reserved.lock(connection)
    if is_new:
        reserved.begin(connection, claim)
    if request.endpoint.name in _UNDROPPING:
        reserved.restore(connection, claim, request.table)
    if location is not None:
        context.claims.check_reserved(connection, claim, [location])
        reserved.reserve(connection, claim, [location])


def _drop(context: ServerContext, connection: Connection, claim: Claim, directories: Sequence[str]) -> None:
    """Keep the directories of what is dropped for its owner."""
    of = (table_of if claim.kind is DirectoryKind.TABLE else view_of)(claim.name)
    owner = context.access.store.owner_in(connection, of)
    context.claims.directories.reserved.drop(connection, claim, directories, None if owner is None else str(owner))
