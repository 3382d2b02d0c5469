"""Webhooks of a catalog in its database: where events are sent, and up to which position they have been.

A server claims a webhook for a time before it delivers, so that only one does at a time. The cursor moves after the
receiver has accepted the events, and only while the claim holds. So events are sent in order, at least once.
"""

import base64
import random
from enum import StrEnum
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import DELIVERIES, EVENT_POSITIONS, WEBHOOKS
from bergline.errors import ConflictError, NotFoundError, RefusedError
from bergline.governance.events.model import EventFilter
from bergline.governance.webhooks.secret_keys import SecretKeys, is_encrypted

SECRET_PREFIX = "whsec_"  # noqa: S105  (of every secret)
_MOST_WEBHOOKS = 100
_MOST_DELIVERIES = 100
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 5_000, 3_600_000
_MOST_DOUBLINGS = 20
_GIVE_UP_MS = 3 * 24 * 3_600_000
_FREE = 0
_LONGEST_ERROR = 500


class WebhookState(StrEnum):
    """Whether events are sent."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"
    """By the server, after failures for days, or because the receiver said that it is gone."""


_NO_KEYS = SecretKeys()


class WebhookSecret:
    """A signing secret as it is stored; it is shown only once, on creation."""

    __slots__ = ("_keys", "_stored")

    def __init__(self, stored: str, keys: SecretKeys = _NO_KEYS) -> None:
        self._stored = stored
        self._keys = keys

    def __repr__(self) -> str:
        return "WebhookSecret(…)"

    def reveal(self) -> str:
        """The text that the receiver needs; RefusedError without the key by which it was encrypted."""
        return self._keys.decrypt(self._stored)

    def key(self) -> bytes:
        """The bytes to sign with; RefusedError likewise."""
        return base64.b64decode(self.reveal().removeprefix(SECRET_PREFIX))


class Webhook(msgspec.Struct, frozen=True):
    """Where events are sent, and the state of deliveries."""

    webhook_id: str
    url: str
    types: tuple[str, ...]
    subjects: tuple[str, ...]
    principal: str
    created_ms: int
    state: WebhookState = WebhookState.ACTIVE
    position: int = 0
    """All events up to here were sent or filtered out."""
    failures: int = 0
    """Since the last success."""
    failing_since_ms: int | None = None
    next_ms: int = 0
    """When delivery is tried again."""
    delivered_ms: int | None = None
    last_error: str | None = None

    @property
    def wanted(self) -> EventFilter:
        """Which events are sent."""
        return EventFilter(self.types, self.subjects)


class ClaimedWebhook(msgspec.Struct, frozen=True):
    """A webhook with events to send, and how long the claim on it lasts."""

    webhook: Webhook
    secret: WebhookSecret
    until_ms: int


class DeliveryAttempt(msgspec.Struct, frozen=True):
    """One message that was sent, or could not be."""

    message_id: str
    at_ms: int
    took_ms: int
    first_position: int
    last_position: int
    events: int
    status: int | None = None
    error: str | None = None


class SecretsReport(msgspec.Struct, frozen=True):
    """How the secrets of webhooks are stored, by the ids of the webhooks."""

    plain: tuple[str, ...]
    """Not encrypted."""
    older: tuple[str, ...]
    """Encrypted by another key than the first."""
    lost: tuple[str, ...]
    """Encrypted by a key that is missing: nothing can be signed."""


_COLUMNS = [WEBHOOKS.c[name] for name in Webhook.__struct_fields__]
_ATTEMPT_COLUMNS = [DELIVERIES.c[name] for name in DeliveryAttempt.__struct_fields__]


class SqlWebhooks:
    """The webhooks of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str, keys: SecretKeys = _NO_KEYS) -> None:
        self._database = database
        self._keys = keys
        self._catalog = catalog_name
        self._mine = WEBHOOKS.c.catalog_name == catalog_name

    def create(self, connection: sa.Connection, webhook: Webhook, secret: WebhookSecret) -> None:
        """Add a webhook; RefusedError if there are too many."""
        count = connection.execute(sa.select(sa.func.count()).select_from(WEBHOOKS).where(self._mine)).scalar_one()
        if count >= _MOST_WEBHOOKS:
            raise RefusedError(f"expected up to {_MOST_WEBHOOKS} webhooks, found as many: delete one first")
        row = msgspec.structs.asdict(webhook) | {
            "catalog_name": self._catalog,
            "secret": self._keys.encrypt(secret.reveal()),
            "types": msgspec.json.encode(webhook.types).decode(),
            "subjects": msgspec.json.encode(webhook.subjects).decode(),
            "state": webhook.state.value,
            "claimed_until_ms": _FREE,
        }
        connection.execute(sa.insert(WEBHOOKS).values(row))

    def all(self) -> list[Webhook]:
        """The webhooks, oldest first."""
        query = sa.select(*_COLUMNS).where(self._mine).order_by(WEBHOOKS.c.created_ms, WEBHOOKS.c.webhook_id)
        with self._database.reading() as connection:
            return [_webhook(tuple(row)) for row in connection.execute(query)]

    def find(self, webhook_id: str) -> Webhook:
        """The webhook with this id; NotFoundError if there is none."""
        return self.find_with_secret(webhook_id)[0]

    def find_with_secret(self, webhook_id: str) -> tuple[Webhook, WebhookSecret]:
        """A webhook, and what signs its messages."""
        query = sa.select(*_COLUMNS, WEBHOOKS.c.secret).where(self._one(webhook_id))
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise self._missing(webhook_id)
        return _webhook(tuple(row)[:-1]), WebhookSecret(row.secret, self._keys)

    def secrets_report(self) -> SecretsReport:
        """How the secrets are stored."""
        with self._database.reading() as connection:
            stored = self._stored_secrets(connection)
        return self._report(stored)

    def rotate_secrets(self) -> SecretsReport:
        """Encrypt all secrets by the first key, except those whose key is lost; returns how they were stored before."""
        with self._database.changing() as connection:
            stored = self._stored_secrets(connection)
            found = self._report(stored)
            for webhook_id in (*found.plain, *found.older):
                old = stored[webhook_id]
                new = self._keys.encrypt(self._keys.decrypt(old))
                as_it_was = sa.and_(self._one(webhook_id), WEBHOOKS.c.secret == old)
                connection.execute(sa.update(WEBHOOKS).where(as_it_was).values(secret=new))
        return found

    def delete(self, connection: sa.Connection, webhook_id: str) -> None:
        """Remove a webhook and the record of its deliveries."""
        if connection.execute(sa.delete(WEBHOOKS).where(self._one(webhook_id))).rowcount != 1:
            raise self._missing(webhook_id)
        connection.execute(sa.delete(DELIVERIES).where(self._deliveries(webhook_id)))

    def pause(self, connection: sa.Connection, webhook_id: str) -> None:
        """Send nothing until it is resumed."""
        self._set(connection, webhook_id, {"state": WebhookState.PAUSED.value})

    def resume(self, connection: sa.Connection, webhook_id: str) -> None:
        """Continue sending from where it stopped."""
        started = {"failures": 0, "failing_since_ms": None, "next_ms": 0, "last_error": None}
        self._set(connection, webhook_id, {"state": WebhookState.ACTIVE.value} | started)

    def replay(self, connection: sa.Connection, webhook_id: str, after: int) -> None:
        """Send all events after a position, again or for the first time."""
        self._set(connection, webhook_id, {"position": after, "next_ms": 0})

    def deliveries(self, webhook_id: str) -> list[DeliveryAttempt]:
        """The latest attempts, newest first."""
        query = sa.select(*_ATTEMPT_COLUMNS).where(self._deliveries(webhook_id)).order_by(DELIVERIES.c.id.desc())
        with self._database.reading() as connection:
            return [DeliveryAttempt(*row) for row in connection.execute(query.limit(_MOST_DELIVERIES))]

    def are_active(self) -> bool:
        """Whether events are sent anywhere."""
        query = sa.select(WEBHOOKS.c.webhook_id).where(self._mine, WEBHOOKS.c.state == WebhookState.ACTIVE.value)
        with self._database.reading() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def claim(self, now_ms: int, lease_ms: int) -> ClaimedWebhook | None:
        """A webhook with events to send, for this caller alone until the lease ends; None if there is none."""
        newest = sa.select(EVENT_POSITIONS.c.position).where(EVENT_POSITIONS.c.catalog_name == self._catalog)
        due = sa.and_(
            self._mine,
            WEBHOOKS.c.state == WebhookState.ACTIVE.value,
            WEBHOOKS.c.next_ms <= now_ms,
            WEBHOOKS.c.claimed_until_ms <= now_ms,
            WEBHOOKS.c.position < newest.scalar_subquery(),
        )
        query = sa.select(*_COLUMNS, WEBHOOKS.c.secret).where(due).order_by(WEBHOOKS.c.next_ms).limit(1)
        with self._database.reading() as connection:
            if connection.execute(query).first() is None:
                return None
        with self._database.writing() as connection:
            # again, with a lock: another server may have claimed it since. A row that one is claiming right now is
            # skipped.
            row = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            claim = ClaimedWebhook(_webhook(tuple(row)[:-1]), WebhookSecret(row.secret, self._keys), now_ms + lease_ms)
            held = sa.update(WEBHOOKS).where(self._one(claim.webhook.webhook_id))
            connection.execute(held.values(claimed_until_ms=claim.until_ms))
            return claim

    def advance(
        self, claim: ClaimedWebhook, position: int, until_ms: int, attempt: DeliveryAttempt | None = None
    ) -> ClaimedWebhook:
        """Move the cursor past events that were accepted or filtered out, and extend the claim.

        ConflictError if another has it by now, or if it was paused, deleted or set back.
        """
        done: dict[str, Any] = {"position": position}
        if attempt is not None:
            done |= {"failures": 0, "failing_since_ms": None, "last_error": None}
            done |= {"delivered_ms": attempt.at_ms, "next_ms": attempt.at_ms}
        return self._hold(claim, until_ms, done, attempt)

    def skip(self, claim: ClaimedWebhook, until_ms: int, missed: DeliveryAttempt) -> ClaimedWebhook:
        """Skip events that are no longer kept, and record that; errors as in `advance`."""
        return self._hold(claim, until_ms, {"position": missed.last_position, "last_error": missed.error}, missed)

    def fail(self, claim: ClaimedWebhook, attempt: DeliveryAttempt, *, is_gone: bool = False) -> None:
        """Try again later, each time after a longer wait; no more after days, or if the receiver is gone for good."""
        webhook, now = claim.webhook, attempt.at_ms
        since = now if webhook.failing_since_ms is None else webhook.failing_since_ms
        is_over = is_gone or now - since >= _GIVE_UP_MS
        failed = {
            "failures": webhook.failures + 1,
            "failing_since_ms": since,
            "next_ms": now + retry_wait_ms(webhook.failures),
            "claimed_until_ms": _FREE,
            "last_error": (attempt.error or "")[:_LONGEST_ERROR],
            "state": (WebhookState.DISABLED if is_over else WebhookState.ACTIVE).value,
        }
        with self._database.writing() as connection:
            self._update_claimed(connection, claim, failed)
            self._record(connection, claim, attempt)

    def release(self, claim: ClaimedWebhook) -> None:
        """Release the claim."""
        with self._database.writing() as connection:
            connection.execute(sa.update(WEBHOOKS).where(self._claimed(claim)).values(claimed_until_ms=_FREE))

    def _stored_secrets(self, connection: sa.Connection) -> dict[str, str]:
        query = sa.select(WEBHOOKS.c.webhook_id, WEBHOOKS.c.secret).where(self._mine).order_by(WEBHOOKS.c.webhook_id)
        return {row.webhook_id: row.secret for row in connection.execute(query)}

    def _report(self, stored: dict[str, str]) -> SecretsReport:
        plain: list[str] = []
        older: list[str] = []
        lost: list[str] = []
        for webhook_id, secret in stored.items():
            if not is_encrypted(secret):
                plain.append(webhook_id)
            elif not self._keys.is_newest(secret):
                (older if self._keys.can_decrypt(secret) else lost).append(webhook_id)
        return SecretsReport(tuple(plain), tuple(older), tuple(lost))

    def _hold(
        self, claim: ClaimedWebhook, until_ms: int, values: dict[str, Any], attempt: DeliveryAttempt | None
    ) -> ClaimedWebhook:
        """Change a claimed webhook, in its row and in the claim, which continues from the change."""
        with self._database.writing() as connection:
            self._update_claimed(connection, claim, values | {"claimed_until_ms": until_ms})
            self._record(connection, claim, attempt)
        changed = msgspec.structs.replace(claim.webhook, **values)
        return msgspec.structs.replace(claim, webhook=changed, until_ms=until_ms)

    def _update_claimed(self, connection: sa.Connection, claim: ClaimedWebhook, values: dict[str, Any]) -> None:
        if connection.execute(sa.update(WEBHOOKS).where(self._claimed(claim)).values(values)).rowcount != 1:
            raise ConflictError(f"webhook `{claim.webhook.webhook_id}` was changed, or is served by another server")

    def _set(self, connection: sa.Connection, webhook_id: str, values: dict[str, Any]) -> None:
        """Change a webhook; a delivery in progress no longer moves its cursor."""
        changed = sa.update(WEBHOOKS).where(self._one(webhook_id)).values(values | {"claimed_until_ms": _FREE})
        if connection.execute(changed).rowcount != 1:
            raise self._missing(webhook_id)

    def _record(self, connection: sa.Connection, claim: ClaimedWebhook, attempt: DeliveryAttempt | None) -> None:
        if attempt is None:
            return
        webhook_id = claim.webhook.webhook_id
        row = msgspec.structs.asdict(attempt) | {"catalog_name": self._catalog, "webhook_id": webhook_id}
        connection.execute(sa.insert(DELIVERIES).values(row))
        mine = self._deliveries(webhook_id)
        oldest = sa.select(DELIVERIES.c.id).where(mine).order_by(DELIVERIES.c.id.desc())
        before = oldest.offset(_MOST_DELIVERIES).limit(1).scalar_subquery()
        connection.execute(sa.delete(DELIVERIES).where(mine, DELIVERIES.c.id <= before))

    def _one(self, webhook_id: str) -> sa.ColumnElement[bool]:
        return sa.and_(self._mine, WEBHOOKS.c.webhook_id == webhook_id)

    def _claimed(self, claim: ClaimedWebhook) -> sa.ColumnElement[bool]:
        return sa.and_(self._one(claim.webhook.webhook_id), WEBHOOKS.c.claimed_until_ms == claim.until_ms)

    def _deliveries(self, webhook_id: str) -> sa.ColumnElement[bool]:
        return sa.and_(DELIVERIES.c.catalog_name == self._catalog, DELIVERIES.c.webhook_id == webhook_id)

    def _missing(self, webhook_id: str) -> NotFoundError:
        known = [webhook.webhook_id for webhook in self.all()]
        return NotFoundError(f"no webhook `{webhook_id[:80]}`", kind="webhook", name=webhook_id, known=known)


def retry_wait_ms(failures: int) -> int:
    """How long to wait after so many failures before this one: 5 s doubled each time up to an hour, less up to half."""
    longest = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS << min(failures, _MOST_DOUBLINGS))
    return round(longest * random.uniform(0.5, 1))  # noqa: S311  (guards nothing)


def _webhook(row: tuple[Any, ...]) -> Webhook:
    fields = dict(zip(Webhook.__struct_fields__, row, strict=True))
    decoded = {name: tuple(msgspec.json.decode(fields[name])) for name in ("types", "subjects")}
    return Webhook(**fields | decoded | {"state": WebhookState(fields["state"])})
