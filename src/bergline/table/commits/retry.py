"""The retry loop of every commit, to tables and views, here and on the server: its limits, its waits, its end.

Only what is certain is retried: a conflict, and a store that was not reached. An unknown outcome ends the loop.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from bergline.catalog.catalog import Conflicted, Unknown
from bergline.catalog.identifiers import TableName
from bergline.errors import CommitUnknownError, ConflictError, UnavailableError
from bergline.format.metadata.properties import whole_number
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata

_NUM_RETRIES = "commit.retry.num-retries"
_MIN_WAIT = "commit.retry.min-wait-ms"
_MAX_WAIT = "commit.retry.max-wait-ms"
_LONGEST_WAIT_MS = 60_000


_Settled = TypeVar("_Settled")


class Timing(msgspec.Struct, frozen=True):
    """The clock, sleep and random numbers, which tests replace."""

    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform


class RetryLimits(msgspec.Struct, frozen=True):
    """What the tables of a commit allow; without a number of retries only time ends them."""

    retries: int | None = None
    every_attempt_counts: bool = True
    distinct_attempts: int = 0
    """Where not every attempt counts: those so far that depended on something else than those before them."""
    others_wait: bool = False
    """Whether the other writers let this one go first now: it does not wait either."""
    when_unavailable: int = 4
    """A store that does not respond is always retried a limited number of times: its lock may never be released."""
    when_unmoved: int = 8
    """So is a catalog that reports conflicts while the pointers stay where they are."""
    total_ms: int = 1_800_000
    min_wait_ms: int = 100
    max_wait_ms: int | None = None

    def wait_seconds(self, attempt: int, uniform: Callable[[float, float], float]) -> float:
        """Full jitter: anywhere up to the longest wait, so that losers do not meet again."""
        return uniform(0, self._longest_wait_ms(attempt)) / 1000

    def unmoved_wait_seconds(self, attempt: int, uniform: Callable[[float, float], float]) -> float:
        """Waits that only grow: there is no other writer to overtake."""
        longest = min(self.min_wait_ms * math.pow(2, min(attempt, 20)), self.max_wait_ms or _LONGEST_WAIT_MS)
        return uniform(longest / 2, longest) / 1000

    def _longest_wait_ms(self, attempt: int) -> float:
        """Waits that double, up to the limit that the table sets.

        Without one, from the sixth attempt on they halve again: a writer that has lost often would never come first
        beside those that have just begun.
        """
        if self.max_wait_ms is not None:
            return min(self.min_wait_ms * math.pow(2, min(attempt - 1, 20)), self.max_wait_ms)
        return self.min_wait_ms * math.pow(2, max(min(attempt - 1, 9 - attempt), -1))


def retry_limits(tables: Sequence[TableMetadata | ViewMetadata], *, needs_validation: bool) -> RetryLimits:
    """The strictest limits of the tables; retries count if a table sets their number, or for `needs_validation`."""
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


class RetryLoop:
    """Runs attempts at one commit until one is settled; the limits are read anew after each attempt that failed."""

    def __init__(self, timing: Timing, limits: Callable[[], RetryLimits]) -> None:
        self._timing = timing
        self._limits = limits
        self._started_ms = timing.clock_ms()
        self._conflicts = 0
        self._unavailable = 0
        self._bases: tuple[str, ...] | None = None
        self._unmoved = 0
        self.is_stuck = False
        """Whether it gave up because the catalog reported conflicts although no pointer had moved."""

    def run(self, attempt: Callable[[int], _Settled | Conflicted | Unknown]) -> _Settled:
        """The result of the first attempt that is not Conflicted; attempts are numbered from 1.

        ConflictError once the limits are reached, CommitUnknownError for an unknown outcome. An error of an attempt
        ends the loop, except for an UnavailableError, after which nothing has changed.
        """
        number = 0
        while True:
            number += 1
            try:
                outcome = attempt(number)
            except UnavailableError as error:
                self._wait_for_store(error, self._limits())
                continue
            if isinstance(outcome, Unknown):
                raise unknown_commit(outcome)
            if not isinstance(outcome, Conflicted):
                return outcome
            self._wait_after(outcome, self._limits())

    def _wait_after(self, lost: Conflicted, limits: RetryLimits) -> None:
        """Wait before the next attempt, or give up; the wait is longer where no pointer has moved."""
        self._conflicts += 1
        self._unavailable = 0
        self._unmoved = self._unmoved + 1 if lost.bases == self._bases else 0
        self._bases = lost.bases
        elapsed_ms = self._timing.clock_ms() - self._started_ms
        counted = self._conflicts if limits.every_attempt_counts else limits.distinct_attempts
        gave_up = f"gave up after {self._conflicts} attempts in {elapsed_ms / 1000:.1f} s"
        if (limits.retries is not None and counted > limits.retries) or elapsed_ms > limits.total_ms:
            raise ConflictError(f"{lost.reason}; {gave_up}") from lost.reason
        if self._unmoved > limits.when_unmoved:
            self.is_stuck = True
            raise ConflictError(
                f"{lost.reason}; {gave_up}: nobody else committed before the last {self._unmoved + 1} of them",
                hints=["the catalog refuses without another commit: what it says, and its log, may tell why"],
            ) from lost.reason
        if self._unmoved:
            self._timing.sleep(limits.unmoved_wait_seconds(self._unmoved, self._timing.uniform))
        elif not limits.others_wait:
            self._timing.sleep(limits.wait_seconds(self._conflicts, self._timing.uniform))

    def _wait_for_store(self, error: UnavailableError, limits: RetryLimits) -> None:
        self._unavailable += 1
        elapsed_ms = self._timing.clock_ms() - self._started_ms
        if self._unavailable > limits.when_unavailable or elapsed_ms > limits.total_ms:
            raise error
        self._timing.sleep(limits.wait_seconds(self._unavailable, self._timing.uniform))


def unknown_commit(outcome: Unknown) -> CommitUnknownError:
    """The error of a commit whose outcome cannot be determined, with what would prove it."""
    location = outcome.metadata_location
    hint = f"it happened if {location} is the table's pointer or in its metadata log"
    return unknown_outcome(outcome.table, location, outcome.cause, [] if location is None else [hint])


def unknown_outcome(
    table: TableName, location: str | None, cause: str, hints: Sequence[str] = ()
) -> CommitUnknownError:
    """The error of a commit whose outcome cannot be determined; nothing may be deleted."""
    message = f"cannot find out whether the commit to `{table}` happened: {cause}"
    return CommitUnknownError(message, table=str(table), metadata_location=location, hints=hints)
