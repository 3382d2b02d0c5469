"""Who may come in."""

import time

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.records import Records
from bergline.errors import AuthenticationError, NotFoundError
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from bergline.server.http.errors import RequestRefused
from bergline.server.http.principal import ANYBODY, Principal, PrincipalKind
from support.servers.asgi_client import TOKEN, AsgiClient, bearer
from support.servers.oidc_issuer import OidcIssuerServer


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
    guarded.records.tokens.revoke("ann")
    guarded.records.tokens.revoke("old")
    assert authenticator.cached(header) == Principal("ann")
    clock[0] += 6
    assert authenticator.cached(header) is None
    assert authenticator.has_tokens


def test_server_without_tokens_notices_the_first(context: ServerContext) -> None:
    clock = [1_000.0]
    authenticator = Authenticator(context.records, lambda: clock[0])
    assert authenticator.cached(None) == ANYBODY
    context.records.tokens.create("ann", TOKEN, 0, None)
    clock[0] += 6
    assert authenticator.cached(None) is None
    assert authenticator.check(f"Bearer {TOKEN}").name == "ann"
    assert authenticator.cached(None) is None


def test_catalog_that_had_a_token_stays_closed(context: ServerContext) -> None:
    records = context.records
    assert not records.tokens.is_closed
    with pytest.raises(NotFoundError):
        records.tokens.revoke("nobody")
    assert not records.tokens.is_closed
    records.tokens.create("ann", TOKEN, 0, None)
    records.tokens.revoke("ann")
    assert records.tokens.all() == []
    for authenticator in (context.authenticator, Authenticator(records)):
        with pytest.raises(AuthenticationError):
            authenticator.check(None)
        with pytest.raises(AuthenticationError):
            authenticator.check(f"Bearer {TOKEN}")
        assert authenticator.has_tokens
    records.tokens.create("ann", "bl_again", 0, None)
    assert Authenticator(records).check("Bearer bl_again").name == "ann"
    with pytest.raises(NotFoundError):
        records.tokens.revoke("")


def test_closed_catalog_is_opened_by_whoever_says_so(context: ServerContext) -> None:
    context.records.tokens.create("ann", TOKEN, 0, None)
    authenticator = Authenticator(context.records)
    authenticator.allow_anonymous()
    assert authenticator.has_tokens  # there is one
    context.records.tokens.revoke("ann")
    clock = [1_000.0]
    authenticator = Authenticator(context.records, lambda: clock[0])
    assert authenticator.has_tokens
    authenticator.allow_anonymous()
    assert not authenticator.has_tokens
    assert authenticator.check(None).name == "anonymous"
    context.records.tokens.create("bob", TOKEN, 0, None)
    clock[0] += 6
    with pytest.raises(AuthenticationError):
        authenticator.check(None)


def test_other_catalogs_of_the_database_stay_as_they_are(context: ServerContext) -> None:
    other = Records(context.records.database, "other")
    for records in (context.records, other):
        assert not records.tokens.is_closed
        records.tokens.create("ann", f"{TOKEN} {records.catalog_name}", 0, None)
        records.tokens.revoke("ann")
        assert records.tokens.is_closed


def test_tokens_are_hashed_at_rest(guarded: ServerContext) -> None:
    with guarded.records.database.reading() as connection:
        rows = connection.execute(sa.text("SELECT * FROM bergline_tokens")).all()
    assert TOKEN not in str(rows)


def test_principal_and_groups_of_a_token_are_those_of_the_request(context: ServerContext) -> None:
    context.records.tokens.create("ci-1", TOKEN, 0, None, principal="ci", groups=["etl"])
    assert Authenticator(context.records).check(f"Bearer {TOKEN}") == Principal("ci", frozenset({"etl"}))


def test_both_secrets_work_while_they_overlap(context: ServerContext) -> None:
    clock = [1_000.0]
    context.records.tokens.create("ci", "bl_one", 0, None)
    context.records.tokens.rotate("ci", "bl_two", 1_000_000, 60_000)
    authenticator = Authenticator(context.records, lambda: clock[0])
    assert authenticator.check("Bearer bl_one").name == authenticator.check("Bearer bl_two").name == "ci"
    clock[0] += 60
    assert authenticator.cached("Bearer bl_one") is None
    with pytest.raises(RequestRefused, match="time is over"):
        authenticator.check("Bearer bl_one")
    assert authenticator.check("Bearer bl_two").name == "ci"


def test_issuers_and_tokens_stand_side_by_side(guarded: ServerContext) -> None:
    with OidcIssuerServer() as issuer:
        authenticator = Authenticator(guarded.records, issuers=[issuer.settings()])
        header = f"Bearer {issuer.token()}"
        assert authenticator.check(f"Bearer {TOKEN}").kind is PrincipalKind.TOKEN
        assert authenticator.cached(header) is None
        assert authenticator.check(header).name == "corp:alice"
        assert authenticator.cached(header) == authenticator.check(header)
        assert authenticator.fetch_keys() == []
        assert authenticator.may_wait_for_keys(header)
        assert not authenticator.may_wait_for_keys(f"Bearer {TOKEN}")
        assert not authenticator.may_wait_for_keys("Bearer bl_a.b.c")
        assert not guarded.authenticator.may_wait_for_keys(header)


def test_server_that_trusts_an_issuer_lets_nobody_in_without_a_token(context: ServerContext) -> None:
    with OidcIssuerServer() as issuer:
        authenticator = Authenticator(context.records, issuers=[issuer.settings()])
        authenticator.allow_anonymous()
        assert authenticator.has_tokens
        with pytest.raises(AuthenticationError):
            authenticator.check(None)


def test_token_cannot_have_the_name_of_an_issuers_principal(context: ServerContext) -> None:
    context.records.tokens.create("x", "bl_x", 0, None, principal="corp:alice")
    with OidcIssuerServer() as issuer:
        authenticator = Authenticator(context.records, issuers=[issuer.settings()])
        with pytest.raises(AuthenticationError, match="not accepted"):
            authenticator.check("Bearer bl_x")
        assert authenticator.shadowed_tokens() == ["x"]
    assert context.authenticator.shadowed_tokens() == []


def test_issued_token_is_not_cached_beyond_its_time(guarded: ServerContext) -> None:
    with OidcIssuerServer() as issuer:
        start = time.time()
        clock = [start]
        authenticator = Authenticator(guarded.records, lambda: clock[0], [issuer.settings()])
        header = f"Bearer {issuer.token(exp=int(start) + 3)}"
        assert authenticator.check(header).name == "corp:alice"
        clock[0] += 4
        assert authenticator.cached(header) is None
        with pytest.raises(RequestRefused):
            authenticator.check(header)
