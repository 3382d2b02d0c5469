"""Revoked tokens of issuers, as a server knows them: in memory, looked at again when they are a second old."""

import threading
import time
from collections.abc import Callable
from typing import Final

from bergline.catalog.sql.tokens.revoked_tokens import RevokedKind, SqlRevokedTokens

FRESH_S: Final = 1.0


class RevokedTokens:
    """The revoked tokens of one catalog; asked in threads, for it may look at the database."""

    def __init__(self, store: SqlRevokedTokens, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._version: tuple[int, int] | None = None
        self._ids: frozenset[str] = frozenset()
        self._before_ms: dict[str, int] = {}
        self._asked_at = float("-inf")

    def refuses(self, token_id: str | None, principal: str, issued_s: float) -> bool:
        """Whether a token was revoked; one that does not say when it was issued is taken for an old one.

        UnavailableError if that cannot be known now.
        """
        self._refresh()
        return token_id in self._ids or 1000 * issued_s < self._before_ms.get(principal, 0)

    def _refresh(self) -> None:
        if self._is_fresh(self._clock()):
            return
        with self._lock:
            now = self._clock()
            if self._is_fresh(now):
                return
            version = self._store.version()
            if version != self._version:
                known = self._store.all()
                self._ids = frozenset(one.name for one in known if one.kind is RevokedKind.JTI)
                principals = [one for one in known if one.kind is RevokedKind.PRINCIPAL]
                self._before_ms = {one.name: one.issued_before_ms or 0 for one in principals}
                self._version = version
            self._asked_at = now

    def _is_fresh(self, now: float) -> bool:
        return 0 <= now - self._asked_at < FRESH_S  # a clock that was put back makes nothing fresh
