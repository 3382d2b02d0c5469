"""How often and how long a commit is tried again, and the waits in between."""

from collections.abc import Callable, Sequence

import msgspec

from bergline.format.metadata import TableMetadata, positive_property

_NUM_RETRIES = "commit.retry.num-retries"
_MAX_WAIT_MS = 2_000  # Iceberg's minute starves a writer beside one that commits all the time


class RetryLimits(msgspec.Struct, frozen=True):
    """What the tables of a commit allow; without a number of retries only time ends them."""

    retries: int | None = None
    when_unavailable: int = 4
    """A store that does not answer is always asked a limited number of times: nobody may ever unlock it."""
    total_ms: int = 1_800_000
    min_wait_ms: int = 100
    max_wait_ms: int = _MAX_WAIT_MS

    def wait_seconds(self, attempt: int, uniform: Callable[[float, float], float]) -> float:
        """Full jitter: anywhere up to the exponential wait, so that losers do not meet again."""
        return uniform(0, min(self.min_wait_ms * 2 ** min(attempt - 1, 20), self.max_wait_ms)) / 1000


def retry_limits(tables: Sequence[TableMetadata], *, conflicts_in_meaning: bool) -> RetryLimits:
    """The strictest of the tables' limits; by number where one says so or the meaning may conflict, else by time."""
    if not tables:
        return RetryLimits()
    retries = min(positive_property(t, _NUM_RETRIES, 4) for t in tables)
    counted = conflicts_in_meaning or any(_NUM_RETRIES in t.properties for t in tables)
    return RetryLimits(
        retries=retries if counted else None,
        when_unavailable=retries,
        total_ms=min(positive_property(t, "commit.retry.total-timeout-ms", 1_800_000) for t in tables),
        min_wait_ms=max(positive_property(t, "commit.retry.min-wait-ms", 100) for t in tables),
        max_wait_ms=min(positive_property(t, "commit.retry.max-wait-ms", _MAX_WAIT_MS) for t in tables),
    )
