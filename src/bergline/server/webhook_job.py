"""Send events to webhooks, and delete old ones, in the background; several servers on one catalog share the work."""

import logging
import threading
import time
from collections.abc import Callable

from bergline.errors import BerglineError, ConflictError, NotFoundError
from bergline.format.encoding.wire import encode_json
from bergline.governance.events.model import EVENT_POSITION, EventPage, LoggedEvent, cloud_event
from bergline.governance.webhooks.store import ClaimedWebhook, DeliveryAttempt
from bergline.server.context.context import ServerContext

_LOG = logging.getLogger(__name__)
_THREADS = 4
_INTERVAL_S = 1.0
_LEASE_MS = 60_000
_MOST_EVENTS = 100
_MOST_BYTES = 1024 * 1024
_MOST_MESSAGES = 100
"""To one webhook before others have their turn."""
_PRUNE_INTERVAL_MS = 60_000
_JOIN_S = 15.0


class WebhookJob:
    """Threads that each send the events of one webhook at a time, claimed for a time that is extended."""

    def __init__(
        self, context: ServerContext, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._context = context
        self._clock_ms = clock_ms
        self._prune_at_ms = 0
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"bergline-webhook-job-{number}", daemon=True)
            for number in range(_THREADS)
        ]

    def start(self) -> None:
        """Look for events every second."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the messages that are being sent; another server, or the next start, goes on."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_JOIN_S)

    def run_once(self) -> bool:
        """Send the events of one webhook, some at a time; False if none has events to send."""
        context = self._context
        if not context.webhooks.are_active():
            return False
        context.events.give_positions()
        claim = context.webhooks.claim(self._clock_ms(), _LEASE_MS)
        if claim is None:
            return False
        try:
            self._send_all(claim)
        except ConflictError as error:
            _LOG.info("%s", error)
        return True

    def prune_once(self) -> int:
        """Delete a piece of the events, and of the audit log, whose time is over; how many."""
        now, settings = self._clock_ms(), self._context.settings
        deleted = self._context.events.prune(now - 1000 * settings.event_retention_s)
        if settings.audit_retention_s:
            deleted += self._context.records.prune_audit_piece(now - 1000 * settings.audit_retention_s)
        return deleted

    def _send_all(self, claim: ClaimedWebhook) -> None:
        webhooks = self._context.webhooks
        for _ in range(_MOST_MESSAGES):
            page = self._page(claim)
            if isinstance(page, ClaimedWebhook):
                claim = page
                continue
            if page.events:
                moved = self._send(claim, page)
                if moved is None:
                    return
                claim = moved
            elif page.position > claim.webhook.position:
                claim = webhooks.advance(claim, page.position, self._clock_ms() + _LEASE_MS)
            if claim.webhook.position >= page.newest or self._stopping.is_set():
                break
        webhooks.release(claim)

    def _page(self, claim: ClaimedWebhook) -> EventPage | ClaimedWebhook:
        """The next events; the webhook behind those that are no longer kept."""
        webhook = claim.webhook
        try:
            return self._context.events.read(webhook.position, _MOST_EVENTS, webhook.wanted)
        except NotFoundError as error:
            if error.kind != EVENT_POSITION:
                raise
            first, last, now = webhook.position + 1, self._context.events.oldest_position() - 1, self._clock_ms()
            why = f"the events from position {first} to {last} were not sent: their time is over"
            missed = DeliveryAttempt(f"{webhook.webhook_id}-{first}-{last}", now, 0, first, last, 0, error=why)
            return self._context.webhooks.skip(claim, now + _LEASE_MS, missed)

    def _send(self, claim: ClaimedWebhook, page: EventPage) -> ClaimedWebhook | None:
        """Send one message; the webhook after it, or None if it was not taken."""
        context, webhook = self._context, claim.webhook
        events, body = _batch(context.records.catalog_name, page.events)
        first, last = events[0].position, events[-1].position
        message_id = f"{webhook.webhook_id}-{first}-{last}"
        result = context.webhook_sender.send(webhook.url, claim.secret, message_id, body)
        now = self._clock_ms()
        attempt = DeliveryAttempt(
            message_id, now, result.took_ms, first, last, len(events), result.status, result.error
        )
        if result.error is not None:
            _LOG.warning("webhook %s: %s", webhook.webhook_id, result.error)
            context.webhooks.fail(claim, attempt, is_gone=result.is_gone)
            return None
        position = page.position if len(events) == len(page.events) else last
        return context.webhooks.advance(claim, position, now + _LEASE_MS, attempt)

    def _run(self, number: int) -> None:
        while not self._stopping.is_set():
            try:
                while not self._stopping.is_set() and self.run_once():
                    pass
                if number == 0 and self._clock_ms() >= self._prune_at_ms:
                    while not self._stopping.is_set() and self.prune_once():
                        pass
                    self._prune_at_ms = self._clock_ms() + _PRUNE_INTERVAL_MS
            except BerglineError as error:  # the database does not respond: the next look will tell
                _LOG.warning("cannot look for events to send: %s", error)
            except Exception:  # noqa: BLE001  (a bug of ours must not end the thread)
                _LOG.exception("sending events failed")
            self._stopping.wait(_INTERVAL_S)


def _batch(catalog: str, events: tuple[LoggedEvent, ...]) -> tuple[list[LoggedEvent], bytes]:
    """As many events as fit into a message, at least one, and its body."""
    taken: list[LoggedEvent] = []
    parts: list[bytes] = []
    size = 0
    for event in events:
        part = encode_json(cloud_event(catalog, event))
        size += len(part) + 1
        if taken and size > _MOST_BYTES:
            break
        taken.append(event)
        parts.append(part)
    return taken, b"[" + b",".join(parts) + b"]"
