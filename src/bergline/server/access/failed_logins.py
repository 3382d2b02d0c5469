"""How often tokens were refused, by the address that sent them and by the principal that they name.

An address that failed too often waits before its next token that is not known is looked at. A principal is only what a
refused token claims: others must not be able to keep somebody out, so every token in that name is still looked at.
"""

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from bergline.server.http.errors import RequestRefused

TOO_MANY: Final = 429
_PERIOD_S = 60.0
_MAX_SOURCES = 10_000
_IPV6_NETWORK = 64  # what one customer has


class FailedLogins:
    """So many failures a minute from each source, after as many at once; 0 for no limit. For use from many threads."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._sources: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What a source has left and since when, those that failed last at the end; all others have everything left."""
        self.failed = 0
        self.refused = 0

    def check(self, address: str) -> None:
        """RequestRefused (429) for an address that has failed too often."""
        with self._lock:
            self._refuse(_network(address))

    def note(self, address: str, principal: str | None) -> None:
        """Count a failure; RequestRefused (429) if the principal that is claimed has failed too often."""
        with self._lock:
            self.failed += 1
            self._count(_network(address))
            if principal is not None:
                claimed = f"principal {principal}"
                self._refuse(claimed)
                self._count(claimed)

    def _left(self, source: str) -> float:
        left, since = self._sources.get(source, (float(self._most), 0.0))
        return min(self._most, left + (self._clock() - since) * self._most / _PERIOD_S)

    def _refuse(self, source: str) -> None:
        if not self._most or (left := self._left(source)) >= 1:
            return
        self.refused += 1
        wait = math.ceil((1 - left) * _PERIOD_S / self._most)
        why = f"too many tokens from this address or in this name were refused: try again in {wait} seconds"
        raise RequestRefused(TOO_MANY, "TooManyRequestsException", why, {"retry-after": str(wait)})

    def _count(self, source: str) -> None:
        if not self._most:
            return
        self._sources[source] = max(0.0, self._left(source) - 1), self._clock()
        self._sources.move_to_end(source)
        if len(self._sources) > _MAX_SOURCES:
            self._sources.popitem(last=False)


def _network(address: str) -> str:
    """What counts as one address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped or ipaddress.ip_network((int(parsed), _IPV6_NETWORK), strict=False))
    return str(parsed)
