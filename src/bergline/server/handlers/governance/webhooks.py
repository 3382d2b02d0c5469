"""Webhooks: where events are sent."""

import base64
import secrets
import time
from collections.abc import Callable

import msgspec

from bergline.catalog.rest.protocol.names import decode_name
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.records import AuditEntry
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.encoding.wire import encode_json
from bergline.governance.events.model import LoggedEvent, cloud_event, event_filter
from bergline.governance.webhooks.protocol import (
    CreateWebhookRequest,
    CreateWebhookResponse,
    DeliveryBody,
    ListDeliveriesResponse,
    ListWebhooksResponse,
    ReplayWebhookRequest,
    WebhookBody,
)
from bergline.governance.webhooks.store import (
    SECRET_PREFIX,
    DeliveryAttempt,
    Webhook,
    WebhookSecret,
    WebhookState,
)
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response

_SECRET_BYTES = 32
_ID_BYTES = 8


def list_webhooks(context: ServerContext, request: Request) -> Response:
    """The webhooks, without their secrets."""
    del request
    return json_response(ListWebhooksResponse(tuple(map(_body, context.webhooks.all()))))


def create_webhook(context: ServerContext, request: Request) -> Response:
    """A new webhook; its secret is in this response and nowhere else."""
    body: CreateWebhookRequest = request.read()
    wanted = event_filter(body.types, body.subjects)
    context.webhook_sender.check(body.url)
    position = context.events.newest_position()
    if body.after is not None:
        position = _checked(context, body.after)
    webhook = Webhook(
        webhook_id=f"wh_{secrets.token_hex(_ID_BYTES)}",
        url=body.url,
        types=wanted.types,
        subjects=wanted.subjects,
        principal=request.principal,
        created_ms=_now_ms(),
        position=position,
    )
    secret = WebhookSecret(SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode())
    _change(context, request, webhook.webhook_id, lambda c: context.webhooks.create(c, webhook, secret))
    return json_response(CreateWebhookResponse(_body(webhook), secret.reveal()))


def delete_webhook(context: ServerContext, request: Request) -> Response:
    """Send no more, and forget it."""
    webhook_id = _webhook_id(request)
    _change(context, request, webhook_id, lambda c: context.webhooks.delete(c, webhook_id))
    return NO_CONTENT


def pause_webhook(context: ServerContext, request: Request) -> Response:
    """Send nothing until it is resumed."""
    webhook_id = _webhook_id(request)
    _change(context, request, webhook_id, lambda c: context.webhooks.pause(c, webhook_id))
    return _found(context, webhook_id)


def resume_webhook(context: ServerContext, request: Request) -> Response:
    """Send again, from where it stopped."""
    webhook_id = _webhook_id(request)
    _change(context, request, webhook_id, lambda c: context.webhooks.resume(c, webhook_id))
    return _found(context, webhook_id)


def replay_webhook(context: ServerContext, request: Request) -> Response:
    """Send the events after a position, again or for the first time."""
    webhook_id = _webhook_id(request)
    body: ReplayWebhookRequest = request.read()
    after = _checked(context, body.after)
    _change(context, request, webhook_id, lambda c: context.webhooks.replay(c, webhook_id, after))
    return _found(context, webhook_id)


def test_webhook(context: ServerContext, request: Request) -> Response:
    """Send one event that means nothing, now, whatever the webhook's state; the cursor stays."""
    webhook, secret = context.webhooks.find_with_secret(_webhook_id(request))
    now = _now_ms()
    message_id = f"{webhook.webhook_id}-test-{now}"
    event = LoggedEvent(0, "webhook.test", f"webhook/{webhook.webhook_id}", request.principal, now)
    sent = msgspec.structs.replace(
        cloud_event(context.records.catalog_name, event), id=message_id, sequence=msgspec.UNSET
    )
    result = context.webhook_sender.send(webhook.url, secret, message_id, encode_json([sent]))
    attempt = DeliveryAttempt(message_id, now, result.took_ms, 0, 0, 1, result.status, result.error)
    return json_response(_attempt(attempt))


def list_deliveries(context: ServerContext, request: Request) -> Response:
    """The latest attempts to send events."""
    webhook = context.webhooks.find(_webhook_id(request))
    return json_response(ListDeliveriesResponse(tuple(map(_attempt, context.webhooks.deliveries(webhook.webhook_id)))))


def _change(context: ServerContext, request: Request, webhook_id: str, act: Callable[[Connection], None]) -> None:
    """Make a change with an audit row in its transaction."""
    agent = request.headers.get("user-agent", "")[:255] or None
    entry = AuditEntry(_now_ms(), request.principal, request.endpoint.name, f"webhook/{webhook_id}", agent)
    with context.records.database.changing() as connection:
        act(connection)
        context.records.add_audit(connection, entry)


def _checked(context: ServerContext, after: int) -> int:
    """A position from which events can be sent."""
    if after < 0:
        raise InvalidInputError(f"expected a position from 0 on, found {after}")
    context.events.read(after, 1)
    return after


def _webhook_id(request: Request) -> str:
    webhook_id = decode_name(request.names["webhook"])
    if "\0" in webhook_id:
        raise NotFoundError("no such webhook", kind="webhook", name="")
    return webhook_id


def _found(context: ServerContext, webhook_id: str) -> Response:
    return json_response(_body(context.webhooks.find(webhook_id)))


def _body(webhook: Webhook) -> WebhookBody:
    fields = msgspec.structs.asdict(webhook) | {"state": webhook.state.value}
    if webhook.state is not WebhookState.ACTIVE or not webhook.failures:
        fields["next_ms"] = None
    return WebhookBody(**fields)


def _attempt(attempt: DeliveryAttempt) -> DeliveryBody:
    return DeliveryBody(**msgspec.structs.asdict(attempt))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
