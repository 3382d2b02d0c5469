"""Browsers sign in with an issuer: the authorization code flow with PKCE, from the first address to a session.

A browser has one secret for each attempt. State, nonce and the verifier of PKCE are derived from it, so the server
keeps nothing until the issuer has said who it is, and an answer counts only in the browser that asked for it.
"""

import base64
import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec

from bergline.catalog.sql.tokens.console_sessions import ConsoleSession, SqlConsoleSessions
from bergline.errors import AuthenticationError, InvalidInputError, UnavailableError
from bergline.server.access.oidc.discovery import IssuerDocuments, decoded
from bergline.server.access.oidc.trusted_issuers import IdToken, TrustedIssuers
from bergline.server.http.errors import RequestRefused
from bergline.server.http.principal import Principal, PrincipalKind
from bergline.server.http.settings import OidcClient, OidcIssuer

_LOG = logging.getLogger("bergline.server")
LONGEST_SESSION_S = 3600.0
_FRESH_S = 600.0
_LONGEST_CODE, _LONGEST_ID = 4096, 255
_OK, _FIRST_ERROR, _FIRST_SERVER_ERROR = 200, 400, 500


class _Endpoints(msgspec.Struct, frozen=True):
    """The part of a discovery document that is about signing in."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class _Way:
    """One issuer where browsers sign in."""

    def __init__(self, issuer: OidcIssuer, client: OidcClient) -> None:
        self.issuer = issuer
        self.client = client
        self._documents = IssuerDocuments(issuer)
        self._known: tuple[_Endpoints, float] | None = None

    def endpoints(self) -> _Endpoints:
        """What the issuer's discovery says, asked for again when it is ten minutes old."""
        now = time.monotonic()
        if self._known is None or now >= self._known[1]:
            found = self._documents.discover(_Endpoints)
            self._documents.checked(found.authorization_endpoint, "authorization_endpoint")
            self._documents.checked(found.token_endpoint, "token_endpoint")
            self._known = found, now + _FRESH_S
        return self._known[0]

    def id_token(self, code: str, verifier: str, redirect_uri: str) -> str:
        """What the issuer gives for a code; AuthenticationError if it does not accept it."""
        endpoints, client = self.endpoints(), self.client
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": client.client_id,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if client.secret is not None and "client_secret_basic" in endpoints.token_endpoint_auth_methods_supported:
            pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif client.secret is not None:
            form["client_secret"] = client.secret
        url = endpoints.token_endpoint
        response = self._documents.send("POST", url, headers, urlencode(form).encode())
        if _FIRST_ERROR <= response.status < _FIRST_SERVER_ERROR:
            said = response.body[:200].decode(errors="replace")
            _LOG.warning("issuer %s accepted no code: %s %r", self.issuer.alias, response.status, said)
            raise _not_accepted()
        if response.status != _OK:
            raise UnavailableError(
                f"expected status 200 from the issuer `{self.issuer.alias}`, found {response.status}"
            )
        return decoded(response.body, url, _Tokens).id_token


class BrowserSignIn:
    """Signs browsers in with the issuers that have a client, and knows those that are signed in."""

    def __init__(
        self,
        trusted: TrustedIssuers,
        issuers: Sequence[OidcIssuer],
        sessions: SqlConsoleSessions,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._trusted = trusted
        self._sessions = sessions
        self._clock = clock
        self._ways = {issuer.alias: _Way(issuer, issuer.client) for issuer in issuers if issuer.client is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """The issuers, by alias."""
        return tuple(self._ways)

    def address(self, name: str, secret: str, redirect_uri: str) -> str:
        """Where an issuer asks who a browser is, which has made up a secret."""
        way = self._way(name)
        endpoint = way.endpoints().authorization_endpoint
        query = {
            "response_type": "code",
            "client_id": way.client.client_id,
            "redirect_uri": redirect_uri,
            "scope": way.client.scopes,
            "state": _derived(secret, f"state {name}"),
            "nonce": _derived(secret, f"nonce {name}"),
            "code_challenge": _text(hashlib.sha256(_derived(secret, f"verifier {name}").encode()).digest()),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def finish(self, name: str, secret: str, redirect_uri: str, answer: Mapping[str, str]) -> tuple[str, int]:
        """The secret of a session, and for how many seconds it lasts, after an issuer's answer to this browser.

        AuthenticationError if the answer is not one that the browser has asked for, UnavailableError if the issuer does
        not respond. A session lasts an hour at most, and no longer than the issuer says.
        """
        way = self._way(name)
        if not hmac.compare_digest(answer.get("state", "").encode(), _derived(secret, f"state {name}").encode()):
            raise AuthenticationError("the answer does not belong to this browser: sign in again")
        _check_issuer(answer, way)
        if "error" in answer:
            _LOG.info("issuer %s signed nobody in: %r", name, answer["error"][:200])
            raise AuthenticationError(f"the issuer `{name}` has not signed you in: `{answer['error'][:80]}`")
        code = answer.get("code", "")
        if not 0 < len(code) <= _LONGEST_CODE:
            raise _not_accepted()
        token = way.id_token(code, _derived(secret, f"verifier {name}"), redirect_uri)
        said = self._checked(token, way, _derived(secret, f"nonce {name}"))
        now = self._clock()
        until = min(said.expires_s, now + LONGEST_SESSION_S)
        who = said.principal
        session = ConsoleSession(who.name, who.groups, _kept_id(said.token_id), int(said.issued_s * 1000))
        return self._sessions.start(session, int(now * 1000), int(until * 1000)), int(until - now)

    def caller(self, text: str) -> Principal:
        """Who is signed in with the secret of a session; AuthenticationError if nobody is any more."""
        found = self._sessions.find(text, int(self._clock() * 1000))
        if found is None or not self._trusted.accepts_still(found.principal, found.token_id, found.issued_ms / 1000):
            raise AuthenticationError("the session is over")
        return Principal(found.principal, found.groups, PrincipalKind.OIDC)

    def end(self, text: str) -> None:
        """Sign out, in all browsers that have this secret."""
        self._sessions.end(text)

    def _way(self, name: str) -> _Way:
        way = self._ways.get(name)
        if way is None:
            raise InvalidInputError(f"expected one of the issuers {', '.join(self._ways)}, found `{name[:80]}`")
        return way

    def _checked(self, token: str, way: _Way, nonce: str) -> IdToken:
        try:
            return self._trusted.check_id_token(token, way.issuer, way.client.client_id, nonce)
        except RequestRefused as refusal:
            raise AuthenticationError(str(refusal)) from refusal


def _check_issuer(answer: Mapping[str, str], way: _Way) -> None:
    """AuthenticationError for an answer that another issuer gave (RFC 9207)."""
    given = answer.get("iss")
    if given is None and way.endpoints().authorization_response_iss_parameter_supported:
        raise _not_accepted()
    if given is not None and given != way.issuer.url:
        _LOG.warning("an answer for issuer %s names another one", way.issuer.alias)
        raise _not_accepted()


def _kept_id(token_id: str | None) -> str | None:
    """The id of a token, if it is one by which tokens can be revoked."""
    is_one = token_id is not None and len(token_id) <= _LONGEST_ID and token_id.isprintable()
    return token_id if is_one else None


def _derived(secret: str, purpose: str) -> str:
    """A value for one purpose; nobody who sees it knows the secret or the other values."""
    return _text(hmac.digest(secret.encode(), purpose.encode(), "sha256"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _not_accepted() -> AuthenticationError:
    return AuthenticationError("the sign-in is not accepted: begin again")
