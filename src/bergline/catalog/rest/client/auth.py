"""Authentication to the server: none, a fixed token, basic, or OAuth2 tokens that are refreshed."""

import base64
import binascii
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import HttpResponse, NotSentError, ResponseLostError, Transport
from bergline.catalog.rest.protocol.bodies import OAuthError, OAuthTokenResponse
from bergline.catalog.rest.protocol.endpoints import GET_TOKEN
from bergline.errors import AuthenticationError, UnavailableError
from bergline.io.settings import check_endpoint

_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_EARLY_S = 300.0
_JWT_PARTS = 3
_OK = 200
_FIRST_SERVER_ERROR = 500


class BearerToken(NamedTuple):
    """A token and its expiry in seconds since 1970."""

    text: str
    renew_at: float | None


class Authorization:
    """Provides the authorization header; thread-safe."""

    def __init__(
        self, settings: RestSettings, transport: Transport, *, clock_s: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._token = self._given_token()

    def adopt(self, settings: RestSettings) -> None:
        """Use the settings merged with the server's configuration."""
        with self._lock:
            given = settings.text("token") != self._settings.text("token")
            self._settings = settings
            if given:
                self._token = self._given_token()

    def header(self) -> dict[str, str]:
        """The header of the next request; a token that is about to expire is refreshed first."""
        kind = (self._settings.text("rest.auth.type") or "oauth2").lower()
        if kind == "none" or any(name.lower() == "authorization" for name in self._settings.headers):
            return {}
        if kind == "basic":
            return {"Authorization": f"Basic {self._basic()}"}
        with self._lock:
            if self._token is None and self._settings.text("credential"):
                self._token = self._ask_for_token()
            elif self._token and self._token.renew_at is not None and self._clock_s() >= self._token.renew_at:
                self._token = self._renewed(self._token)
            return {} if self._token is None else {"Authorization": f"Bearer {self._token.text}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Replace a header that the server rejected; False if there is no other."""
        with self._lock:
            if self._token is None or not refused:
                return False
            if refused != {"Authorization": f"Bearer {self._token.text}"}:  # another thread has renewed it
                return True
            if not self._settings.text("credential"):
                return False
            self._token = self._ask_for_token()
            return True

    def advice(self) -> str:
        """A hint for a rejected caller."""
        if (self._settings.text("rest.auth.type") or "oauth2").lower() == "basic":
            return "look at the properties `rest.auth.basic.username` and `rest.auth.basic.password`"
        if self._settings.text("credential"):
            return "look at the property `credential`"
        if self._settings.text("token"):
            return "the token may be wrong, too old or revoked: give another as property `token`"
        return "give a token as property `token`, or `id:secret` as `credential`"

    def _given_token(self) -> BearerToken | None:
        text = self._settings.text("token")
        if text is None:
            return None
        expires = _expiry(text)
        if expires is None and self._settings.text("token-expires-in-ms"):
            expires = self._clock_s() + self._settings.number("token-expires-in-ms", 1, 2**40) / 1000
        return self._made(text, expires)

    def _made(self, text: str, expires: float | None) -> BearerToken:
        if expires is None or not self._settings.flag("token-refresh-enabled", otherwise=True):
            return BearerToken(text, None)
        left = max(0.0, expires - self._clock_s())
        return BearerToken(text, expires - min(_EARLY_S, left / 10))

    def _renewed(self, old: BearerToken) -> BearerToken:
        """Refresh a token that is about to expire; one that cannot be exchanged is used until it is rejected."""
        if self._settings.flag("token-exchange-enabled", otherwise=True):
            form = {"grant_type": _EXCHANGE, "subject_token": old.text, "subject_token_type": _TOKEN_TYPE}
            try:
                return self._fetch(form, {"Authorization": f"Bearer {old.text}"})
            except (AuthenticationError, UnavailableError):
                pass
        if self._settings.text("credential"):
            return self._ask_for_token()
        return BearerToken(old.text, None)

    def _ask_for_token(self) -> BearerToken:
        """Request a token with client credentials, `id:secret` or the secret alone."""
        before, colon, after = (self._settings.text("credential") or "").partition(":")
        who = {"client_id": before.strip(), "client_secret": after.strip()} if colon else {"client_secret": before}
        return self._fetch({"grant_type": "client_credentials", **who}, {})

    def _fetch(self, form: Mapping[str, str], headers: Mapping[str, str]) -> BearerToken:
        asked = {name: text for name in ("audience", "resource") if (text := self._settings.text(name))}
        body = urlencode({**form, "scope": self._settings.text("scope") or "catalog", **asked}).encode()
        sent = {**headers, "Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        try:
            response = self._transport.send("POST", self._token_url(), sent, body)
        except (NotSentError, ResponseLostError) as error:
            raise UnavailableError(f"cannot get a token from {self._token_url()}: {error}") from error
        found = self._parsed(response)
        expires = _expiry(found.access_token) if found.expires_in is None else self._clock_s() + found.expires_in
        return self._made(found.access_token, expires)

    def _parsed(self, response: HttpResponse) -> OAuthTokenResponse:
        place = self._token_url()
        if response.status >= _FIRST_SERVER_ERROR:
            raise UnavailableError(f"cannot get a token from {place}: it answered {response.status}")
        try:
            if response.status == _OK:
                found = msgspec.json.decode(response.body, type=OAuthTokenResponse)
                if found.access_token.isprintable() and found.access_token.isascii():
                    return found
            why = msgspec.json.decode(response.body, type=OAuthError)
            reason = f"{why.error}: {why.error_description}" if why.error_description else why.error
        except (msgspec.MsgspecError, UnicodeDecodeError):
            reason = "not what OAuth2 says"
        raise AuthenticationError(
            f"expected a token from {place}, found status {response.status}, {self._settings.hide(reason)[:300]}"
        )

    def _token_url(self) -> str:
        """The token endpoint: on the server itself, a path on it, or another server."""
        given = self._settings.text("oauth2-server-uri") or GET_TOKEN.path
        url = given if "://" in given else f"{self._settings.uri}/{given.lstrip('/')}"
        check_endpoint(url, "property `oauth2-server-uri`")
        return url

    def _basic(self) -> str:
        name = self._settings.text("rest.auth.basic.username") or ""
        password = self._settings.text("rest.auth.basic.password") or ""
        return base64.b64encode(f"{name}:{password}".encode()).decode()


class _Claims(msgspec.Struct):
    exp: float | None = None


def _expiry(token: str) -> float | None:
    """The expiry in a JWT."""
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(claims, type=_Claims).exp
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
