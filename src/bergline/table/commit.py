"""The commit loop: read the pointer, work out the change, swap; on conflict look again and go again.

An attempt ends in a value, Committed, Conflicted or Unknown; only `commit` raises.
"""

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import assert_never

import msgspec

from bergline.catalog.catalog import Catalog, Committed, Conflicted, LoadedTable, Outcome, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, CommitUnknownError, ConflictError, NotFoundError
from bergline.format.metadata import TableMetadata, positive_property
from bergline.table.operation import CommitStamp, Operation

_LOG = logging.getLogger(__name__)
_NUM_RETRIES = "commit.retry.num-retries"
_MAX_WAIT_MS = 2_000  # Iceberg's minute starves a writer beside one that commits all the time


class Timing(msgspec.Struct, frozen=True):
    """Where time and chance come from, so that tests can decide them."""

    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform


def commit(
    catalog: Catalog, name: TableName, table_uuid: str | None, operation: Operation, timing: Timing | None = None
) -> LoadedTable:
    """Bring an operation in, retrying as the table allows, and return the table after it.

    Raises ConflictError when the retries are used up, CommitUnknownError when the outcome cannot be found out (nothing
    was deleted), and what the operation or the catalog raise; then nothing was committed and what was written is gone.
    """
    timing = timing or Timing()
    try:
        committed = _attempt_until_settled(catalog, name, table_uuid, operation, timing)
    except CommitUnknownError:
        raise
    except BerglineError:
        with _cleaning_up(name):
            operation.abandoned()
        raise
    with _cleaning_up(name):
        operation.committed(committed.metadata)
    return committed


def _attempt_until_settled(
    catalog: Catalog, name: TableName, table_uuid: str | None, operation: Operation, timing: Timing
) -> LoadedTable:
    started_ms = timing.clock_ms()
    attempt = 0
    while True:
        attempt += 1
        base = catalog.load_table(name)
        _check_same_table(base, table_uuid)
        outcome: Outcome
        try:
            change = operation.attempt(base.metadata, CommitStamp(attempt, timing.clock_ms()))
        except NotFoundError as error:
            outcome = _conflict_if_moved(catalog, base, error)
        else:
            if not change.updates:
                return base
            outcome = catalog.commit((TableChange(base, change.requirements, change.updates),))
        match outcome:
            case Committed(tables):
                return tables[0]
            case Unknown(_, metadata_location, cause):
                raise CommitUnknownError(
                    f"cannot find out whether the commit to `{name}` happened: {cause}",
                    table=str(name),
                    metadata_location=metadata_location,
                    hints=[f"it happened if {metadata_location} is the table's pointer or in its metadata log"],
                )
            case Conflicted(reason):
                _check_may_retry(base.metadata, operation, attempt, timing.clock_ms() - started_ms, reason)
                timing.sleep(_wait_seconds(base.metadata, attempt, timing))
            case _:
                assert_never(outcome)


def _conflict_if_moved(catalog: Catalog, base: LoadedTable, error: NotFoundError) -> Outcome:
    """A file of the base is gone: if the table has moved on, expiry was allowed to delete it, and we look again."""
    if error.kind != "file" or catalog.load_table(base.name).metadata_location == base.metadata_location:
        raise error
    return Conflicted(ConflictError(f"table `{base.name}` moved on from {base.metadata_location}"))


@contextlib.contextmanager
def _cleaning_up(name: TableName) -> Iterator[None]:
    """The outcome is settled: leftover files are a pity, never a reason to report it wrongly."""
    try:
        yield
    except (BerglineError, OSError) as error:
        _LOG.warning("could not remove leftover files of `%s`: %s", name, error)


def _check_same_table(base: LoadedTable, table_uuid: str | None) -> None:
    if table_uuid is not None and base.metadata.table_uuid != table_uuid:
        raise ConflictError(
            f"expected table `{base.name}` with uuid {table_uuid}, found {base.metadata.table_uuid}: "
            "it was dropped and re-created",
            hints=["load the table again"],
        )


def _check_may_retry(
    base: TableMetadata, operation: Operation, attempt: int, elapsed_ms: int, reason: ConflictError
) -> None:
    """Retries are limited by number where the table says so or the meaning may conflict, else only by time."""
    retries = None
    if _NUM_RETRIES in base.properties or operation.conflicts_in_meaning:
        retries = positive_property(base, _NUM_RETRIES, 4)
    timeout_ms = positive_property(base, "commit.retry.total-timeout-ms", 1_800_000)
    if (retries is not None and attempt > retries) or elapsed_ms > timeout_ms:
        raise ConflictError(f"{reason}; gave up after {attempt} attempts in {elapsed_ms / 1000:.1f} s") from reason


def _wait_seconds(base: TableMetadata, attempt: int, timing: Timing) -> float:
    """Full jitter: anywhere up to the exponential wait, so that losers do not meet again."""
    least = positive_property(base, "commit.retry.min-wait-ms", 100)
    most = positive_property(base, "commit.retry.max-wait-ms", _MAX_WAIT_MS)
    return timing.uniform(0, min(least * 2 ** min(attempt - 1, 20), most)) / 1000
