"""Requests with tokens of an issuer, as clients send them."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

import bergline
from bergline.catalog.sql.records import records_of
from bergline.errors import AuthenticationError
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.oidc.key_download import KeyDownload
from bergline.server.context.context import ServerContext
from bergline.server.handlers.registry import HANDLERS
from bergline.server.http.request import Request
from bergline.server.http.response import Response
from support.servers.asgi_client import TOKEN, AsgiClient, AsgiResponse, bearer
from support.servers.bergline_server import BerglineServer
from support.servers.oidc_issuer import AUDIENCE, CLIENT_SECRET, OidcIssuerServer

LOCAL = {"host": "localhost:8181"}


@pytest.fixture
def issuer() -> Iterator[OidcIssuerServer]:
    with OidcIssuerServer() as server:
        yield server


@pytest.fixture
def trusting(guarded: ServerContext, issuer: OidcIssuerServer) -> ServerContext:
    """A server with a token of its own that trusts an issuer."""
    guarded.authenticator = Authenticator(guarded.records, issuers=[issuer.settings()])
    return guarded


def test_changes_are_recorded_under_the_name_of_the_issuers_principal(
    trusting: ServerContext, issuer: OidcIssuerServer
) -> None:
    with AsgiClient(trusting) as client:
        for name, token in (("a", issuer.token()), ("b", TOKEN)):
            assert client("POST", "/v1/namespaces", {"namespace": [name]}, headers=bearer(token)).status == 200
    assert [entry.principal for entry in trusting.records.audit()] == ["corp:alice", "ann"]


def test_groups_reach_the_handlers(
    trusting: ServerContext, issuer: OidcIssuerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Request] = []

    def handle(_: ServerContext, request: Request) -> Response:
        seen.append(request)
        return Response(204)

    monkeypatch.setitem(HANDLERS, "get_config", handle)
    with AsgiClient(trusting) as client:
        assert client("GET", "/v1/config", headers=bearer(issuer.token(groups=["a", "b"]))).status == 204
    assert (seen[0].principal, seen[0].groups) == ("corp:alice", {"corp:a", "corp:b"})


def test_every_refusal_looks_the_same(trusting: ServerContext, issuer: OidcIssuerServer) -> None:
    forged = [
        issuer.token(number=2),
        issuer.token(kid="unknown"),
        issuer.token(iss="https://id.example"),
        issuer.token(aud="other"),
        issuer.token(sub=None),
        f"{issuer.token()}x",
        "a.b.c",
        "bl_unknown",
        "x" * 20_000,
    ]
    with AsgiClient(trusting) as client:
        answers = [client("GET", "/v1/config", headers=bearer(token)) for token in forged]
        assert {(answer.status, answer.body) for answer in answers} == {(401, answers[0].body)}
        assert answers[0].message == "the token is not accepted"
        over = client("GET", "/v1/config", headers=bearer(issuer.token(exp=int(time.time()) - 1)))
        assert over.error == (419, "AuthenticationTimeoutException")


def test_issuer_that_is_gone_is_no_refusal(trusting: ServerContext, issuer: OidcIssuerServer) -> None:
    issuer.stop()
    with AsgiClient(trusting) as client:
        gone = client("GET", "/v1/config", headers=bearer(issuer.token()))
        assert gone.error == (503, "ServiceUnavailableException")
        assert "issuer `corp`" in gone.message
        assert "retry-after" in gone.headers
        assert client("GET", "/v1/config", headers=bearer(TOKEN)).status == 200
        form = urlencode({"grant_type": "client_credentials", "client_secret": issuer.token()}).encode()
        assert client("POST", "/v1/oauth/tokens", form).status == 503


def test_issuer_that_hangs_keeps_nobody_else_waiting(
    trusting: ServerContext, issuer: OidcIssuerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    responding = threading.Event()
    monkeypatch.setattr(KeyDownload, "__call__", lambda _: responding.wait(60) and issuer.keys)
    trusting.authenticator = Authenticator(trusting.records, issuers=[issuer.settings()])
    trusting.settings = msgspec.structs.replace(trusting.settings, threads=1)

    async def ask(client: AsgiClient) -> list[int]:
        async def status(token: str) -> int:
            return (await client.send("GET", "/v1/config", [b""], headers=bearer(token))).status

        waiting = [asyncio.create_task(status(issuer.token(jti=str(number)))) for number in range(4)]
        statuses = [await status(TOKEN)]
        responding.set()
        return statuses + await asyncio.gather(*waiting)

    with AsgiClient(trusting) as client:
        assert asyncio.run(ask(client)) == [200] * 5


def test_clients_that_know_only_oauth2_get_their_token_back(trusting: ServerContext, issuer: OidcIssuerServer) -> None:
    with AsgiClient(trusting) as client:
        for token, status in ((issuer.token(), 200), (issuer.token(number=2), 401), (issuer.token(exp=1), 401)):
            form = urlencode({"grant_type": "client_credentials", "client_secret": token}).encode()
            answer = client("POST", "/v1/oauth/tokens", form)
            assert answer.status == status
        assert token not in answer.body.decode()


def sign_in(client: AsgiClient, token: str) -> AsgiResponse:
    form = client("GET", "/sign-in", headers=LOCAL)
    found = re.search(rb'name="csrf" value="([^"]*)"', form.body)
    assert found
    headers = LOCAL | {"cookie": form.headers["set-cookie"].partition(";")[0]}
    return client("POST", "/sign-in", urlencode({"csrf": found[1].decode(), "token": token}).encode(), headers=headers)


def test_console_takes_a_token_of_an_issuer(trusting: ServerContext, issuer: OidcIssuerServer) -> None:
    with AsgiClient(trusting) as client:
        done = sign_in(client, issuer.token())
        assert done.status == 303
        cookie = done.headers["set-cookie"]
        assert len(cookie.partition(";")[0]) <= 4096
        page = client("GET", "/", headers=LOCAL | {"cookie": cookie.partition(";")[0]})
        assert b"corp:alice" in page.body
        assert sign_in(client, issuer.token(number=2)).status == 401
        long = sign_in(client, issuer.token(more="x" * 4000))
        assert long.status == 401
        assert b"browsers keep no longer ones" in long.body


@pytest.mark.long
def test_clients_come_in_with_a_jwt(tmp_path: Path, issuer: OidcIssuerServer) -> None:
    options = ("--oidc-issuer", issuer.url, "--oidc-audience", AUDIENCE, "--oidc-alias", "corp")
    with BerglineServer(tmp_path, *options) as server:
        token = issuer.token()
        with bergline.connect(server.uri, properties={"token": token}) as lake:
            lake.create_namespace("db")
            lake.create_table("db.orders", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
        catalog = load_catalog("lake", type="rest", uri=server.uri, token=token)
        assert catalog.load_table("db.orders").scan().to_arrow().num_rows == 2
        own = {"credential": f"etl:{CLIENT_SECRET}", "oauth2-server-uri": f"{issuer.url}/token"}
        with bergline.connect(server.uri, properties=own) as lake:
            lake.load_table("db.orders").append(pa.table({"id": [3]}))
        catalog = load_catalog("lake", type="rest", uri=server.uri, **own)
        assert catalog.load_table("db.orders").scan().to_arrow().num_rows == 3
        with pytest.raises(AuthenticationError):
            bergline.connect(server.uri, properties={"token": issuer.token(number=2)})
        assert server.status("GET", "/v1/config") == 401
        assert server.status("GET", "/v1/config", token=token) == 200
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as lake:
        principals = [entry.principal for entry in records_of(lake.catalog).audit()]
    assert principals == ["corp:alice"] * 3 + ["corp:etl"]
