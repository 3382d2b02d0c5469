"""Bearer tokens, looked up by their hash and cached for a few seconds."""

import time
from collections.abc import Callable

from bergline.catalog.sql.records import Records
from bergline.errors import AuthenticationError
from bergline.server.http.errors import RequestRefused
from bergline.server.http.request import ANONYMOUS

_CACHE_S = 5.0
_MAX_CACHED = 10_000
_MAX_CACHED_CHARACTERS = 512
_BEARER = "bearer "


class Authenticator:
    """Checks tokens. A catalog that never had one takes everybody for anonymous; one that had, never does so again."""

    def __init__(self, records: Records, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._clock = clock
        self._cached: dict[str, tuple[str, float]] = {}
        self._is_anonymous = False
        self._needs_token = self._token_needed()
        self._checked_at = clock()

    @property
    def has_tokens(self) -> bool:
        """Whether a token is needed."""
        return self._needs_token

    def allow_anonymous(self) -> None:
        """Accept requests without a token for as long as there is none, even if there was one."""
        self._is_anonymous = True
        self._needs_token = self._token_needed()

    def cached(self, header: str | None) -> str | None:
        """The principal, if it was looked up a moment ago; None says nothing."""
        now = self._clock()
        if not self._needs_token:
            return ANONYMOUS if now < self._checked_at + _CACHE_S else None
        name, until = self._cached.get(header or "", ("", 0.0))
        return name if now < until else None

    def check(self, header: str | None) -> str:
        """The principal; AuthenticationError without a valid token, RequestRefused for one that has expired."""
        now = self._clock()
        if not self._needs_token:
            self._needs_token = self._token_needed()
            self._checked_at = now
            if not self._needs_token:
                return ANONYMOUS
        if header is None or not header.lower().startswith(_BEARER):
            raise AuthenticationError("expected a bearer token, found none")
        name, until = self._find(header[len(_BEARER) :].strip(), now)
        if len(self._cached) >= _MAX_CACHED:
            self._cached.clear()
        if len(header) <= _MAX_CACHED_CHARACTERS:
            self._cached[header] = name, min(until, now + _CACHE_S)
        return name

    def accepts(self, text: str) -> bool:
        """Whether a text is a valid token."""
        try:
            return bool(text) and bool(self.check(f"{_BEARER}{text}"))
        except (AuthenticationError, RequestRefused):
            return False

    def _token_needed(self) -> bool:
        return bool(self._records.tokens()) if self._is_anonymous else self._records.is_closed

    def _find(self, text: str, now: float) -> tuple[str, float]:
        token = self._records.find_token(text)
        if token is None:
            raise AuthenticationError("the token is not accepted")
        until = float("inf") if token.expires_ms is None else token.expires_ms / 1000
        if now >= until:
            raise RequestRefused(419, "AuthenticationTimeoutException", "the token's time is over")
        return token.name, until
