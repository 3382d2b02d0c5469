"""The event log of `bergline serve`, over a session with it."""

from collections.abc import Sequence

from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.errors import FormatError, InvalidInputError
from bergline.governance.events.model import CloudEvent, EventFilter, EventPage, logged_event
from bergline.governance.events.protocol import LIST_EVENTS, NEWEST_HEADER, POSITION_HEADER

_LOG = CallSubject("the event log", "")


class RestEvents:
    """The event log of a server."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def read(self, after: int | None, limit: int, wanted: EventFilter, wait_s: int = 0) -> EventPage:
        """Events after a position; if there are none, the server waits for some. Errors as for a database."""
        query = {"limit": str(limit)} | ({} if after is None else {"after": str(after)})
        if wait_s:
            query["wait"] = str(wait_s)
        return self._page(query, wanted)

    def latest(self, limit: int, wanted: EventFilter) -> EventPage:
        """The newest events, oldest first."""
        return self._page({"newest": str(limit)}, wanted)

    def _page(self, query: dict[str, str], wanted: EventFilter) -> EventPage:
        if wanted.types:
            query["type"] = ",".join(wanted.types)
        if wanted.subjects:
            query["subject"] = _only(wanted.subjects)
        response = self._session.calls.call(LIST_EVENTS, _LOG, query=query)
        found = self._session.calls.parsed(response, tuple[CloudEvent, ...], _LOG)
        try:
            events = tuple(map(logged_event, found))
            position, newest = (int(response.headers.get(name) or "") for name in (POSITION_HEADER, NEWEST_HEADER))
        except ValueError as error:
            raise FormatError(f"expected events at positions in the server's response for {_LOG}: {error}") from error
        return EventPage(events, position, newest)


def _only(subjects: Sequence[str]) -> str:
    if len(subjects) > 1:
        raise InvalidInputError(f"expected one subject, found {len(subjects)}")
    return subjects[0]
