"""Revoked tokens of issuers: how soon a server knows of them."""

import time
from collections.abc import Iterator

import pytest

from bergline.catalog.sql.tokens.revoked_tokens import SqlRevokedTokens
from bergline.errors import UnavailableError
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.revoked_tokens import RevokedTokens
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient, bearer
from support.servers.oidc_issuer import OidcIssuerServer

CONFIG = "/v1/config"


@pytest.fixture
def issuer() -> Iterator[OidcIssuerServer]:
    with OidcIssuerServer() as server:
        yield server


@pytest.fixture
def store(context: ServerContext) -> SqlRevokedTokens:
    return SqlRevokedTokens(context.records.database, context.records.catalog_name)


def test_what_is_revoked_is_known_after_a_second(store: SqlRevokedTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    revoked = RevokedTokens(store, lambda: now[0])
    assert not revoked.refuses("id", "corp:ann", 7.0)
    store.revoke_token("id", 1)
    store.revoke_principal("corp:bob", 7001, 2)
    assert not revoked.refuses("id", "corp:ann", 7.0)
    now[0] += 1
    assert revoked.refuses("id", "corp:ann", 7.0)
    assert not revoked.refuses("other", "corp:ann", 0)
    assert not revoked.refuses(None, "corp:ann", 0)
    assert [revoked.refuses(None, "corp:bob", issued) for issued in (0, 7, 7.001, 8)] == [True, True, False, False]
    assert not revoked.refuses("corp:bob", "id", 0)

    def fail(_: object) -> None:
        raise UnavailableError("locked")

    monkeypatch.setattr(SqlRevokedTokens, "version", fail)
    assert revoked.refuses("id", "corp:ann", 7.0)
    now[0] += 1
    with pytest.raises(UnavailableError):
        revoked.refuses("other", "corp:ann", 7.0)


def test_revoked_token_is_refused_after_two_seconds(
    context: ServerContext, issuer: OidcIssuerServer, store: SqlRevokedTokens
) -> None:
    now = [time.time()]
    context.authenticator = Authenticator(context.records, lambda: now[0], [issuer.settings()])
    alice = [issuer.token(jti="one"), issuer.token(jti="two")]
    bob = [
        issuer.token(sub="bob", iat=int(now[0]) - 1000),
        issuer.token(sub="bob", jti=7),
        issuer.token(sub="bob", iat=int(now[0])),
    ]

    with AsgiClient(context) as client:

        def statuses() -> list[int]:
            for _ in range(3):  # while the clock stands still nothing is new
                found = [client("GET", CONFIG, headers=bearer(token)).status for token in (*alice, *bob)]
            return found

        assert statuses() == [200, 200, 200, 200, 200]
        now[0] += 0.9  # when tokens are looked at again, which were accepted a moment ago
        assert statuses() == [200, 200, 200, 200, 200]
        store.revoke_token("one", 1)
        store.revoke_token("7", 1)
        now[0] += 2
        assert statuses() == [401, 200, 200, 401, 200]
        store.revoke_principal("corp:alice", int(1000 * now[0]), 2)
        store.revoke_principal("corp:bob", 1000 * int(now[0] - 100), 2)
        now[0] += 2
        assert statuses() == [401, 401, 401, 401, 200]
