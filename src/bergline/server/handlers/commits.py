"""Commits to tables."""

from collections.abc import Sequence

import msgspec

from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.rest.protocol.bodies import CommitTableRequest, CommitTransactionRequest
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_HEADER, parse_may_move
from bergline.catalog.table_locations import directories_of, directories_set
from bergline.errors import ConflictError, FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.wire import decode_json
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetLocation, SetProperties, Update
from bergline.format.metadata.updates_json import WireUpdate, plain_updates
from bergline.server.commits.requested_commits import RequestedChange, check_update_count, commit_requested
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.tables import landing_at, table_response
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response

_MAX_TABLES = 1000


def commit_table(context: ServerContext, request: Request) -> Response:
    """Change one table, or create one that was staged."""
    (table,) = commit_requested(context.catalog, (requested_change(context, request),))
    return table_response(context, request, table)


def requested_change(context: ServerContext, request: Request) -> RequestedChange:
    """The change of one table that a request asks for."""
    body: CommitTableRequest[WireUpdate] = request.read()
    name = request.table
    if body.identifier is not None and body.identifier != name:
        raise InvalidInputError(f"expected `{name}` as in the path, found `{body.identifier}` in the body")
    return _change(context, request, name, body, can_rebase=parse_may_move(request.headers.get(MAY_MOVE_HEADER)))


def commit_transaction(context: ServerContext, request: Request) -> Response:
    """Change several tables, all or none."""
    body: CommitTransactionRequest[WireUpdate] = request.read()
    if len(body.table_changes) > _MAX_TABLES:
        raise InvalidInputError(
            f"expected changes to up to {_MAX_TABLES} tables in a transaction, found {len(body.table_changes)}"
        )
    changes = []
    for place, change in enumerate(body.table_changes):
        if change.identifier is None:
            raise InvalidInputError(f"expected an identifier for each table, found none at $.table-changes[{place}]")
        changes.append(_change(context, request, parse_table_name(change.identifier), change, can_rebase=False))
    try:
        commit_requested(context.catalog, changes)
    except ConflictError:
        context.overtaken.refused(request, changes)
        raise
    context.overtaken.landed(request, [change.name for change in changes])
    return NO_CONTENT


def committed_tables(request: Request) -> list[TableName]:
    """The tables that a transaction names, as far as they can be read; errors are left to the handler."""
    try:
        named = decode_json(request.body, _NamedTables, "the request's body")
    except FormatError:
        return []
    return [change.identifier for change in named.table_changes[:_MAX_TABLES] if change.identifier is not None]


class _NamedTable(msgspec.Struct):
    identifier: TableName | None = None


class _NamedTables(msgspec.Struct, rename="kebab"):
    table_changes: tuple[_NamedTable, ...] = ()


def _change(
    context: ServerContext,
    request: Request,
    name: TableName,
    body: CommitTableRequest[WireUpdate],
    *,
    can_rebase: bool,
) -> RequestedChange:
    updates = plain_updates(body.updates)
    check_update_count(updates)
    for update in updates:
        if isinstance(update, SetLocation):
            context.locations.check_directory(update.location)
        if isinstance(update, SetProperties):
            context.locations.check_properties(update.updates)
    _check_apart(context, name, updates)
    context.named_files.check_updates(
        (request.principal, request.groups), name, lambda: _metadata(context, name), updates
    )
    change = RequestedChange(name, body.requirements, updates, can_rebase, landing_at(context, request))
    if change.creates:
        new_name(name.namespace, name.name)
    return change


def _check_apart(context: ServerContext, name: TableName, updates: Sequence[Update]) -> None:
    """Refuse new directories that belong to another table, also those that the table has only for one update."""
    visited = directories_set(updates)
    if not visited:
        return
    metadata = _metadata(context, name)
    if metadata is None:
        context.claims.check_new(context.claims.of(name), visited)
    else:
        own = directories_of(metadata.location, metadata.properties)
        claim = context.claims.of(name, table_uuid=metadata.table_uuid)
        context.claims.check_new(claim, [directory for directory in visited if directory not in own], own)


def _metadata(context: ServerContext, name: TableName) -> TableMetadata | None:
    """A table as it is; None for one that is created by the change."""
    try:
        return context.catalog.load_table(name).metadata
    except NotFoundError as error:
        if error.kind != "table":
            raise
        return None
