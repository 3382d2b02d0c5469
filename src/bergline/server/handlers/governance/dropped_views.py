"""Views in the bin: kept when they are dropped, listed, and taken out again."""

import time

import sqlalchemy as sa
from msgspec.structs import replace

from bergline.catalog.access.privilege import Privilege
from bergline.catalog.access.securable import view_of
from bergline.catalog.catalog import DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.governance_bin import (
    DroppedViewBody,
    ListDroppedViewsResponse,
    UndropViewRequest,
)
from bergline.errors import ConflictError
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.dropped_tables import bin_page
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.views import view_response
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response


def list_dropped_views(context: ServerContext, request: Request) -> Response:
    """The views in the bin that the caller may see: a page of them, or all."""
    fields = DroppedViewBody.__struct_fields__
    by = context.access.newest(request.principal, request.groups)
    found, token = bin_page(context.store.view_bin.views, request)
    seen = [
        d if by.may(Privilege.READ, view_of(d.name)) else replace(d, metadata_location="")
        for d in found
        if by.sees(view_of(d.name))
    ]
    shown = tuple(DroppedViewBody(*(getattr(dropped, field) for field in fields)) for dropped in seen)
    return json_response(ListDroppedViewsResponse(shown, token))


def undrop_view(context: ServerContext, request: Request) -> Response:
    """Take a view out of the bin."""
    body: UndropViewRequest = request.read()
    to = None if body.destination is None else new_name(body.destination.namespace, body.destination.name)
    return view_response(context, context.catalog.undrop_view(request.table, to))


def keep_dropped_view(
    context: ServerContext, request: Request, connection: sa.Connection, name: TableName, pointer: str | None
) -> None:
    """Put a view into the bin, in the transaction that drops it."""
    if pointer is None:
        raise ConflictError(f"view `{name}` was dropped as it was not read")
    now = time.time_ns() // 1_000_000
    until = now + 1000 * context.settings.drop_retention_s
    context.store.view_bin.add(connection, DroppedView(name, pointer, now, until, request.principal))
