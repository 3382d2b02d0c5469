"""The webhooks of `bergline serve`, over a session with it."""

import msgspec

from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.rest.protocol.names import encode_name
from bergline.governance.webhooks.protocol import (
    CREATE_WEBHOOK,
    DELETE_WEBHOOK,
    LIST_DELIVERIES,
    LIST_WEBHOOKS,
    PAUSE_WEBHOOK,
    REPLAY_WEBHOOK,
    RESUME_WEBHOOK,
    TEST_WEBHOOK,
    CreateWebhookRequest,
    CreateWebhookResponse,
    DeliveryBody,
    ListDeliveriesResponse,
    ListWebhooksResponse,
    ReplayWebhookRequest,
    WebhookBody,
)

_WEBHOOKS = CallSubject("the webhooks", "")


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


def _about(webhook_id: str) -> CallSubject:
    return CallSubject("webhook", webhook_id)
