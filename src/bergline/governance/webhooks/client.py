"""The webhooks of `bergline serve`, over a session with it."""

import msgspec

from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.rest.protocol.names import encode_name
from bergline.governance.webhooks import protocol

_WEBHOOKS = CallSubject("the webhooks", "")


class RestWebhooks:
    """The webhooks of a server."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def create(self, request: protocol.CreateWebhookRequest) -> protocol.CreateWebhookResponse:
        """A new webhook, with its secret."""
        response = self._session.calls.call(protocol.CREATE_WEBHOOK, _WEBHOOKS, body=request)
        return self._session.calls.parsed(response, protocol.CreateWebhookResponse, _WEBHOOKS)

    def all(self) -> tuple[protocol.WebhookBody, ...]:
        """The webhooks, oldest first."""
        response = self._session.calls.call(protocol.LIST_WEBHOOKS, _WEBHOOKS)
        return self._session.calls.parsed(response, protocol.ListWebhooksResponse, _WEBHOOKS).webhooks

    def delete(self, webhook_id: str) -> None:
        """Delete it: nothing more is sent."""
        about = _about(webhook_id)
        self._session.calls.call(protocol.DELETE_WEBHOOK, about, names={"webhook": encode_name(webhook_id)})

    def pause(self, webhook_id: str) -> protocol.WebhookBody:
        """Send nothing until it is resumed."""
        return self._change(protocol.PAUSE_WEBHOOK, webhook_id)

    def resume(self, webhook_id: str) -> protocol.WebhookBody:
        """Continue sending from where it stopped."""
        return self._change(protocol.RESUME_WEBHOOK, webhook_id)

    def replay(self, webhook_id: str, after: int) -> protocol.WebhookBody:
        """Send the events after a position, again or for the first time."""
        return self._change(protocol.REPLAY_WEBHOOK, webhook_id, protocol.ReplayWebhookRequest(after))

    def test(self, webhook_id: str) -> protocol.DeliveryBody:
        """Send a test event and return how it was received."""
        about = _about(webhook_id)
        response = self._session.calls.call(protocol.TEST_WEBHOOK, about, names={"webhook": encode_name(webhook_id)})
        return self._session.calls.parsed(response, protocol.DeliveryBody, about)

    def deliveries(self, webhook_id: str) -> tuple[protocol.DeliveryBody, ...]:
        """The latest attempts to send events, newest first."""
        about = _about(webhook_id)
        response = self._session.calls.call(protocol.LIST_DELIVERIES, about, names={"webhook": encode_name(webhook_id)})
        return self._session.calls.parsed(response, protocol.ListDeliveriesResponse, about).deliveries

    def _change(self, endpoint: Endpoint, webhook_id: str, body: msgspec.Struct | None = None) -> protocol.WebhookBody:
        about = _about(webhook_id)
        response = self._session.calls.call(endpoint, about, names={"webhook": encode_name(webhook_id)}, body=body)
        return self._session.calls.parsed(response, protocol.WebhookBody, about)


def _about(webhook_id: str) -> CallSubject:
    return CallSubject("webhook", webhook_id)
