"""The webhooks of a SQL catalog, in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from bergline.catalog.sql.governance_layout import WEBHOOKS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import ConflictError, NotFoundError, RefusedError
from bergline.governance.events.model import Event
from bergline.governance.events.store import SqlEvents, append_events
from bergline.governance.webhooks.secret_keys import SecretKeys
from bergline.governance.webhooks.store import (
    ClaimedWebhook,
    DeliveryAttempt,
    SecretsReport,
    SqlWebhooks,
    Webhook,
    WebhookSecret,
    WebhookState,
    retry_wait_ms,
)
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri

DAY_MS = 86_400_000
HOOK = Webhook("wh_1", "https://hooks.example/", ("ref.*",), (), "ann", 1)
SECRET = WebhookSecret("whsec_c2VjcmV0")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    """A store with three events."""
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    name = f"hooks-{tmp_path.name}"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", name, {}, 10.0, (), 10**6, True))
    with catalog.store.database.changing() as connection:
        append_events(connection, [Event(name, "ref.move", "table/db/t", "ann", at) for at in (1, 2, 3)])
    SqlEvents(catalog.store.database, name).give_positions()
    yield catalog.store
    catalog.close()


@pytest.fixture
def webhooks(store: SqlPointerStore) -> SqlWebhooks:
    """With one webhook."""
    found = SqlWebhooks(store.database, store.catalog_name)
    with store.database.changing() as connection:
        found.create(connection, HOOK, SECRET)
    return found


def claimed(webhooks: SqlWebhooks, now_ms: int = 100) -> ClaimedWebhook:
    claim = webhooks.claim(now_ms, 10)
    assert claim is not None
    return claim


def attempt(at_ms: int, error: str | None = None) -> DeliveryAttempt:
    return DeliveryAttempt("m", at_ms, 5, 1, 3, 3, 500 if error else 200, error)


def test_webhook_is_stored_and_its_secret_not_shown(webhooks: SqlWebhooks) -> None:
    assert webhooks.all() == [HOOK]
    found, secret = webhooks.find_with_secret("wh_1")
    assert (found, secret.reveal(), secret.key()) == (HOOK, "whsec_c2VjcmV0", b"secret")
    assert "c2Vj" not in repr(claimed(webhooks))
    with pytest.raises(NotFoundError, match="no webhook `wh_2`"):
        webhooks.find("wh_2")


def test_claim_ends_with_its_lease_and_then_moves_nothing(webhooks: SqlWebhooks) -> None:
    first = claimed(webhooks)
    assert webhooks.claim(109, 10) is None
    second = claimed(webhooks, 110)
    for change in (
        lambda: webhooks.advance(first, 3, 200),
        lambda: webhooks.fail(first, attempt(111, "no")),
    ):
        with pytest.raises(ConflictError, match="another server"):
            change()
    webhooks.release(first)
    third = webhooks.advance(second, 2, 130, attempt(111))
    webhooks.release(third)
    assert webhooks.find("wh_1").position == 2
    webhooks.advance(claimed(webhooks, 120), 3, 140)
    assert webhooks.claim(1000, 10) is None  # all was sent


def test_failures_wait_longer_each_time_and_end_after_days(webhooks: SqlWebhooks) -> None:
    webhooks.fail(claimed(webhooks), attempt(100, "it answered with status 500"))
    found = webhooks.find("wh_1")
    assert (found.failures, found.failing_since_ms, found.position) == (1, 100, 0)
    assert found.last_error == "it answered with status 500"
    assert 2_600 <= found.next_ms <= 5_100
    assert webhooks.claim(found.next_ms - 1, 10) is None
    late = 100 + 3 * DAY_MS
    webhooks.fail(claimed(webhooks, late), attempt(late, "still"))
    assert webhooks.find("wh_1").state is WebhookState.DISABLED
    assert webhooks.claim(late * 2, 10) is None
    assert [a.error for a in webhooks.deliveries("wh_1")] == ["still", "it answered with status 500"]


def test_success_after_failures_starts_anew(webhooks: SqlWebhooks) -> None:
    webhooks.fail(claimed(webhooks), attempt(100, "no"))
    later = webhooks.find("wh_1").next_ms
    webhooks.advance(claimed(webhooks, later), 3, later + 10, attempt(later))
    found = webhooks.find("wh_1")
    assert (found.failures, found.failing_since_ms, found.last_error, found.delivered_ms) == (0, None, None, later)


def test_failure_after_a_success_in_the_same_claim_is_the_first(webhooks: SqlWebhooks) -> None:
    webhooks.fail(claimed(webhooks), attempt(100, "no"))
    again = webhooks.advance(claimed(webhooks, DAY_MS), 1, DAY_MS + 10, attempt(DAY_MS))
    webhooks.fail(again, attempt(4 * DAY_MS, "no"))
    (found,) = webhooks.all()
    assert (found.state, found.failures, found.failing_since_ms) == (WebhookState.ACTIVE, 1, 4 * DAY_MS)


def test_receiver_that_is_gone_disables_at_once_and_resume_enables(
    store: SqlPointerStore, webhooks: SqlWebhooks
) -> None:
    webhooks.fail(claimed(webhooks), attempt(100, "gone"), is_gone=True)
    assert webhooks.find("wh_1").state is WebhookState.DISABLED
    assert not webhooks.are_active()
    with store.database.changing() as connection:
        webhooks.resume(connection, "wh_1")
    assert webhooks.find("wh_1") == HOOK
    assert webhooks.are_active()


@pytest.mark.parametrize("how", ["pause", "replay", "delete"])
def test_delivery_under_way_does_not_undo_a_change(store: SqlPointerStore, webhooks: SqlWebhooks, how: str) -> None:
    claim = webhooks.advance(claimed(webhooks), 2, 120, attempt(101))
    with store.database.changing() as connection:
        match how:
            case "pause":
                webhooks.pause(connection, "wh_1")
            case "replay":
                webhooks.replay(connection, "wh_1", 1)
            case _:
                webhooks.delete(connection, "wh_1")
    with pytest.raises(ConflictError):
        webhooks.advance(claim, 3, 140, attempt(102))
    match how:
        case "pause":
            assert webhooks.find("wh_1").state is WebhookState.PAUSED
            assert webhooks.claim(1000, 10) is None
        case "replay":
            assert claimed(webhooks).webhook.position == 1
        case _:
            assert (webhooks.all(), webhooks.deliveries("wh_1")) == ([], [])


def test_of_many_servers_one_claims_a_webhook(webhooks: SqlWebhooks) -> None:
    claims: list[ClaimedWebhook] = []
    together = threading.Barrier(4)

    def claim() -> None:
        together.wait()
        found = webhooks.claim(100, 1000)
        if found is not None:
            claims.append(found)

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claims) == 1


def test_number_of_webhooks_and_of_recorded_deliveries_is_bounded(
    store: SqlPointerStore, webhooks: SqlWebhooks
) -> None:
    claim = claimed(webhooks)
    for number in range(103):
        claim = webhooks.advance(claim, 1, 111 + number, attempt(number))
    assert [a.at_ms for a in webhooks.deliveries("wh_1")] == list(range(102, 2, -1))
    with store.database.changing() as connection:
        for number in range(2, 101):
            webhooks.create(connection, msgspec.structs.replace(HOOK, webhook_id=f"wh_{number}"), SECRET)
        with pytest.raises(RefusedError, match="up to 100 webhooks"):
            webhooks.create(connection, msgspec.structs.replace(HOOK, webhook_id="more"), SECRET)


def test_wait_doubles_up_to_an_hour() -> None:
    assert all(2_500 <= retry_wait_ms(0) <= 5_000 for _ in range(20))
    assert all(40_000 <= retry_wait_ms(4) <= 80_000 for _ in range(20))
    assert all(1_800_000 <= retry_wait_ms(1000) <= 3_600_000 for _ in range(20))


def keyed(store: SqlPointerStore, *keys: str) -> SqlWebhooks:
    return SqlWebhooks(store.database, store.catalog_name, SecretKeys([key * 43 + "=" for key in keys]))


def test_secrets_are_encrypted_and_their_keys_change(store: SqlPointerStore, webhooks: SqlWebhooks) -> None:
    older, newer = keyed(store, "A"), keyed(store, "B", "A")
    with store.database.changing() as connection:
        older.create(connection, msgspec.structs.replace(HOOK, webhook_id="wh_2"), SECRET)
    assert newer.secrets_report() == SecretsReport(("wh_1",), ("wh_2",), ())
    assert newer.find_with_secret("wh_2")[1].reveal() == SECRET.reveal()
    assert keyed(store, "B").rotate_secrets() == SecretsReport(("wh_1",), (), ("wh_2",))
    assert newer.rotate_secrets() == SecretsReport((), ("wh_2",), ())
    assert keyed(store, "B").secrets_report() == SecretsReport((), (), ())
    with store.database.reading() as connection:
        stored = connection.execute(sa.select(WEBHOOKS.c.secret).where(WEBHOOKS.c.catalog_name == store.catalog_name))
        assert all(text.startswith("gAAAA") for text in stored.scalars())
    assert claimed(keyed(store, "B")).secret.key() == b"secret"
    with pytest.raises(RefusedError, match="cannot be decrypted"):
        webhooks.find_with_secret("wh_1")[1].key()
