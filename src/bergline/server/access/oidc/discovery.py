"""What an issuer's server says of itself: fetched in bounded time and size, without following redirects."""

from collections.abc import Mapping
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from bergline.catalog.rest.client.transport import HttpResponse, NotSentError, ResponseLostError, Transport
from bergline.errors import InvalidInputError, UnavailableError
from bergline.server.access.oidc.issuer_settings import check_url, is_loopback
from bergline.server.http.settings import OidcIssuer

_TIMEOUTS_S = (3.0, 5.0)
_LONGEST_S = 10.0
_MOST_BYTES = 512 * 1024
_DISCOVERY = "/.well-known/openid-configuration"
_OK = 200


class Discovery(Protocol):
    """A discovery document, or a part of it."""

    @property
    def issuer(self) -> str:
        """Whose it is."""
        ...


_Document = TypeVar("_Document")
_Discovery = TypeVar("_Discovery", bound=Discovery)


class IssuerDocuments:
    """Asks the server of one issuer."""

    def __init__(self, issuer: OidcIssuer) -> None:
        self._issuer = issuer
        self._transport = Transport(_TIMEOUTS_S, _MOST_BYTES, _LONGEST_S)

    def discover(self, kind: type[_Discovery]) -> _Discovery:
        """The discovery document, which must be this issuer's; UnavailableError says why there is none."""
        found = self.get(f"{self._issuer.url.rstrip('/')}{_DISCOVERY}", kind)
        if found.issuer != self._issuer.url:
            raise UnavailableError(f"expected the issuer `{self._issuer.url}`, found `{found.issuer[:200]}`")
        return found

    def checked(self, url: str, name: str) -> str:
        """A URL of the discovery document, by its name there; UnavailableError for one that others could listen to."""
        try:
            check_url(url, f"`{name}`")
        except InvalidInputError as error:
            raise UnavailableError(str(error)) from error
        if is_loopback(urlsplit(url).hostname or "") and not is_loopback(urlsplit(self._issuer.url).hostname or ""):
            raise UnavailableError(f"expected a public address, found `{name}` on this machine")
        return url

    def get(self, url: str, kind: type[_Document]) -> _Document:
        """A document in JSON; UnavailableError says why there is none."""
        response = self.send("GET", url, {}, None)
        if response.status != _OK:
            raise UnavailableError(f"expected status 200 from {url}, found {response.status}")
        return decoded(response.body, url, kind)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        """The response to a request, whatever its status; UnavailableError without one."""
        try:
            return self._transport.send(method, url, {"Accept": "application/json", **headers}, body)
        except (NotSentError, ResponseLostError) as error:
            raise UnavailableError(f"cannot read {url}: {error}") from error


def decoded(body: bytes, url: str, kind: type[_Document]) -> _Document:
    """The JSON of a response; UnavailableError for anything else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnavailableError(f"expected the JSON of an OpenID Connect issuer from {url}, found other") from error
