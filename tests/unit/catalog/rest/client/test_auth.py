"""Tokens: given, asked for, exchanged before they expire, and asked for again when they are refused."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest

from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import AuthenticationError, UnavailableError
from support.servers.scripted_rest_server import NO_ANSWER, Reply, Request, RestScript, refused

TOKENS = "POST /v1/oauth/tokens"
NAMESPACES = "GET /v1/namespaces"
SECRET = "s3cr3t-value"  # noqa: S105


@pytest.fixture
def clock() -> list[float]:
    return [1_000_000.0]


@pytest.fixture
def server() -> Iterator[RestScript]:
    with RestScript() as script:
        script.on(NAMESPACES, Reply(body={"namespaces": []}))
        yield script


def opened(server: RestScript, clock: list[float], properties: dict[str, str]) -> RestCatalog:
    return RestCatalog(server.uri, properties, clock_s=lambda: clock[0], sleep=lambda _: None)


def token(text: str, expires_in: int | None = None) -> Reply:
    body = {"access_token": text, "token_type": "bearer"}
    return Reply(body=body if expires_in is None else {**body, "expires_in": expires_in})


def identity(server: RestScript) -> str | None:
    return server.requests[-1].headers.get("Authorization")


def form(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


def test_nobody_sends_no_header(server: RestScript, clock: list[float]) -> None:
    opened(server, clock, {}).close()
    assert identity(server) is None


def test_token_of_the_user_is_sent(server: RestScript, clock: list[float]) -> None:
    catalog = opened(server, clock, {"token": "mine"})
    catalog.list_namespaces()
    assert {r.headers["Authorization"] for r in server.requests} == {"Bearer mine"}
    catalog.close()


def test_credential_gets_a_token_once(server: RestScript, clock: list[float]) -> None:
    server.on(TOKENS, token("fresh"))
    catalog = opened(server, clock, {"credential": f"id:{SECRET}", "scope": "some", "audience": "them"})
    catalog.list_namespaces()
    assert identity(server) == "Bearer fresh"
    (asked,) = server.sent(TOKENS)
    assert form(asked) == {
        "grant_type": "client_credentials",
        "client_id": "id",
        "client_secret": SECRET,
        "scope": "some",
        "audience": "them",
    }
    catalog.close()


def test_credential_without_id_is_the_secret(server: RestScript, clock: list[float]) -> None:
    server.on(TOKENS, token("fresh"))
    opened(server, clock, {"credential": SECRET}).close()
    assert form(server.sent(TOKENS)[0]) == {
        "grant_type": "client_credentials",
        "client_secret": SECRET,
        "scope": "catalog",
    }


def test_tokens_may_come_from_elsewhere(server: RestScript, clock: list[float]) -> None:
    with RestScript() as other:
        other.on("POST /login", token("theirs"))
        opened(server, clock, {"credential": "a:b", "oauth2-server-uri": f"{other.uri}/login"}).close()
        assert len(other.sent("POST /login")) == 1
    assert identity(server) == "Bearer theirs"


def test_token_about_to_expire_is_exchanged(server: RestScript, clock: list[float]) -> None:
    server.on(TOKENS, token("first", 1000), token("second", 1000))
    catalog = opened(server, clock, {"credential": "a:b"})
    clock[0] += 950
    catalog.list_namespaces()
    assert identity(server) == "Bearer second"
    asked = server.sent(TOKENS)[1]
    assert form(asked)["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
    assert "subject_token=first" in asked.body.decode()
    assert asked.headers["Authorization"] == "Bearer first"
    catalog.close()


def test_exchange_that_is_refused_or_not_wanted_falls_back_to_the_credential(
    server: RestScript, clock: list[float]
) -> None:
    server.on(TOKENS, token("first", 1000), Reply(400, {"error": "unsupported_grant_type"}), token("second", 1000))
    catalog = opened(server, clock, {"credential": "a:b"})
    clock[0] += 950
    catalog.list_namespaces()
    assert identity(server) == "Bearer second"
    catalog.close()
    server.on(TOKENS, token("third", 1000))
    without = opened(server, clock, {"credential": "a:b", "token-exchange-enabled": "false"})
    clock[0] += 950
    without.list_namespaces()
    assert form(server.sent(TOKENS)[-1])["grant_type"] == "client_credentials"
    without.close()


def test_given_token_says_itself_when_it_expires(server: RestScript, clock: list[float]) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": clock[0] + 100}).encode()).decode().rstrip("=")
    server.on(TOKENS, token("second"))
    catalog = opened(server, clock, {"token": f"head.{claims}.signature"})
    assert not server.sent(TOKENS)
    clock[0] += 95
    catalog.list_namespaces()
    assert identity(server) == "Bearer second"
    catalog.close()


def test_given_token_that_cannot_be_exchanged_is_used_until_it_is_refused(
    server: RestScript, clock: list[float]
) -> None:
    server.on(TOKENS, Reply(500))
    catalog = opened(server, clock, {"token": "mine", "token-expires-in-ms": "1000"})
    clock[0] += 10
    catalog.list_namespaces()
    catalog.list_namespaces()
    assert identity(server) == "Bearer mine"
    assert len(server.sent(TOKENS)) == 1
    server.on(NAMESPACES, refused(401, "NotAuthorizedException", "expired"))
    with pytest.raises(AuthenticationError, match="expired"):
        catalog.list_namespaces()
    catalog.close()


@pytest.mark.parametrize("status", [401, 419])
def test_refused_token_is_replaced_once(server: RestScript, clock: list[float], status: int) -> None:
    server.on(TOKENS, token("first"), token("second"))
    no = refused(status, "NotAuthorizedException", "no")
    catalog = opened(server, clock, {"credential": "a:b"})
    server.on(NAMESPACES, no, Reply(body={"namespaces": []}))
    catalog.list_namespaces()
    assert identity(server) == "Bearer second"
    server.on(NAMESPACES, no)
    with pytest.raises(AuthenticationError):
        catalog.list_namespaces()
    assert len(server.sent(NAMESPACES)) == 4
    catalog.close()


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        (Reply(401, {"error": "invalid_client", "error_description": f"{SECRET} is wrong"}), AuthenticationError, "…"),
        (Reply(200, b"{}"), AuthenticationError, "not what OAuth2 says"),
        (Reply(200, b"<html>"), AuthenticationError, "not what OAuth2 says"),
        (token("two\nlines"), AuthenticationError, "not what OAuth2 says"),
        (Reply(500), UnavailableError, "answered 500"),
        (NO_ANSWER, UnavailableError, "cannot get a token"),
    ],
)
def test_token_that_does_not_come_is_said(
    server: RestScript, clock: list[float], reply: Reply, error: type[Exception], text: str
) -> None:
    server.on(TOKENS, reply)
    with pytest.raises(error, match=text) as caught:
        opened(server, clock, {"credential": f"id:{SECRET}"})
    assert SECRET not in str(caught.value)


def test_name_and_password_are_sent_as_asked(server: RestScript, clock: list[float]) -> None:
    properties = {"rest.auth.type": "basic", "rest.auth.basic.username": "me", "rest.auth.basic.password": "pw"}
    RestCatalog(server.uri, properties).close()
    assert identity(server) == f"Basic {base64.b64encode(b'me:pw').decode()}"
    RestCatalog(server.uri, {"rest.auth.type": "none", "token": "unused"}).close()
    assert identity(server) is None


def test_header_of_the_user_stands_for_any_other_identity(server: RestScript) -> None:
    RestCatalog(server.uri, {"header.Authorization": "Custom x", "token": "unused"}).close()
    assert identity(server) == "Custom x"


@pytest.mark.parametrize(
    ("properties", "advice"),
    [
        ({}, "give a token as property `token`"),
        ({"token": "old"}, "too old or revoked"),
        ({"credential": "id:secret"}, "`credential`"),
        ({"rest.auth.type": "basic"}, "`rest.auth.basic.password`"),
    ],
)
def test_whoever_is_refused_is_told_what_to_look_at(
    properties: dict[str, str], advice: str, server: RestScript, clock: list[float]
) -> None:
    server.on(TOKENS, token("short-lived"))
    catalog = opened(server, clock, properties)
    server.on(NAMESPACES, refused(401, "NotAuthorizedException"))
    with pytest.raises(AuthenticationError) as caught:
        catalog.list_namespaces()
    assert advice in caught.value.hints[0]
    catalog.close()
