"""Changes to tables."""

from collections.abc import Sequence

import msgspec

from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.rest.protocol.bodies import CommitTableRequest, CommitTransactionRequest
from bergline.catalog.table_locations import directories_of
from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.wire import decode_json
from bergline.format.metadata.updates import SetLocation, SetProperties, Update
from bergline.format.metadata.updates_json import WireUpdate, plain_updates
from bergline.server.commits.requested_commits import RequestedChange, check_number, commit_asked
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.tables import table_answer
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response

_MOST_TABLES = 1000


def commit_table(context: ServerContext, call: Request) -> Response:
    """Change one table, or make one that was staged."""
    asked: CommitTableRequest[WireUpdate] = call.read()
    name = call.table
    if asked.identifier is not None and asked.identifier != name:
        raise InvalidInputError(f"expected `{name}` as in the path, found `{asked.identifier}` in the body")
    change = _change(context, name, asked)
    (table,) = commit_asked(context.catalog, (change,))
    return table_answer(context, table)


def commit_transaction(context: ServerContext, call: Request) -> Response:
    """Change several tables, all or none."""
    asked: CommitTransactionRequest[WireUpdate] = call.read()
    if len(asked.table_changes) > _MOST_TABLES:
        raise InvalidInputError(
            f"expected changes to up to {_MOST_TABLES} tables in a transaction, found {len(asked.table_changes)}"
        )
    changes = []
    for place, change in enumerate(asked.table_changes):
        if change.identifier is None:
            raise InvalidInputError(f"expected an identifier for each table, found none at $.table-changes[{place}]")
        changes.append(_change(context, parse_table_name(change.identifier), change))
    commit_asked(context.catalog, changes)
    return NO_CONTENT


def committed_tables(call: Request) -> list[TableName]:
    """The tables that a transaction is about, as far as they can be read; the handler says what is wrong with it."""
    try:
        named = decode_json(call.body, _NamedTables, "the request's body")
    except FormatError:
        return []
    return [change.identifier for change in named.table_changes[:_MOST_TABLES] if change.identifier is not None]


class _NamedTable(msgspec.Struct):
    identifier: TableName | None = None


class _NamedTables(msgspec.Struct, rename="kebab"):
    table_changes: tuple[_NamedTable, ...] = ()


def _change(context: ServerContext, name: TableName, asked: CommitTableRequest[WireUpdate]) -> RequestedChange:
    updates = plain_updates(asked.updates)
    check_number(updates)
    for update in updates:
        if isinstance(update, SetLocation):
            context.check_directory(update.location)
        if isinstance(update, SetProperties):
            context.check_properties(update.updates)
    _check_apart(context, name, updates)
    change = RequestedChange(name, asked.requirements, updates)
    if change.creates:
        new_name(name.namespace, name.name)
    return change


def _check_apart(context: ServerContext, name: TableName, updates: Sequence[Update]) -> None:
    """Refuse new directories that are another table's."""
    location: str | None = None
    properties: dict[str, str] = {}
    for update in updates:
        match update:
            case SetLocation(location=new):
                location = new
            case SetProperties(updates=new):
                properties |= new
    if location is None and not directories_of("", properties):
        return
    try:
        metadata = context.catalog.load_table(name).metadata
    except NotFoundError:  # it is made by this change
        directories = directories_of(location or "", properties)
    else:
        directories = directories_of(location or metadata.location, {**metadata.properties, **properties})
    context.check_apart(name, directories)
