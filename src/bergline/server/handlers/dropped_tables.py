"""Drop tables: for good, or into the bin, and how they come back from there."""

import re
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from msgspec.structs import replace

from bergline.catalog.access.privilege import Privilege
from bergline.catalog.access.securable import table_of
from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import requesting_caller
from bergline.catalog.rest.protocol.bodies import DroppedTableBody, ListDroppedTablesResponse, UndropTableRequest
from bergline.catalog.sql.bin import BinMark
from bergline.errors import ConflictError, InvalidInputError
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.credentials import with_credentials
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.tables import table_response
from bergline.server.http.paging import page_token, requested_page
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response
from bergline.table.orphans.purge import check_purge, purge_table

_TRIES = 100
_NUMBER = re.compile(r"[0-9]{1,18}")
_Dropped = TypeVar("_Dropped", DroppedTable, DroppedView)


def drop_table(context: ServerContext, request: Request) -> Response:
    """Drop a table, and delete its files if requested: at once, or when it has been in the bin for long enough."""
    if context.settings.drop_retention_s:
        _drop_into_bin(context, request)
    elif request.flag("purgeRequested"):
        result, caller = purge_table(context.catalog, request.table), requesting_caller()
        seen = None if caller is None else caller.changes.get(request.table)
        if seen is not None and seen.before is not None and not result.failed:
            context.directories.reserved.release(request.table, seen.before.table_uuid)
    else:
        context.catalog.drop_table(request.table)
    return NO_CONTENT


def list_dropped_tables(context: ServerContext, request: Request) -> Response:
    """The tables in the bin that the caller may see; where their metadata lies is for those who may read them."""
    fields = DroppedTableBody.__struct_fields__
    by = context.access.newest(request.principal, request.groups)
    found, token = bin_page(context.store.bin.tables, request)
    seen = [
        d if by.may(Privilege.READ, table_of(d.name)) else replace(d, metadata_location="")
        for d in found
        if by.sees(table_of(d.name))
    ]
    shown = tuple(DroppedTableBody(*(getattr(dropped, field) for field in fields)) for dropped in seen)
    return json_response(ListDroppedTablesResponse(shown, token))


def undrop_table(context: ServerContext, request: Request) -> Response:
    """Take a table out of the bin, with all its refs."""
    body: UndropTableRequest = request.read()
    to = None if body.destination is None else new_name(body.destination.namespace, body.destination.name)
    restored = context.catalog.undrop_table(request.table, to)
    return with_credentials(context, request, restored.name, table_response(context, restored), restored.metadata)


def bin_page(
    read: Callable[[int | None, BinMark | None], list[_Dropped]], request: Request
) -> tuple[list[_Dropped], str | None]:
    """A page of what is in the bin, or all, and the token of the next one."""
    page = requested_page(request.query, 2)
    if page is None:
        return read(None, None), None
    found = read(page.size + 1, None if page.after is None else _mark(*page.after))
    if len(found) <= page.size:
        return found, None
    last = found[page.size - 1]
    return found[: page.size], page_token(str(last.dropped_ms), str(last.bin_id))


def keep_dropped(
    context: ServerContext, request: Request, connection: sa.Connection, name: TableName, pointer: str | None
) -> None:
    """Put a table into the bin, in the transaction that drops it."""
    if pointer is None:
        raise ConflictError(f"table `{name}` was dropped as it was not read")
    now = time.time_ns() // 1_000_000
    until = now + 1000 * context.settings.drop_retention_s
    dropped = DroppedTable(name, pointer, now, until, request.principal, request.flag("purgeRequested"))
    context.store.bin.add(connection, dropped)


def _mark(dropped_ms: str, number: str) -> BinMark:
    if not (_NUMBER.fullmatch(dropped_ms) and _NUMBER.fullmatch(number)):
        raise InvalidInputError("expected a page token of this server, found another")
    return int(dropped_ms), int(number)


def _drop_into_bin(context: ServerContext, request: Request) -> None:
    """Drop a table as it was read; the transaction that drops it keeps its pointer in the bin."""
    name, purge = request.table, request.flag("purgeRequested")
    for _ in range(_TRIES):
        pointer = context.catalog.pointer(name)
        if purge:
            check_purge(context.catalog.load_table(name))
        try:
            context.catalog.drop_table(name, pointer)
        except ConflictError:  # a commit came first
            continue
        return
    raise ConflictError(f"table `{name}` moved on each of {_TRIES} times that it was to be dropped")
