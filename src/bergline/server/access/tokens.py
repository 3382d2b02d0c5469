"""Who may come in: bearer tokens, looked up by their hash and remembered for a moment."""

import time
from collections.abc import Callable

from bergline.catalog.sql.records import Records
from bergline.errors import AuthenticationError
from bergline.server.http.errors import RequestRefused
from bergline.server.http.request import ANONYMOUS

_REMEMBER_S = 5.0
_MOST_REMEMBERED = 10_000
_LONGEST_REMEMBERED = 512
_BEARER = "bearer "


class Authenticator:
    """Knows tokens; where there never was one, everybody is anonymous. A door that was closed never opens by itself."""

    def __init__(self, records: Records, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._clock = clock
        self._known: dict[str, tuple[str, float]] = {}
        self._is_open_to_all = False
        self._closed = self._asks_for_tokens()
        self._looked_at = clock()

    @property
    def has_tokens(self) -> bool:
        """Whether a token is needed."""
        return self._closed

    def open_to_all(self) -> None:
        """Let everybody in as long as there is no token, even if there was one."""
        self._is_open_to_all = True
        self._closed = self._asks_for_tokens()

    def remembered(self, header: str | None) -> str | None:
        """Who it is, if that was looked up a moment ago; None says nothing."""
        now = self._clock()
        if not self._closed:
            return ANONYMOUS if now < self._looked_at + _REMEMBER_S else None
        name, until = self._known.get(header or "", ("", 0.0))
        return name if now < until else None

    def check(self, header: str | None) -> str:
        """Who it is; AuthenticationError where that cannot be told, Refusal for a token whose time is over."""
        now = self._clock()
        if not self._closed:
            self._closed = self._asks_for_tokens()
            self._looked_at = now
            if not self._closed:
                return ANONYMOUS
        if header is None or not header.lower().startswith(_BEARER):
            raise AuthenticationError("expected a bearer token, found none")
        name, until = self._find(header[len(_BEARER) :].strip(), now)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        if len(header) <= _LONGEST_REMEMBERED:
            self._known[header] = name, min(until, now + _REMEMBER_S)
        return name

    def accepts(self, text: str) -> bool:
        """Whether a text is a token that lets in."""
        try:
            return bool(text) and bool(self.check(f"{_BEARER}{text}"))
        except (AuthenticationError, RequestRefused):
            return False

    def _asks_for_tokens(self) -> bool:
        return bool(self._records.tokens()) if self._is_open_to_all else self._records.is_closed

    def _find(self, text: str, now: float) -> tuple[str, float]:
        token = self._records.find_token(text)
        if token is None:
            raise AuthenticationError("the token is not accepted")
        until = float("inf") if token.expires_ms is None else token.expires_ms / 1000
        if now >= until:
            raise RequestRefused(419, "AuthenticationTimeoutException", "the token's time is over")
        return token.name, until
