"""Browsers sign in with an issuer, and others try to."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import msgspec
import pytest
import urllib3

from bergline.catalog.sql.records import Records
from bergline.catalog.sql.tokens.console_sessions import ConsoleSession, SqlConsoleSessions
from bergline.catalog.sql.tokens.revoked_tokens import SqlRevokedTokens
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.oidc.browser_sign_in import BrowserSignIn
from bergline.server.access.oidc.trusted_issuers import TrustedIssuers
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import OidcClient
from support.servers.asgi_client import TOKEN, AsgiClient, AsgiResponse, bearer
from support.servers.oidc_issuer import CONSOLE, CONSOLE_SECRET, OidcIssuerServer

CLIENT = OidcClient(CONSOLE, CONSOLE_SECRET)
FLOW, SESSION = "bergline-flow-8181", "bergline-token-8181"


class _Csrf(HTMLParser):
    found = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("name", "csrf") in attrs:
            self.found = dict(attrs)["value"] or ""


class Browser:
    """Keeps cookies, and goes to the issuer and back."""

    def __init__(self, client: AsgiClient) -> None:
        self.client = client
        self.cookies: dict[str, str] = {}
        self.set: dict[str, Mapping[str, str]] = {}

    def __call__(self, method: str, path: str, body: Any = None, **query: str) -> AsgiResponse:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"host": "localhost:8181", "accept": "text/html", **({"cookie": cookies} if cookies else {})}
        response = self.client(method, path, body, query=query, headers=headers)
        for morsel in response.cookies.values():
            self.set[morsel.key] = morsel
            self.cookies[morsel.key] = morsel.value
            if morsel["max-age"] == "0":
                del self.cookies[morsel.key]
        return response

    def asked(self, issuer: str = "corp", **query: str) -> str:
        """Where the issuer sends the browser back to."""
        gone = self("GET", "/sign-in/issuer", issuer=issuer, **query)
        assert gone.status == 303, gone
        back = urllib3.request("GET", gone.headers["location"], redirect=False, retries=False)
        return back.headers["location"]

    def back(self, address: str, **other: str) -> AsgiResponse:
        parts = urlsplit(address)
        assert (parts.netloc, parts.path) == ("localhost:8181", "/sign-in/callback")
        return self("GET", parts.path, **(dict(parse_qsl(parts.query)) | other))

    def who(self) -> str | None:
        page = self("GET", "/lake.json")
        return None if page.status == 401 else str(page.status)


@pytest.fixture
def issuer() -> Iterator[OidcIssuerServer]:
    with OidcIssuerServer() as server:
        yield server


@pytest.fixture
def trusting(guarded: ServerContext, issuer: OidcIssuerServer) -> ServerContext:
    guarded.authenticator = Authenticator(guarded.records, issuers=[issuer.settings(client=CLIENT)])
    return guarded


@pytest.fixture
def browser(trusting: ServerContext) -> Iterator[Browser]:
    with AsgiClient(trusting) as client:
        yield Browser(client)


def test_browser_signs_in_and_out_and_comes_to_the_page_that_it_wanted(
    browser: Browser, trusting: ServerContext, issuer: OidcIssuerServer
) -> None:
    page = browser("GET", "/sign-in", next="/audit?limit=1")
    assert b'href="/sign-in/issuer?issuer=corp&amp;next=%2Faudit%3Flimit%3D1"' in page.body
    done = browser.back(browser.asked(next="/audit?limit=1"))
    assert done.status == 200, done
    assert done.headers["refresh"] == "0; url=/audit?limit=1"
    session = browser.set[SESSION]
    assert session["httponly"]
    assert session["samesite"] == "Strict"
    assert 590 <= int(session["max-age"]) <= 600  # as long as the token is valid
    assert FLOW not in browser.cookies
    home = browser("GET", "/")
    assert b"Signed in as <bdi>corp:alice</bdi>" in home.body
    secret = browser.cookies[SESSION]
    parser = _Csrf()
    parser.feed(home.body.decode())
    assert browser("POST", "/sign-out", b"csrf=wrong").status == 403
    assert browser.who() == "200"
    assert browser("POST", "/sign-out", urlencode({"csrf": parser.found}).encode()).status == 303
    browser.cookies[SESSION] = secret  # of somebody who has kept it
    assert browser.who() is None


def test_groups_of_the_issuer_are_those_of_the_session(browser: Browser, trusting: ServerContext) -> None:
    browser.back(browser.asked())
    signing_in = trusting.authenticator.browser_sign_in
    assert signing_in is not None
    assert signing_in.caller(browser.cookies[SESSION]).groups == {"corp:eng"}


def test_session_is_no_token_of_the_api(browser: Browser) -> None:
    browser.back(browser.asked())
    assert browser.client("GET", "/v1/config", headers=bearer(browser.cookies[SESSION])).status == 401


def test_session_lasts_an_hour_at_most(browser: Browser, issuer: OidcIssuerServer) -> None:
    issuer.id_claims = {"exp": int(time.time()) + 86_400}
    browser.back(browser.asked())
    assert int(browser.set[SESSION]["max-age"]) == 3600


def test_session_is_over_on_the_server_too(guarded: ServerContext, issuer: OidcIssuerServer) -> None:
    offset = [0.0]
    issuers = [issuer.settings(client=CLIENT)]
    guarded.authenticator = Authenticator(guarded.records, lambda: time.time() + offset[0], issuers)
    with AsgiClient(guarded) as client:
        browser = Browser(client)
        browser.back(browser.asked())
        assert browser.who() == "200"
        offset[0] = 601
        assert browser.who() is None


@pytest.mark.parametrize("by", ["id", "principal"])
def test_session_ends_with_the_token_that_it_came_from(
    guarded: ServerContext, issuer: OidcIssuerServer, by: str
) -> None:
    revoked: set[str | None] = set()

    def is_revoked(token_id: str | None, principal: str, issued_s: float) -> bool:
        assert issued_s > time.time() - 60
        return bool(revoked & {token_id, principal})

    issuers = [issuer.settings(client=CLIENT)]
    trusted = TrustedIssuers(issuers, is_revoked=is_revoked)
    signing_in = BrowserSignIn(trusted, issuers, SqlConsoleSessions(guarded.records.database, "lake"))
    guarded.authenticator = Authenticator(guarded.records, issuers=issuers)
    guarded.authenticator.browser_sign_in = signing_in
    with AsgiClient(guarded) as client:
        browser = Browser(client)
        issuer.id_claims = {"jti": "one"}
        browser.back(browser.asked())
        assert browser.who() == "200"
        revoked.add("one" if by == "id" else "corp:alice")
        assert browser.who() is None
        assert browser.back(browser.asked()).status == 401


def test_session_ends_when_its_user_is_revoked_in_the_database(
    guarded: ServerContext, issuer: OidcIssuerServer
) -> None:
    offset = [0.0]
    issuers = [issuer.settings(client=CLIENT)]
    guarded.authenticator = Authenticator(guarded.records, lambda: time.time() + offset[0], issuers)
    with AsgiClient(guarded) as client:
        browser = Browser(client)
        browser.back(browser.asked())
        assert browser.who() == "200"
        now_ms = time.time_ns() // 1_000_000
        revoked = SqlRevokedTokens(guarded.records.database, guarded.records.catalog_name)
        revoked.revoke_principal("corp:alice", now_ms + 5_000, now_ms)
        offset[0] = 3  # servers look at the list every second
        assert browser.who() is None


def test_id_that_a_database_cannot_hold_is_not_kept(browser: Browser, issuer: OidcIssuerServer) -> None:
    for token_id in ("x" * 300, "a\0b", 7):
        issuer.id_claims = {"jti": token_id}
        assert browser.back(browser.asked()).status == 200


def test_public_client_needs_no_secret(guarded: ServerContext, issuer: OidcIssuerServer) -> None:
    issuer.is_public = True
    guarded.authenticator = Authenticator(guarded.records, issuers=[issuer.settings(client=OidcClient(CONSOLE))])
    with AsgiClient(guarded) as client:
        browser = Browser(client)
        assert browser.back(browser.asked()).status == 200


def test_secret_is_sent_as_the_issuer_wants_it(browser: Browser, issuer: OidcIssuerServer) -> None:
    issuer.discovery_said = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert browser.back(browser.asked()).status == 200


def test_under_tls_cookies_are_bound_to_the_host(trusting: ServerContext) -> None:
    trusting.settings = msgspec.structs.replace(trusting.settings, console_url="https://localhost:8181")
    with AsgiClient(trusting) as client:
        browser = Browser(client)
        gone = browser("GET", "/sign-in/issuer", issuer="corp")
        asked = parse_qs(urlsplit(gone.headers["location"]).query)
        assert asked["redirect_uri"] == ["https://localhost:8181/sign-in/callback"]
        (name,) = browser.cookies
        assert name == f"__Host-{FLOW}"
        assert browser.set[name]["secure"]
        assert (browser.set[name]["samesite"], browser.set[name]["path"]) == ("Lax", "/")
        browser.cookies = {FLOW: browser.cookies[name]}  # as a host in the same domain could set it
        assert browser("GET", "/sign-in/callback", code="x", state=asked["state"][0]).status == 401


class TestAttacks:
    """None of them signs anybody in."""

    @pytest.fixture(autouse=True)
    def nobody(self, browser: Browser) -> Iterator[None]:
        yield
        assert browser.who() is None

    def test_answer_of_another_browser(self, browser: Browser, trusting: ServerContext) -> None:
        """Login CSRF: the victim is sent the attacker's code and state."""
        attacker = Browser(browser.client)
        address = attacker.asked()
        assert browser.back(address).status == 401
        browser.asked()  # the victim's own attempt is under way
        assert browser.back(address).status == 401

    def test_replayed_code(self, browser: Browser) -> None:
        address = browser.asked()
        flow = browser.cookies[FLOW]
        assert browser.back(address).status == 200
        del browser.cookies[SESSION]
        assert browser.back(address).status == 401
        browser.cookies[FLOW] = flow
        assert browser.back(address).status == 401

    def test_stolen_code_in_ones_own_attempt(self, browser: Browser) -> None:
        """PKCE: a code that somebody else was given is worth nothing with another verifier."""
        victim = Browser(browser.client)
        stolen = dict(parse_qsl(urlsplit(victim.asked()).query))["code"]
        assert browser.back(browser.asked(), code=stolen).status == 401

    @pytest.mark.parametrize("state", ["", "x", "é"])
    def test_other_state(self, browser: Browser, state: str) -> None:
        assert browser.back(browser.asked(), state=state).status == 401

    @pytest.mark.parametrize(
        "claims",
        [
            {"nonce": "other"},
            {"nonce": None},
            {"aud": "bergline"},
            {"aud": [CONSOLE, "other"]},
            {"azp": "other"},
            {"exp": 1},
            {"iat": int(time.time()) + 3600},
            {"sub": None},
            {"iss": "https://id.example"},
        ],
    )
    def test_id_token_that_is_not_for_this_sign_in(
        self, browser: Browser, issuer: OidcIssuerServer, claims: dict[str, Any]
    ) -> None:
        issuer.id_claims = claims
        assert browser.back(browser.asked()).status == 401

    def test_id_token_of_another_key(self, browser: Browser, issuer: OidcIssuerServer) -> None:
        issuer.id_claims = {"number": 2}
        assert browser.back(browser.asked()).status == 401

    def test_access_token_in_place_of_an_id_token(self, browser: Browser, issuer: OidcIssuerServer) -> None:
        issuer.id_claims = {"headers": {"typ": "at+jwt"}}
        assert browser.back(browser.asked()).status == 401

    def test_id_token_of_an_earlier_sign_in(self, browser: Browser, issuer: OidcIssuerServer) -> None:
        issuer.id_token = issuer.token(aud=CONSOLE, nonce="of-then")
        assert browser.back(browser.asked()).status == 401

    def test_answer_that_names_another_issuer(self, browser: Browser, issuer: OidcIssuerServer) -> None:
        issuer.answer = {"iss": "https://id.example"}
        assert browser.back(browser.asked()).status == 401

    def test_answer_of_an_issuer_that_always_says_its_name(self, browser: Browser, issuer: OidcIssuerServer) -> None:
        issuer.discovery_said = {"authorization_response_iss_parameter_supported": True}
        assert browser.back(browser.asked()).status == 401
        issuer.answer = {"iss": issuer.url}
        assert browser.back(browser.asked()).status == 200
        del browser.cookies[SESSION]

    def test_answer_without_a_code(self, browser: Browser, issuer: OidcIssuerServer) -> None:
        assert browser.back(browser.asked(), code="").status == 401
        denied = browser.back(browser.asked(), error="<b>access_denied</b>")
        assert denied.status == 401
        assert b"&lt;b&gt;access_denied" in denied.body

    def test_session_of_another_server(self, browser: Browser, trusting: ServerContext) -> None:
        other = Records(trusting.records.database, "other")
        elsewhere = SqlConsoleSessions(other.database, other.catalog_name)
        now = time.time_ns() // 1_000_000
        browser.cookies[SESSION] = elsewhere.start(ConsoleSession("corp:alice", frozenset()), now, now + 60_000)
        assert elsewhere.find(browser.cookies[SESSION], now) is not None

    def test_session_of_an_issuer_that_is_not_trusted_any_more(
        self, browser: Browser, trusting: ServerContext, issuer: OidcIssuerServer
    ) -> None:
        browser.back(browser.asked())
        assert browser.who() == "200"
        settings = issuer.settings(alias="other", client=CLIENT)
        trusting.authenticator = Authenticator(trusting.records, issuers=[settings])

    def test_session_chosen_by_somebody_else(self, browser: Browser) -> None:
        """Session fixation: signing in makes a new secret, and the one that was there stays worthless."""
        browser.cookies[SESSION] = "bs_chosen"
        browser.back(browser.asked())
        assert browser.cookies[SESSION] != "bs_chosen"
        browser.cookies[SESSION] = "bs_chosen"

    def test_token_in_place_of_a_session(self, browser: Browser) -> None:
        browser.cookies[SESSION] = f"bs_{TOKEN}"
        assert browser.who() is None

    def test_head_and_post_of_the_callback(self, browser: Browser) -> None:
        address = urlsplit(browser.asked())
        query = dict(parse_qsl(address.query))
        assert browser("HEAD", address.path, **query).status == 405
        assert browser("POST", address.path, b"", **query).status == 403


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil", "/" + "x" * 2000]
)
def test_sign_in_leads_to_no_other_site(browser: Browser, elsewhere: str) -> None:
    assert browser.back(browser.asked(next=elsewhere)).headers["refresh"] == "0; url=/"
    address = browser.asked()
    head, _, _ = browser.cookies[FLOW].rpartition(".")
    browser.cookies[FLOW] = f"{head}.//evil.example"
    assert browser.back(address).headers["refresh"] == "0; url=/"


