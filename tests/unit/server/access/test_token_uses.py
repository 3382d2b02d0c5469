"""When tokens were last used."""

import pytest

from bergline.catalog.sql.tokens.tokens import SqlTokens
from bergline.errors import UnavailableError
from bergline.server.access import token_uses
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import TOKEN, AsgiClient, bearer


def test_requests_only_note_the_use(guarded: ServerContext) -> None:
    with AsgiClient(guarded) as client:
        for _ in range(3):
            assert client("GET", "/v1/config", headers=bearer(TOKEN)).status == 200
        assert client("GET", "/v1/config", headers=bearer("bl_old")).status == 419
    assert [token.last_used_ms for token in guarded.records.tokens.all()] == [None, None]
    guarded.authenticator.uses.write()
    ann, old = guarded.records.tokens.all()
    assert (ann.last_used_ms or 0) >= ann.created_ms
    assert old.last_used_ms is None


def test_database_that_fails_changes_nothing_for_anybody(
    guarded: ServerContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [UnavailableError("locked"), ZeroDivisionError()]

    def fail(*_: object) -> None:
        raise errors.pop(0)

    monkeypatch.setattr(SqlTokens, "record_uses", fail)
    for _ in range(2):
        guarded.authenticator.uses.note("ann", 1.0)
        guarded.authenticator.uses.write()
    guarded.authenticator.uses.write()  # nothing left
    assert caplog.text.count("cannot record when tokens were last used") == 2


def test_thread_writes_now_and_then_and_at_the_end(guarded: ServerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_uses, "_INTERVAL_S", 0.01)
    uses = guarded.authenticator.uses
    uses.start()
    uses.note("ann", 1.0)
    uses.stop()
    assert guarded.records.tokens.all()[0].last_used_ms == 1000
