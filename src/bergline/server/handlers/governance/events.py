"""The event log."""

from starlette.datastructures import QueryParams

from bergline.errors import InvalidInputError
from bergline.governance.events.model import CLOUD_EVENTS_BATCH, MOST_EVENTS, cloud_event, event_filter
from bergline.governance.events.protocol import NEWEST_HEADER, POSITION_HEADER
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG
from bergline.server.access.privileges import table_of_subject
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response

_DEFAULT_EVENTS = 100
_MOST_DIGITS = 18


def list_events(context: ServerContext, request: Request) -> Response:
    """Events after a position, or the newest ones, as CloudEvents; headers say up to where they go, and the end."""
    after, newest, limit = (_number(request, name) for name in ("after", "newest", "limit"))
    for name, number in ("newest", newest), ("limit", limit):
        if number == 0:
            raise InvalidInputError(f"expected a whole number above 0 for `{name}`, found `0`")
    if newest is not None and (after is not None or limit is not None):
        raise InvalidInputError("expected either `newest`, or `after` and `limit`, found both")
    types = [kind for text in _texts(request, "type") for kind in text.split(",")]
    subjects = _texts(request, "subject")
    wanted = event_filter(types, subjects)
    size = _DEFAULT_EVENTS if limit is None else min(limit, MOST_EVENTS)
    if newest is None:
        page = context.events.read(after, size, wanted)
    else:
        page = context.events.latest(min(newest, MOST_EVENTS), wanted)
    if not context.access.may(request.principal, request.groups, Privilege.ADMINISTER, CATALOG):
        page = context.events.of_present_tables(page, filter(None, map(table_of_subject, subjects)))
    catalog = context.records.catalog_name
    return json_response(
        [cloud_event(catalog, event) for event in page.events],
        headers={
            "content-type": CLOUD_EVENTS_BATCH,
            POSITION_HEADER: str(page.position),
            NEWEST_HEADER: str(page.newest),
        },
    )


def _number(request: Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text.lstrip("0")) <= _MOST_DIGITS):
        raise InvalidInputError(f"expected a whole number for `{name}`, found `{text[:40]}`")
    return int(text)


def _texts(request: Request, name: str) -> list[str]:
    """A parameter that may be repeated."""
    return list(request.query.getlist(name)) if isinstance(request.query, QueryParams) else []