def test_answer_of_one_issuer_is_not_taken_for_that_of_another(
    guarded: ServerContext, issuer: OidcIssuerServer
) -> None:
    """Mix-up: two issuers, of which one is bad, and has the keys of its own tokens."""
    with OidcIssuerServer() as bad, AsgiClient(guarded) as client:
        guarded.authenticator = Authenticator(
            guarded.records, issuers=[issuer.settings(client=CLIENT), bad.settings(alias="bad", client=CLIENT)]
        )
        browser = Browser(client)
        at_bad, flow = browser.asked("bad"), browser.cookies[FLOW]
        browser.cookies[FLOW] = flow.replace("bad.", "corp.", 1)
        assert browser.back(at_bad).status == 401
        bad.id_claims = {"iss": issuer.url}
        assert browser.back(browser.asked("bad")).status == 401
        bad.id_claims, bad.answer = {}, {"iss": issuer.url}
        assert browser.back(browser.asked("bad")).status == 401
        bad.answer = {}
        bad.discovery_said = {"token_endpoint": "http://id.example/token"}
        guarded.authenticator = Authenticator(guarded.records, issuers=[bad.settings(alias="bad", client=CLIENT)])
        assert browser("GET", "/sign-in/issuer", issuer="bad").status == 503


def test_issuer_that_is_gone_is_told(browser: Browser, issuer: OidcIssuerServer) -> None:
    address = browser.asked()
    issuer.stop()
    gone = browser.back(address)
    assert gone.status == 503
    assert b"cannot read" in gone.body


