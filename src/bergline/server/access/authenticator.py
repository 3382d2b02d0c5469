"""Bearer tokens: ours, looked up by their hash, and those of trusted issuers; both are cached for a few seconds."""

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bergline.catalog.sql.records import Records
from bergline.errors import AuthenticationError
from bergline.lazy_module import LazyModule
from bergline.server.access.principal import ANYBODY, Principal
from bergline.server.access.token_uses import TokenUses
from bergline.server.http.errors import RequestRefused
from bergline.server.http.settings import OidcIssuer

if TYPE_CHECKING:
    from bergline.server.access.oidc import trusted_issuers
else:
    trusted_issuers = LazyModule("bergline.server.access.oidc.trusted_issuers")  # cryptography takes its time

_LOG = logging.getLogger("bergline.server")
_CACHE_S = 5.0
_MAX_CACHED = 10_000
_MAX_CACHED_CHARACTERS = 16 * 1024
_BEARER = "bearer "
_OWN_TOKEN = "bl_"  # noqa: S105  (how all of ours begin)


class Authenticator:
    """Checks tokens. A catalog that never had one takes everybody for anonymous; one that had, never does so again.

    A server that trusts an issuer needs a token too.
    """

    def __init__(
        self, records: Records, clock: Callable[[], float] = time.time, issuers: Sequence[OidcIssuer] = ()
    ) -> None:
        self._records = records
        self._clock = clock
        self._issuers = trusted_issuers.TrustedIssuers(issuers, clock) if issuers else None
        self._cached: dict[bytes, tuple[Principal, float]] = {}
        self._is_anonymous = False
        self._needs_token = self._token_needed()
        self._checked_at = clock()
        self.uses = TokenUses(records.access)

    @property
    def has_tokens(self) -> bool:
        """Whether a token is needed."""
        return self._needs_token

    @property
    def has_issuers(self) -> bool:
        """Whether tokens of others than this server are accepted."""
        return self._issuers is not None

    def allow_anonymous(self) -> None:
        """Accept requests without a token for as long as there is none, even if there was one."""
        self._is_anonymous = True
        self._needs_token = self._token_needed()

    def fetch_keys(self) -> list[str]:
        """Get the keys of the issuers before they are needed; what is wrong with some."""
        return [] if self._issuers is None else self._issuers.fetch_keys()

    def shadowed_tokens(self) -> list[str]:
        """Tokens that are not accepted because their principals have names that an issuer's would have."""
        if self._issuers is None:
            return []
        return [token.name for token in self._records.tokens() if self._issuers.owns(token.principal)]

    def may_wait_for_keys(self, header: str | None) -> bool:
        """Whether checking a header may take as long as an issuer's server takes."""
        return header is not None and self._issuers is not None and _is_issued(_token_of(header))

    def cached(self, header: str | None) -> Principal | None:
        """The principal, if it was looked up a moment ago; None says nothing."""
        now = self._clock()
        if not self._needs_token:
            return ANYBODY if now < self._checked_at + _CACHE_S else None
        if header is None or len(header) > _MAX_CACHED_CHARACTERS:
            return None
        principal, until = self._cached.get(_digest(header), (None, 0.0))
        return principal if now < until else None

    def check(self, header: str | None) -> Principal:
        """The principal; AuthenticationError without a valid token, RequestRefused for one that has expired.

        UnavailableError if the keys of a token's issuer cannot be fetched.
        """
        now = self._clock()
        if not self._needs_token:
            self._needs_token = self._token_needed()
            self._checked_at = now
            if not self._needs_token:
                return ANYBODY
        if header is None or not header.lower().startswith(_BEARER):
            raise AuthenticationError("expected a bearer token, found none")
        text = _token_of(header)
        is_issued = self._issuers is not None and _is_issued(text)
        principal, until = self._issuers.check(text) if self._issuers and is_issued else self._find(text, now)
        if len(self._cached) >= _MAX_CACHED:
            self._cached.clear()
        if len(header) <= _MAX_CACHED_CHARACTERS:
            self._cached[_digest(header)] = principal, min(until, now + _CACHE_S)
        return principal

    def accepts(self, text: str) -> bool:
        """Whether a text is a valid token."""
        try:
            return bool(text) and bool(self.check(f"{_BEARER}{text}"))
        except (AuthenticationError, RequestRefused):
            return False

    def _token_needed(self) -> bool:
        if self._issuers is not None:
            return True
        return bool(self._records.tokens()) if self._is_anonymous else self._records.is_closed

    def _find(self, text: str, now: float) -> tuple[Principal, float]:
        token = self._records.find_token(text)
        if token is None:
            raise AuthenticationError("the token is not accepted")
        if self._issuers is not None and self._issuers.owns(token.principal):
            _LOG.warning("refused token %s: its principal has a name that an issuer's would have", token.name)
            raise AuthenticationError("the token is not accepted")
        until = float("inf") if token.expires_ms is None else token.expires_ms / 1000
        if now >= until:
            raise RequestRefused(419, "AuthenticationTimeoutException", "the token's time is over")
        self.uses.note(token.name, now)
        return Principal(token.principal, token.groups), until


def _token_of(header: str) -> str:
    return header[len(_BEARER) :].strip()


def _is_issued(text: str) -> bool:
    return not text.startswith(_OWN_TOKEN) and trusted_issuers.is_jwt(text)


def _digest(header: str) -> bytes:
    """What a token is cached under: the memory of the server holds no more secrets than it must."""
    return hashlib.sha256(header.encode(errors="surrogatepass")).digest()
