"""How often and how long a commit is tried again, and the waits in between."""

import math
from collections.abc import Callable, Sequence

import msgspec

from bergline.format.metadata.properties import whole_number
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata

_NUM_RETRIES = "commit.retry.num-retries"
_MIN_WAIT = "commit.retry.min-wait-ms"
_MAX_WAIT = "commit.retry.max-wait-ms"
_LONGEST_WAIT_MS = 60_000


class RetryLimits(msgspec.Struct, frozen=True):
    """What the tables of a commit allow; without a number of retries only time ends them."""

    retries: int | None = None
    every_attempt_counts: bool = True
    """Else only those count between which something moved that the change depends on."""
    when_unavailable: int = 4
    """A store that does not answer is always asked a limited number of times: nobody may ever unlock it."""
    when_unmoved: int = 8
    """So is a catalog that speaks of conflicts while the tables stay where they are."""
    total_ms: int = 1_800_000
    min_wait_ms: int = 100
    max_wait_ms: int | None = None

    def wait_seconds(self, attempt: int, uniform: Callable[[float, float], float]) -> float:
        """Full jitter: anywhere up to the longest wait, so that losers do not meet again."""
        return uniform(0, self._longest_wait_ms(attempt)) / 1000

    def unmoved_wait_seconds(self, attempt: int, uniform: Callable[[float, float], float]) -> float:
        """Waits that only grow: there is nobody to come before."""
        longest = min(self.min_wait_ms * math.pow(2, min(attempt, 20)), self.max_wait_ms or _LONGEST_WAIT_MS)
        return uniform(longest / 2, longest) / 1000

    def _longest_wait_ms(self, attempt: int) -> float:
        """Waits that double, up to what the table says.

        Where it says nothing, from the sixth attempt on they halve again: a writer that has lost often would never
        come first beside those that have just begun.
        """
        if self.max_wait_ms is not None:
            return min(self.min_wait_ms * math.pow(2, min(attempt - 1, 20)), self.max_wait_ms)
        return self.min_wait_ms * math.pow(2, max(min(attempt - 1, 9 - attempt), -1))


def retry_limits(tables: Sequence[TableMetadata | ViewMetadata], *, needs_validation: bool) -> RetryLimits:
    """The strictest of the tables' limits; by number where one says so or the meaning may conflict, else by time."""
    if not tables:
        return RetryLimits()
    retries = min(whole_number(t.properties, _NUM_RETRIES, 4) for t in tables)
    every_attempt_counts = any(_NUM_RETRIES in t.properties for t in tables)
    waiting = [t.properties for t in tables if {_MIN_WAIT, _MAX_WAIT} & t.properties.keys()]
    return RetryLimits(
        retries=retries if every_attempt_counts or needs_validation else None,
        every_attempt_counts=every_attempt_counts,
        when_unavailable=retries,
        total_ms=min(whole_number(t.properties, "commit.retry.total-timeout-ms", 1_800_000) for t in tables),
        min_wait_ms=max(whole_number(t.properties, _MIN_WAIT, 100) for t in tables),
        max_wait_ms=min((whole_number(p, _MAX_WAIT, _LONGEST_WAIT_MS) for p in waiting), default=None),
    )
