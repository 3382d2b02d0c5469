"""The event log and the webhooks of `bergline serve`, over a session with it."""

from collections.abc import Sequence

import msgspec

from bergline.catalog.event_log import CloudEvent, EventFilter, EventPage, logged_event
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import (
    CREATE_WEBHOOK,
    DELETE_WEBHOOK,
    LIST_DELIVERIES,
    LIST_EVENTS,
    LIST_WEBHOOKS,
    PAUSE_WEBHOOK,
    REPLAY_WEBHOOK,
    RESUME_WEBHOOK,
    TEST_WEBHOOK,
    Endpoint,
)
from bergline.catalog.rest.protocol.governance_events import (
    NEWEST_HEADER,
    POSITION_HEADER,
    CreateWebhookRequest,
    CreateWebhookResponse,
    DeliveryBody,
    ListDeliveriesResponse,
    ListWebhooksResponse,
    ReplayWebhookRequest,
    WebhookBody,
)
from bergline.catalog.rest.protocol.names import encode_name
from bergline.errors import FormatError, InvalidInputError

_LOG = CallSubject("the event log", "")
_WEBHOOKS = CallSubject("the webhooks", "")


class RestEvents:
    """The event log of a server."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def read(self, after: int | None, limit: int, wanted: EventFilter, wait_s: int = 0) -> EventPage:
        """Events after a position; where there are none, the server waits for some. Errors as in the database's."""
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


class RestWebhooks:
    """The webhooks of a server."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def create(self, request: CreateWebhookRequest) -> CreateWebhookResponse:
        """A new webhook, with its secret."""
        response = self._session.calls.call(CREATE_WEBHOOK, _WEBHOOKS, body=request)
        return self._session.calls.parsed(response, CreateWebhookResponse, _WEBHOOKS)

    def all(self) -> tuple[WebhookBody, ...]:
        """The webhooks, oldest first."""
        response = self._session.calls.call(LIST_WEBHOOKS, _WEBHOOKS)
        return self._session.calls.parsed(response, ListWebhooksResponse, _WEBHOOKS).webhooks

    def delete(self, webhook_id: str) -> None:
        """Send no more, and forget it."""
        about = _about(webhook_id)
        self._session.calls.call(DELETE_WEBHOOK, about, names={"webhook": encode_name(webhook_id)})

    def pause(self, webhook_id: str) -> WebhookBody:
        """Send nothing until it is resumed."""
        return self._change(PAUSE_WEBHOOK, webhook_id)

    def resume(self, webhook_id: str) -> WebhookBody:
        """Send again, from where it stopped."""
        return self._change(RESUME_WEBHOOK, webhook_id)

    def replay(self, webhook_id: str, after: int) -> WebhookBody:
        """Send the events after a position, again or for the first time."""
        return self._change(REPLAY_WEBHOOK, webhook_id, ReplayWebhookRequest(after))

    def test(self, webhook_id: str) -> DeliveryBody:
        """Send an event that means nothing; what became of it."""
        about = _about(webhook_id)
        response = self._session.calls.call(TEST_WEBHOOK, about, names={"webhook": encode_name(webhook_id)})
        return self._session.calls.parsed(response, DeliveryBody, about)

    def deliveries(self, webhook_id: str) -> tuple[DeliveryBody, ...]:
        """The latest attempts to send events, newest first."""
        about = _about(webhook_id)
        response = self._session.calls.call(LIST_DELIVERIES, about, names={"webhook": encode_name(webhook_id)})
        return self._session.calls.parsed(response, ListDeliveriesResponse, about).deliveries

    def _change(self, endpoint: Endpoint, webhook_id: str, body: msgspec.Struct | None = None) -> WebhookBody:
        about = _about(webhook_id)
        response = self._session.calls.call(endpoint, about, names={"webhook": encode_name(webhook_id)}, body=body)
        return self._session.calls.parsed(response, WebhookBody, about)


def _only(subjects: Sequence[str]) -> str:
    if len(subjects) > 1:
        raise InvalidInputError(f"expected one subject, found {len(subjects)}")
    return subjects[0]


def _about(webhook_id: str) -> CallSubject:
    return CallSubject("webhook", webhook_id)
