"""The keys of an issuer, as its server has them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bergline.errors import UnavailableError
from bergline.server.access.oidc.discovery import IssuerDocuments
from bergline.server.http.settings import OidcIssuer

_MOST_KEYS = 100

JsonWebKey = Mapping[str, Any]


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class KeyDownload:
    """Downloads the keys of one issuer."""

    def __init__(self, issuer: OidcIssuer) -> None:
        self._issuer = issuer
        self._documents = IssuerDocuments(issuer)

    def __call__(self) -> list[dict[str, Any]]:
        """All keys of the issuer; UnavailableError says why there are none."""
        found = self._documents.get(self._issuer.jwks_url or self._discovered(), _KeySet)
        if len(found.keys) > _MOST_KEYS:
            raise UnavailableError(f"expected up to {_MOST_KEYS} keys, found {len(found.keys)}")
        return found.keys

    def _discovered(self) -> str:
        """Where the issuer says that its keys are."""
        return self._documents.checked(self._documents.discover(_Discovery).jwks_uri, "jwks_uri")