def test_issuer_that_hangs_keeps_no_page_waiting(browser: Browser, issuer: OidcIssuerServer) -> None:
    address = urlsplit(browser.asked())
    headers = {"host": "localhost:8181", "cookie": f"{FLOW}={browser.cookies[FLOW]}"}
    issuer.delay_s = 2.0

    async def ask() -> tuple[float, list[int]]:
        query = dict(parse_qsl(address.query))
        waiting = [
            asyncio.create_task(browser.client.send("GET", address.path, [b""], query=query, headers=headers))
            for _ in range(8)
        ]
        await asyncio.sleep(0.2)
        started = time.monotonic()
        page = await browser.client.send("GET", "/lake.json", [b""], headers={**headers, **bearer(TOKEN)})
        took = time.monotonic() - started
        assert page.status == 200
        issuer.delay_s = 0.0
        return took, sorted([one.status for one in await asyncio.gather(*waiting)])

    took, statuses = asyncio.run(ask())
    assert took < 1
    assert statuses == [200] + [401] * 7  # the code is good once


def test_unknown_issuer_and_server_without_one(browser: Browser, guarded: ServerContext) -> None:
    assert browser("GET", "/sign-in/issuer", issuer="other").status == 400
    guarded.authenticator = Authenticator(guarded.records)
    assert browser("GET", "/sign-in/issuer", issuer="corp").status == 404
    assert browser("GET", "/sign-in/callback").status == 404
