"""Credentials that were vended a moment ago, by principal, access and directories."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.vending import VendedCredentials

_MAX_TABLES = 10_000
Wanted = tuple[str, FileActions, tuple[str, ...]]
"""For whom, what for, and the directories: credentials are never shared between principals."""


class CredentialsCache:
    """Credentials until a time each, in bounded number."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._kept: OrderedDict[Wanted, tuple[VendedCredentials, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, wanted: Wanted) -> VendedCredentials | None:
        """Credentials that are kept, and whose time is not over."""
        with self._lock:
            vended, until_ms = self._kept.get(wanted, (None, 0))
        return vended if self._clock_ms() < until_ms else None

    def keep(self, wanted: Wanted, vended: VendedCredentials, until_ms: int) -> VendedCredentials:
        """Keep credentials, and return them."""
        with self._lock:
            self._kept[wanted] = vended, until_ms
            self._kept.move_to_end(wanted)
            while len(self._kept) > _MAX_TABLES:
                self._kept.popitem(last=False)
        return vended
