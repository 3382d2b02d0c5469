"""Requests that are none, and pages for those who run the server."""

import asyncio

import msgspec
import pytest

from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient


def test_body_may_come_in_parts_and_not_be_too_large(context: ServerContext) -> None:
    context.settings = msgspec.structs.replace(context.settings, max_body_bytes=100)
    with AsgiClient(context) as client:
        parts = [b'{"namespace"', b': ["db"]}']
        assert asyncio.run(client.send("POST", "/v1/namespaces", parts)).status == 200
        assert asyncio.run(client.send("POST", "/v1/namespaces", [b" " * 60] * 2)).status == 413
        assert client("POST", "/v1/namespaces", b"{}", headers={"content-length": "101"}).status == 413


def test_half_sent_request_changes_nothing(client: AsgiClient) -> None:
    assert asyncio.run(client.send("POST", "/v1/namespaces", [])).status == 400
    assert client("GET", "/v1/namespaces").json["namespaces"] == []


def test_failure_of_the_server_itself_is_an_answer(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(context.catalog, "list_namespaces", lambda _: 1 / 0)
    assert client("GET", "/v1/namespaces").error == (500, "InternalServerError")
    assert "ZeroDivisionError" in caplog.text


def test_whoever_shows_no_token_sends_no_large_body(client: AsgiClient) -> None:
    form = b"grant_type=client_credentials&client_secret=x&scope=catalog"
    assert client("POST", "/v1/oauth/tokens", form).status == 200
    assert client("POST", "/v1/oauth/tokens", form + b"x" * 70_000).status == 413
