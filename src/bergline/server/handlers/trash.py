"""Drop tables: for good, or into the trash; what is in it, and how tables and views come back from there."""

import re
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import requesting_caller
from bergline.catalog.rest.protocol.trash import (
    DroppedTableBody,
    DroppedViewBody,
    ListDroppedTablesResponse,
    ListDroppedViewsResponse,
    UndropRequest,
)
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.trash.dropped_tables import TrashMark
from bergline.errors import ConflictError, InvalidInputError
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import Securable, table_of, view_of
from bergline.lake.at_ref import catalog_at_ref
from bergline.server.context.context import ServerContext
from bergline.server.handlers.credentials import with_credentials
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.tables import check_own_name, drop_as_read, table_response
from bergline.server.handlers.views import view_response
from bergline.server.http.paging import page_token, requested_page
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response
from bergline.table.orphans.purge import check_purge, purge_table

_NUMBER = re.compile(r"[0-9]{1,18}")
_Dropped = TypeVar("_Dropped", DroppedTable, DroppedView)


def drop_table(context: ServerContext, request: Request) -> Response:
    """Drop a table, and delete its files if requested: at once, or when it has been in the trash for long enough."""
    check_own_name(context, request, request.table, "drop")
    if context.settings.drop_retention_s:
        # its pointer, which is kept in the trash, is the one that was read: `keep_dropped` is given it
        drop_as_read(context, request.table, lambda _: _check_dropped(context, request))
    elif request.flag("purgeRequested"):
        catalog = context.catalog if request.at is None else catalog_at_ref(context.catalog, request.at)
        result, caller = purge_table(catalog, request.table), requesting_caller()
        seen = None if caller is None else caller.changes.get(request.table)
        if seen is not None and seen.before is not None and not result.failed:
            context.claims.directories.reserved.release(request.table, seen.before.table_uuid)
    elif request.at is not None:
        catalog_at_ref(context.catalog, request.at).drop_table(request.table)
    else:
        context.catalog.drop_table(request.table)
    return NO_CONTENT


def list_dropped_tables(context: ServerContext, request: Request) -> Response:
    """The tables in the trash that the caller may see; where their metadata lies is for those who may read them."""
    found, token = _seen(context, request, context.store.table_trash.tables, table_of)
    fields = DroppedTableBody.__struct_fields__
    shown = tuple(DroppedTableBody(*(getattr(dropped, field) for field in fields)) for dropped in found)
    return json_response(ListDroppedTablesResponse(shown, token))


def list_dropped_views(context: ServerContext, request: Request) -> Response:
    """The views in the trash, likewise."""
    found, token = _seen(context, request, context.store.view_trash.views, view_of)
    fields = DroppedViewBody.__struct_fields__
    shown = tuple(DroppedViewBody(*(getattr(dropped, field) for field in fields)) for dropped in found)
    return json_response(ListDroppedViewsResponse(shown, token))


def undrop_table(context: ServerContext, request: Request) -> Response:
    """Take a table out of the trash, with all its refs."""
    restored = context.catalog.undrop_table(request.table, _new_name(request))
    return with_credentials(
        context, request, restored.name, table_response(context, request, restored), restored.metadata
    )


def undrop_view(context: ServerContext, request: Request) -> Response:
    """Take a view out of the trash."""
    return view_response(context, context.catalog.undrop_view(request.table, _new_name(request)))


def keep_dropped(
    context: ServerContext, request: Request, connection: Connection, name: TableName, pointer: str | None
) -> None:
    """Put a table or a view into the trash, in the transaction that drops it."""
    if pointer is None:
        raise ConflictError(f"{request.kind} `{name}` was dropped as it was not read")
    now = time.time_ns() // 1_000_000
    until = now + 1000 * context.settings.drop_retention_s
    if request.kind == "view":
        context.store.view_trash.add(connection, DroppedView(name, pointer, now, until, request.principal))
        return
    dropped = DroppedTable(name, pointer, now, until, request.principal, request.flag("purgeRequested"))
    context.store.table_trash.add(connection, dropped)


def _mark(dropped_ms: str, number: str) -> TrashMark:
    if not (_NUMBER.fullmatch(dropped_ms) and _NUMBER.fullmatch(number)):
        raise InvalidInputError("expected a page token of this server, found another")
    return int(dropped_ms), int(number)


def _check_dropped(context: ServerContext, request: Request) -> None:
    check_own_name(context, request, request.table, "drop")  # after its pointer was read: it may be published meanwhile
    if request.flag("purgeRequested"):
        check_purge(context.catalog.load_table(request.table))


def _new_name(request: Request) -> TableName | None:
    """The other name under which something is to come back."""
    body: UndropRequest = request.read()
    return None if body.destination is None else new_name(body.destination.namespace, body.destination.name)


def _seen(
    context: ServerContext,
    request: Request,
    read: Callable[[int | None, TrashMark | None], list[_Dropped]],
    securable_of: Callable[[TableName], Securable],
) -> tuple[list[_Dropped], str | None]:
    """What the caller may see of a page of the trash, or of all of it, and the token of the next page."""
    by = context.access.newest(request.principal, request.groups)
    found, token = _page(read, request)
    seen = [
        d if by.may(Privilege.READ, securable_of(d.name)) else replace(d, metadata_location="")
        for d in found
        if by.sees(securable_of(d.name))
    ]
    return seen, token


def _page(
    read: Callable[[int | None, TrashMark | None], list[_Dropped]], request: Request
) -> tuple[list[_Dropped], str | None]:
    """A page of what is in the trash, or all, and the token of the next one."""
    page = requested_page(request.query, 2)
    if page is None:
        return read(None, None), None
    found = read(page.size + 1, None if page.after is None else _mark(*page.after))
    if len(found) <= page.size:
        return found, None
    last = found[page.size - 1]
    return found[: page.size], page_token(str(last.dropped_ms), str(last.bin_id))
