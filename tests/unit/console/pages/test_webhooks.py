import msgspec

import bergline
from bergline import Lake
from bergline.catalog.sql.records import records_of
from bergline.console.page import Source
from bergline.console.pages.webhooks import webhooks_page
from bergline.governance.webhooks.store import SqlWebhooks, Webhook, WebhookSecret


def test_webhooks_are_shown_with_their_state_and_without_what_is_secret(source: Source, lake: Lake) -> None:
    records = records_of(lake.catalog)
    hook = Webhook(
        "wh_1",
        "https://hooks.example/T0/path-is-secret",
        ("ref.*",),
        (),
        "ann",
        1,
        failures=2,
        next_ms=9,
        last_error="no",
    )
    with records.database.changing() as connection:
        secret = WebhookSecret("whsec_c2VjcmV0")
        SqlWebhooks(records.database, records.catalog_name).create(connection, hook, secret)
    values = webhooks_page(source, {}).values
    (found,) = values["webhooks"]
    assert (found["server"], found["wanted"], found["state"]) == ("https://hooks.example", "ref.*", "active")
    assert (found["failures"], found["next_ms"], found["last_error"]) == (2, 9, "no")
    text = msgspec.json.encode(values).decode()
    assert "whsec" not in text
    assert "path-is-secret" not in text


def test_catalog_without_webhooks_says_so() -> None:
    with bergline.connect("memory:") as lake:
        assert "has no webhooks" in webhooks_page(Source(lake, 0), {}).values["problem"]["message"]
