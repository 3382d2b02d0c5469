"""Turns on tables: a client that keeps losing races asks the others to let it go first for a moment."""

from bergline.catalog.rest.protocol.table_turns import TakeTurnRequest, TakeTurnResponse
from bergline.errors import InvalidInputError
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response


def take_turn(context: ServerContext, request: Request) -> Response:
    """A turn on a table, if nobody has one and the others have had their time since the last."""
    body: TakeTurnRequest = request.read()
    name = request.table
    context.catalog.pointer(name)
    granted = context.store.take_turn([name], body.holder, body.lease_ms)
    if granted:
        context.turns.look(name)
    return json_response(TakeTurnResponse(granted))


def give_back_turn(context: ServerContext, request: Request) -> Response:
    """The end of a turn; nothing happens if it is over already."""
    holder = request.query.get("holder")
    if not holder:
        raise InvalidInputError("expected the `holder` of a turn, found none")
    name = request.table
    context.catalog.pointer(name)
    context.store.give_back_turn([name], holder)
    context.turns.look(name)
    return NO_CONTENT
