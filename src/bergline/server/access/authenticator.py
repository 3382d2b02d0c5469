"""Bearer tokens: ours, looked up by their hash, and those of trusted issuers; both are cached for a few seconds."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bergline.catalog.sql.records import Records
from bergline.catalog.sql.tokens.console_sessions import SqlConsoleSessions
from bergline.catalog.sql.tokens.revoked_tokens import SqlRevokedTokens
from bergline.errors import AuthenticationError
from bergline.lazy_module import LazyModule
from bergline.server.access.failed_logins import TOO_MANY, FailedLogins
from bergline.server.access.revoked_tokens import RevokedTokens
from bergline.server.access.token_uses import TokenUses
from bergline.server.http.errors import RequestRefused
from bergline.server.http.principal import ANYBODY, Principal
from bergline.server.http.settings import OidcIssuer, ServerSettings

if TYPE_CHECKING:
    from bergline.server.access.oidc import browser_sign_in, trusted_issuers
else:
    browser_sign_in = LazyModule("bergline.server.access.oidc.browser_sign_in")
    trusted_issuers = LazyModule("bergline.server.access.oidc.trusted_issuers")  # cryptography takes its time

_LOG = logging.getLogger("bergline.server")
_CACHE_S = 5.0
_CACHE_ISSUED_S = 1.0  # with the second for which `RevokedTokens` asks nobody, what was revoked is refused after two
_MAX_CACHED = 10_000
_MAX_CACHED_CHARACTERS = 16 * 1024
_BEARER = "bearer "
_OWN_TOKEN = "bl_"  # noqa: S105  (how all of ours begin)


class TokenExpired(RequestRefused):
    """The time of a token of ours is over."""

    def __init__(self, principal: str) -> None:
        super().__init__(419, "AuthenticationTimeoutException", "the token's time is over")
        self.principal = principal


class Authenticator:
    """Checks tokens. A catalog that never had one takes everybody for anonymous; one that had, never does so again.

    A server that trusts an issuer needs a token too.
    """

    def __init__(
        self,
        records: Records,
        clock: Callable[[], float] = time.time,
        issuers: Sequence[OidcIssuer] = (),
        *,
        max_failed_logins: int = ServerSettings().max_failed_logins,
    ) -> None:
        self._records = records
        self._clock = clock
        revoked = RevokedTokens(SqlRevokedTokens(records.database, records.catalog_name), clock)
        self._issuers = trusted_issuers.TrustedIssuers(issuers, clock, is_revoked=revoked.refuses) if issuers else None
        self.browser_sign_in = self._browser_sign_in(issuers)
        """None if browsers sign in with no issuer."""
        self._lock = threading.Lock()
        self._cached: dict[bytes, tuple[Principal, float]] = {}
        """The tokens that were good when they were last looked at, and until when that need not be done again."""
        self._is_anonymous = False
        self._needs_token = self._token_needed()
        self._checked_at = clock()
        self.uses = TokenUses(records.tokens)
        self.failures = FailedLogins(max_failed_logins)

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
        return [token.name for token in self._records.tokens.all() if self._issuers.owns(token.principal)]

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

    def knows(self, header: str | None) -> bool:
        """Whether a token was good when it was last looked at."""
        return header is not None and len(header) <= _MAX_CACHED_CHARACTERS and _digest(header) in self._cached

    def recognize(self, header: str | None, address: str) -> Principal | None:
        """The principal, if it was looked up a moment ago; None for a header that `admit` finds worth a look."""
        known = self.cached(header)
        if known is None:
            self.admit(header, address)
        return known

    def admit(self, header: str | None, address: str) -> None:
        """Decide at once whether a header is worth a look.

        AuthenticationError without a token where one is needed, RequestRefused (429) for one that is not known from an
        address that has failed too often.
        """
        if self._needs_token:
            _check_bearer(header)
            if not self.knows(header):
                self.failures.check(address)

    def check(self, header: str | None, address: str = "") -> Principal:
        """The principal; AuthenticationError without a valid token, RequestRefused for one that has expired.

        RequestRefused (429) if too many have failed in the same name, UnavailableError if the keys of a token's issuer
        cannot be fetched.
        """
        try:
            return self._check(header)
        except (AuthenticationError, RequestRefused) as error:
            if header is not None:
                with self._lock:
                    self._cached.pop(_digest(header), None)
                self.failures.note(address, self._claimed(header, error))
            raise

    def _check(self, header: str | None) -> Principal:
        now = self._clock()
        if not self._needs_token:
            self._needs_token = self._token_needed()
            self._checked_at = now
            if not self._needs_token:
                return ANYBODY
        text = _token_of(_check_bearer(header))
        is_issued = self._issuers is not None and _is_issued(text)
        principal, until = self._issuers.check(text) if self._issuers and is_issued else self._find(text, now)
        if header is not None and len(header) <= _MAX_CACHED_CHARACTERS:
            self._keep(_digest(header), principal, min(until, now + (_CACHE_ISSUED_S if is_issued else _CACHE_S)))
        return principal

    def accepts(self, text: str, address: str) -> bool:
        """Whether a text is a valid token; RequestRefused (429) after too many that were not."""
        header = f"{_BEARER}{text}"
        try:
            self.admit(header, address)
            return bool(text) and bool(self.check(header, address))
        except AuthenticationError:
            return False
        except RequestRefused as refusal:
            if refusal.response.status == TOO_MANY:
                raise
            return False

    def _keep(self, digest: bytes, principal: Principal, until: float) -> None:
        with self._lock:
            self._cached.pop(digest, None)
            while len(self._cached) >= _MAX_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[digest] = principal, until

    def _claimed(self, header: str, error: Exception) -> str | None:
        """Whose a refused token says that it is, if it says so."""
        if isinstance(error, TokenExpired):
            return error.principal
        return None if self._issuers is None else self._issuers.claimed(_token_of(header))

    def _browser_sign_in(self, issuers: Sequence[OidcIssuer]) -> "browser_sign_in.BrowserSignIn | None":
        if self._issuers is None or not any(issuer.client for issuer in issuers):
            return None
        sessions = SqlConsoleSessions(self._records.database, self._records.catalog_name)
        return browser_sign_in.BrowserSignIn(self._issuers, issuers, sessions, self._clock)

    def _token_needed(self) -> bool:
        if self._issuers is not None:
            return True
        return bool(self._records.tokens.all()) if self._is_anonymous else self._records.tokens.is_closed

    def _find(self, text: str, now: float) -> tuple[Principal, float]:
        token = self._records.tokens.find(text)
        if token is None:
            raise AuthenticationError("the token is not accepted")
        if self._issuers is not None and self._issuers.owns(token.principal):
            _LOG.warning("refused token %s: its principal has a name that an issuer's would have", token.name)
            raise AuthenticationError("the token is not accepted")
        until = float("inf") if token.expires_ms is None else token.expires_ms / 1000
        if now >= until:
            raise TokenExpired(token.principal)
        self.uses.note(token.name, now)
        return Principal(token.principal, token.groups), until


def _check_bearer(header: str | None) -> str:
    if header is None or not header.lower().startswith(_BEARER):
        raise AuthenticationError("expected a bearer token, found none")
    return header


def _token_of(header: str) -> str:
    return header[len(_BEARER) :].strip()


def _is_issued(text: str) -> bool:
    return not text.startswith(_OWN_TOKEN) and trusted_issuers.is_jwt(text)


def _digest(header: str) -> bytes:
    """What a token is cached under: the memory of the server holds no more secrets than it must."""
    scheme, token = header[: len(_BEARER)].lower(), _token_of(header)
    return hashlib.sha256(f"{scheme}{token}".encode(errors="surrogatepass")).digest()
