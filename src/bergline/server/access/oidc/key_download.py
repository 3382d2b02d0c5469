"""The keys of an issuer, as its server has them: downloaded in bounded time and size, without following redirects."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from bergline.catalog.rest.client.transport import NotSentError, ResponseLostError, Transport
from bergline.errors import InvalidInputError, UnavailableError
from bergline.server.access.oidc.issuer_settings import check_url, is_loopback
from bergline.server.http.settings import OidcIssuer

_TIMEOUTS_S = (3.0, 5.0)
_LONGEST_S = 10.0
_MOST_BYTES = 512 * 1024
_MOST_KEYS = 100
_DISCOVERY = "/.well-known/openid-configuration"
_OK = 200

JsonWebKey = Mapping[str, Any]
_Document = TypeVar("_Document")


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class KeyDownload:
    """Downloads the keys of one issuer."""

    def __init__(self, issuer: OidcIssuer) -> None:
        self._issuer = issuer
        self._transport = Transport(_TIMEOUTS_S, _MOST_BYTES, _LONGEST_S)

    def __call__(self) -> list[dict[str, Any]]:
        """All keys of the issuer; UnavailableError says why there are none."""
        found = self._get(self._issuer.jwks_url or self._discovered(), _KeySet)
        if len(found.keys) > _MOST_KEYS:
            raise UnavailableError(f"expected up to {_MOST_KEYS} keys, found {len(found.keys)}")
        return found.keys

    def _discovered(self) -> str:
        """Where the issuer says that its keys are."""
        found = self._get(f"{self._issuer.url.rstrip('/')}{_DISCOVERY}", _Discovery)
        if found.issuer != self._issuer.url:
            raise UnavailableError(f"expected the issuer `{self._issuer.url}`, found `{found.issuer[:200]}`")
        try:
            check_url(found.jwks_uri, "`jwks_uri`")
        except InvalidInputError as error:
            raise UnavailableError(str(error)) from error
        if is_loopback(urlsplit(found.jwks_uri).hostname or "") and not is_loopback(
            urlsplit(self._issuer.url).hostname or ""
        ):
            raise UnavailableError("expected keys at a public address, found `jwks_uri` on this machine")
        return found.jwks_uri

    def _get(self, url: str, kind: type[_Document]) -> _Document:
        try:
            response = self._transport.send("GET", url, {"Accept": "application/json"}, None)
        except (NotSentError, ResponseLostError) as error:
            raise UnavailableError(f"cannot read {url}: {error}") from error
        if response.status != _OK:
            raise UnavailableError(f"expected status 200 from {url}, found {response.status}")
        try:
            return msgspec.json.decode(response.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UnavailableError(f"expected the JSON of an OpenID Connect issuer from {url}, found other") from error
