"""Webhooks over REST: the bodies of requests and responses, and the endpoints."""

import msgspec

from bergline.catalog.rest.protocol.endpoints import OWN, Endpoint, endpoints_in


class CreateWebhookRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A webhook: where to send events, which ones, and after which position; by default only new ones."""

    url: str
    types: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    after: int | None = None


class WebhookBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A webhook, without its secret."""

    webhook_id: str
    url: str
    state: str
    position: int
    principal: str
    created_ms: int
    types: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    failures: int = 0
    failing_since_ms: int | None = None
    next_ms: int | None = None
    delivered_ms: int | None = None
    last_error: str | None = None


class CreateWebhookResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """A new webhook, and its secret, which is not shown again."""

    webhook: WebhookBody
    secret: str

    def __repr__(self) -> str:
        return f"CreateWebhookResponse({self.webhook!r})"


class ListWebhooksResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The webhooks, oldest first."""

    webhooks: tuple[WebhookBody, ...] = ()


class ReplayWebhookRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The position after which events are sent again."""

    after: int


class DeliveryBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """An attempt to send events."""

    message_id: str
    at_ms: int
    took_ms: int
    first_position: int
    last_position: int
    events: int
    status: int | None = None
    error: str | None = None


class ListDeliveriesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The latest attempts, newest first."""

    deliveries: tuple[DeliveryBody, ...] = ()


_WEBHOOKS = f"{OWN}/webhooks"
_WEBHOOK = f"{_WEBHOOKS}/{{webhook}}"
LIST_WEBHOOKS = Endpoint("list_webhooks", "GET", _WEBHOOKS, response=ListWebhooksResponse)
CREATE_WEBHOOK = Endpoint("create_webhook", "POST", _WEBHOOKS, CreateWebhookRequest, CreateWebhookResponse)
DELETE_WEBHOOK = Endpoint("delete_webhook", "DELETE", _WEBHOOK, status=204)
PAUSE_WEBHOOK = Endpoint("pause_webhook", "POST", f"{_WEBHOOK}/pause", response=WebhookBody)
RESUME_WEBHOOK = Endpoint("resume_webhook", "POST", f"{_WEBHOOK}/resume", response=WebhookBody)
REPLAY_WEBHOOK = Endpoint("replay_webhook", "POST", f"{_WEBHOOK}/replay", ReplayWebhookRequest, WebhookBody)
TEST_WEBHOOK = Endpoint("test_webhook", "POST", f"{_WEBHOOK}/test", response=DeliveryBody)
LIST_DELIVERIES = Endpoint("list_deliveries", "GET", f"{_WEBHOOK}/deliveries", response=ListDeliveriesResponse)

WEBHOOK_ENDPOINTS = endpoints_in(vars())
