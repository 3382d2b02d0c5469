"""Bodies of the endpoints for webhooks; events themselves are CloudEvents."""

import msgspec

POSITION_HEADER = "bergline-position"
"""Of a page of events: up to where it goes."""
NEWEST_HEADER = "bergline-newest-position"


class CreateWebhookRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A webhook: where events are sent, which ones, and after which position; by default those to come."""

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
