"""Who may come in."""

import pytest
import sqlalchemy as sa
from asgi_client import TOKEN, AsgiClient, bearer

from bergline.catalog.sql.records import Records
from bergline.errors import AuthenticationError, NotFoundError
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.principal import ANYBODY, Principal
from bergline.server.handlers.context import ServerContext


def test_token_is_needed_where_there_are_tokens(guarded: ServerContext) -> None:
    with AsgiClient(guarded) as client:
        refused = client("GET", "/v1/config")
        assert refused.error == (401, "NotAuthorizedException")
        assert refused.headers["www-authenticate"] == "Bearer"
        for header in ("", "Bearer", "Bearer x", "Basic eA==", f"Bearer {TOKEN}x", TOKEN):
            assert client("GET", "/v1/config", headers={"Authorization": header}).status == 401
        assert client("GET", "/v1/config", headers=bearer("bl_old")).error == (419, "AuthenticationTimeoutException")
        for _ in range(2):
            assert client("GET", "/v1/config", headers=bearer(TOKEN)).status == 200
        assert client("GET", "/health").status == client("GET", "/metrics").status == 200


def test_changes_are_recorded_under_the_tokens_name(guarded: ServerContext) -> None:
    with AsgiClient(guarded) as client:
        assert client("POST", "/v1/namespaces", {"namespace": ["db"]}, headers=bearer(TOKEN)).status == 200
        assert client("POST", "/v1/namespaces", {"namespace": ["x"]}).status == 401
    assert [e.principal for e in guarded.records.audit()] == ["ann"]


def test_revoked_token_is_forgotten_after_a_moment(guarded: ServerContext) -> None:
    clock = [1_000.0]
    authenticator = Authenticator(guarded.records, lambda: clock[0])
    header = f"Bearer {TOKEN}"
    assert authenticator.check(header).name == "ann"
    guarded.records.revoke_token("ann")
    guarded.records.revoke_token("old")
    assert authenticator.cached(header) == Principal("ann")
    clock[0] += 6
    assert authenticator.cached(header) is None
    assert authenticator.has_tokens


def test_server_without_tokens_notices_the_first(context: ServerContext) -> None:
    clock = [1_000.0]
    authenticator = Authenticator(context.records, lambda: clock[0])
    assert authenticator.cached(None) == ANYBODY
    context.records.create_token("ann", TOKEN, 0, None)
    clock[0] += 6
    assert authenticator.cached(None) is None
    assert authenticator.check(f"Bearer {TOKEN}").name == "ann"
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
    assert Authenticator(records).check("Bearer bl_again").name == "ann"
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
    assert authenticator.check(None).name == "anonymous"
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
