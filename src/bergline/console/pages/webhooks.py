"""The webhooks of a server, and how sending to them goes; secrets are not shown."""

from typing import Any
from urllib.parse import urlsplit

from bergline.catalog.sql.records import find_sql_store
from bergline.console.page import Page, PageQuery, Source
from bergline.errors import BerglineError, UnsupportedError
from bergline.governance.events.store import SqlEvents
from bergline.governance.granted_catalog import administered
from bergline.governance.webhooks.store import SqlWebhooks, Webhook
from bergline.lake.lake import Lake


def webhooks_page(source: Source, query: PageQuery) -> Page:
    """The webhooks with their state, oldest first."""
    del query
    values: dict[str, Any] = {"webhooks": [], "newest": 0, "problem": None}
    try:
        found, newest = _webhooks(source.lake)
    except BerglineError as error:
        values["problem"] = {"message": str(error), "hints": list(error.hints)}
    else:
        values |= {"webhooks": [_row(webhook, newest) for webhook in found], "newest": newest}
    return Page("Webhooks", "webhooks.html", values)


def _webhooks(lake: Lake) -> tuple[list[Webhook], int]:
    store = find_sql_store(administered(lake.catalog))
    if store is None:
        raise UnsupportedError("this catalog has no webhooks: `bergline serve` sends events to them")
    log = SqlEvents(store.database, store.catalog_name)
    log.check_there()
    return SqlWebhooks(store.database, store.catalog_name).all(), log.newest_position()


def _row(webhook: Webhook, newest: int) -> dict[str, Any]:
    parts = urlsplit(webhook.url)
    return {
        "webhook_id": webhook.webhook_id,
        "server": f"{parts.scheme}://{parts.netloc}",
        "wanted": ", ".join((*webhook.types, *webhook.subjects)) or "all events",
        "who": webhook.principal,
        "state": webhook.state.value,
        "position": webhook.position,
        "waiting": max(newest - webhook.position, 0),
        "failures": webhook.failures,
        "failing_since_ms": webhook.failing_since_ms,
        "next_ms": webhook.next_ms if webhook.failures and webhook.state == "active" else None,
        "delivered_ms": webhook.delivered_ms,
        "last_error": webhook.last_error,
    }
