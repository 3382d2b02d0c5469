"""The way to an issuer and back, as the console sees it; with real issuers in `server/access/oidc`."""

from collections.abc import Mapping
from typing import Any

import pytest

from bergline.errors import AuthenticationError, InvalidInputError, NotFoundError
from bergline.server.console.issuer_sign_in import finish_sign_in, start_sign_in
from bergline.server.console.sign_in import SignIn
from bergline.server.console.visit import Visit

HOST = {"host": "localhost:8181"}
FLOW = "bergline-flow-8181"


class Ways:
    """Notes what it is asked."""

    names = ("corp",)

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def address(self, name: str, secret: str, redirect_uri: str) -> str:
        self.asked.append((name, secret, redirect_uri))
        return "https://id.example/authorize"

    def finish(self, name: str, secret: str, redirect_uri: str, answer: Mapping[str, str]) -> tuple[str, int]:
        self.asked.append((name, secret, redirect_uri, answer["code"]))
        return "bs_x", 60

    def end(self, text: str) -> None:
        raise AssertionError(text)


@pytest.fixture
def ways(lake_host: Any) -> Ways:
    found = Ways()
    lake_host.browser_sign_in = found
    return found


@pytest.fixture
def lake_host(host: Any) -> Any:
    return host


def visit(path: str, query: dict[str, str], cookies: dict[str, str], headers: Mapping[str, str] = HOST) -> Visit:
    return Visit("GET", path, query, headers, cookies)


def started(host: Any, **query: str) -> dict[str, str]:
    there = visit("sign-in/issuer", {"issuer": "corp"} | query, {})
    reply = start_sign_in(host, there, SignIn(there))
    (cookie,) = reply.cookies
    assert {"HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"} <= set(cookie.split("; "))
    name, _, value = cookie.partition(";")[0].partition("=")
    return {name: value}


def test_secret_and_page_come_back_with_the_cookie(lake_host: Any, ways: Ways) -> None:
    cookies = started(lake_host, next="/table?name=a.b&ref=ü;x")
    back = visit("sign-in/callback", {"code": "c", "state": "s"}, cookies)
    done = finish_sign_in(lake_host, back, SignIn(back))
    assert (done.token, done.seconds, done.next) == ("bs_x", 60, "/table?name=a.b&ref=ü;x")
    (there, here) = ways.asked
    assert there == here[:3] == ("corp", cookies[FLOW].split(".")[1], "http://localhost:8181/sign-in/callback")


def test_every_attempt_has_a_secret_of_its_own(lake_host: Any, ways: Ways) -> None:
    assert started(lake_host) != started(lake_host)


@pytest.mark.parametrize("cookie", [None, "", "corp", "corp.", "."])
def test_answer_without_an_attempt_is_refused(lake_host: Any, ways: Ways, cookie: str | None) -> None:
    back = visit("sign-in/callback", {"code": "c"}, {} if cookie is None else {FLOW: cookie})
    with pytest.raises(AuthenticationError, match="not begun"):
        finish_sign_in(lake_host, back, SignIn(back))


def test_address_of_the_settings_is_used_whatever_the_request_says(lake_host: Any, ways: Ways) -> None:
    lake_host.public_url = "https://lake.example"
    there = visit("sign-in/issuer", {"issuer": "corp"}, {}, {"host": "evil.example"})
    start_sign_in(lake_host, there, SignIn(there))
    assert ways.asked[0][2] == "https://lake.example/sign-in/callback"
    lake_host.public_url = None
    nowhere = visit("sign-in/issuer", {"issuer": "corp"}, {}, {})
    with pytest.raises(InvalidInputError, match="header `host`"):
        start_sign_in(lake_host, nowhere, SignIn(nowhere))


def test_host_without_issuers_has_no_such_page(lake_host: Any) -> None:
    there = visit("sign-in/issuer", {}, {})
    with pytest.raises(NotFoundError, match="no page"):
        start_sign_in(lake_host, there, SignIn(there))
