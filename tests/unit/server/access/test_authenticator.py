"""Who may come in."""

import base64
import time
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa
from asgi_client import AsgiClient

from bergline.catalog.sql.records import Records
from bergline.errors import AuthenticationError, NotFoundError, RefusedError
from bergline.server.access.authenticator import Authenticator
from bergline.server.handlers.context import ServerContext
from bergline.server.start import check_host

TOKEN = "bl_secret"  # noqa: S105
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture
def guarded(context: ServerContext) -> ServerContext:
    now = time.time_ns() // 1_000_000
    context.records.create_token("ann", TOKEN, now, None)
    context.records.create_token("old", "bl_old", now - 2, now - 1)
    context.authenticator = Authenticator(context.records)
    return context


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_token_is_needed_where_there_are_tokens(guarded: ServerContext) -> None:
    with AsgiClient(guarded) as ask:
        refused = ask("GET", "/v1/config")
        assert refused.error == (401, "NotAuthorizedException")
        assert refused.headers["www-authenticate"] == "Bearer"
        for header in ("", "Bearer", "Bearer x", "Basic eA==", f"Bearer {TOKEN}x", TOKEN):
            assert ask("GET", "/v1/config", headers={"Authorization": header}).status == 401
        assert ask("GET", "/v1/config", headers=bearer("bl_old")).error == (419, "AuthenticationTimeoutException")
        for _ in range(2):
            assert ask("GET", "/v1/config", headers=bearer(TOKEN)).status == 200
        assert ask("GET", "/health").status == ask("GET", "/metrics").status == 200


def test_changes_are_recorded_under_the_tokens_name(guarded: ServerContext) -> None:
    with AsgiClient(guarded) as ask:
        assert ask("POST", "/v1/namespaces", {"namespace": ["db"]}, headers=bearer(TOKEN)).status == 200
        assert ask("POST", "/v1/namespaces", {"namespace": ["x"]}).status == 401
    assert [e.principal for e in guarded.records.audit()] == ["ann"]


def test_revoked_token_is_forgotten_after_a_moment(guarded: ServerContext) -> None:
    clock = [1_000.0]
    authenticator = Authenticator(guarded.records, lambda: clock[0])
    header = f"Bearer {TOKEN}"
    assert authenticator.check(header) == "ann"
    guarded.records.revoke_token("ann")
    guarded.records.revoke_token("old")
    assert authenticator.cached(header) == "ann"
    clock[0] += 6
    assert authenticator.cached(header) is None
    assert authenticator.has_tokens


def test_server_without_tokens_notices_the_first(context: ServerContext) -> None:
    clock = [1_000.0]
    authenticator = Authenticator(context.records, lambda: clock[0])
    assert authenticator.cached(None) == "anonymous"
    context.records.create_token("ann", TOKEN, 0, None)
    clock[0] += 6
    assert authenticator.cached(None) is None
    assert authenticator.check(f"Bearer {TOKEN}") == "ann"
    assert authenticator.cached(None) is None


def test_catalog_that_had_a_token_stays_closed(context: ServerContext) -> None:
    records = context.records
    assert not records.is_closed
    with pytest.raises(NotFoundError):
        records.revoke_token("nobody")
    assert not records.is_closed
    records.create_token("ann", TOKEN, 0, None)
    records.revoke_token("ann")
    assert records.tokens() == []
    for authenticator in (context.authenticator, Authenticator(records)):
        with pytest.raises(AuthenticationError):
            authenticator.check(None)
        with pytest.raises(AuthenticationError):
            authenticator.check(f"Bearer {TOKEN}")
        assert authenticator.has_tokens
    records.create_token("ann", "bl_again", 0, None)
    assert Authenticator(records).check("Bearer bl_again") == "ann"
    with pytest.raises(NotFoundError):
        records.revoke_token("")


def test_closed_catalog_is_opened_by_whoever_says_so(context: ServerContext) -> None:
    context.records.create_token("ann", TOKEN, 0, None)
    authenticator = Authenticator(context.records)
    authenticator.allow_anonymous()
    assert authenticator.has_tokens  # there is one
    context.records.revoke_token("ann")
    clock = [1_000.0]
    authenticator = Authenticator(context.records, lambda: clock[0])
    assert authenticator.has_tokens
    authenticator.allow_anonymous()
    assert not authenticator.has_tokens
    assert authenticator.check(None) == "anonymous"
    context.records.create_token("bob", TOKEN, 0, None)
    clock[0] += 6
    with pytest.raises(AuthenticationError):
        authenticator.check(None)


def test_other_catalogs_of_the_database_stay_as_they_are(context: ServerContext) -> None:
    other = Records(context.records.database, "other")
    for records in (context.records, other):
        assert not records.is_closed
        records.create_token("ann", f"{TOKEN} {records.catalog_name}", 0, None)
        records.revoke_token("ann")
        assert records.is_closed


def test_tokens_are_hashed_at_rest(guarded: ServerContext) -> None:
    with guarded.records.database.reading() as connection:
        rows = connection.execute(sa.text("SELECT * FROM bergline_tokens")).all()
    assert TOKEN not in str(rows)


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"grant_type": "client_credentials", "client_id": "ann", "client_secret": TOKEN, "scope": "catalog"}, 200),
        ({"grant_type": EXCHANGE, "subject_token": TOKEN}, 200),
        ({"grant_type": "client_credentials", "client_id": "ann", "client_secret": "no"}, 401),
        ({"grant_type": "client_credentials"}, 401),
        ({"grant_type": "password"}, 400),
        ({}, 400),
    ],
)
def test_older_clients_get_their_token_back(guarded: ServerContext, form: dict[str, str], status: int) -> None:
    with AsgiClient(guarded) as ask:
        told = ask("POST", "/v1/oauth/tokens", urlencode(form).encode())
        assert told.status == status
        if status == 200:
            assert told.json["access_token"] == TOKEN
            assert ask("GET", "/v1/config", headers=bearer(told.json["access_token"])).status == 200
        else:
            assert told.json["error"] in {"invalid_client", "invalid_request", "unsupported_grant_type"}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.com"])  # noqa: S104
def test_other_machines_need_tokens(host: str) -> None:
    with pytest.raises(RefusedError, match="without tokens"):
        check_host(host, has_tokens=False, anonymous=False)
    check_host(host, has_tokens=True, anonymous=False)
    check_host(host, has_tokens=False, anonymous=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_none(host: str) -> None:
    check_host(host, has_tokens=False, anonymous=False)


def test_secret_may_come_as_a_password(guarded: ServerContext) -> None:
    form = b"grant_type=client_credentials"
    with AsgiClient(guarded) as ask:
        for secret, status in ((TOKEN, 200), ("x", 401)):
            password = base64.b64encode(f"ann:{secret}".encode()).decode()
            told = ask("POST", "/v1/oauth/tokens", form, headers={"Authorization": f"Basic {password}"})
            assert told.status == status
        for header in ("Basic", "Basic !!", "Basic /w==", f"Bearer {TOKEN}"):
            assert ask("POST", "/v1/oauth/tokens", form, headers={"Authorization": header}).status == 401
