"""What was current at a time, by the snapshot log."""

import datetime as dt
from collections.abc import Sequence
from typing import Final

import msgspec

from bergline.errors import NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata, changed

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def snapshot_as_of(metadata: TableMetadata, as_of_ms: int) -> int:
    """The head of `main` at a time; the log may be a minute out of order: take the latest entry, the last if tied."""
    before = [e for e in metadata.snapshot_log if e.timestamp_ms <= as_of_ms]
    if not before:
        first = min((e.timestamp_ms for e in metadata.snapshot_log), default=None)
        raise NotFoundError(
            f"no snapshot at or before {readable_ms(as_of_ms)}",
            kind="snapshot",
            name=str(as_of_ms),
            hints=["the table has no history yet" if first is None else f"its history begins at {readable_ms(first)}"],
        )
    return max(reversed(before), key=lambda e: e.timestamp_ms).snapshot_id


def logged_at_once(before: Sequence[TableMetadata], after: Sequence[TableMetadata]) -> list[TableMetadata]:
    """The tables after one commit to all of them, whose logs say the same time.

    So whoever reads the lake as of a time sees all of the commit, or nothing. By themselves, logs would have the times
    of snapshots, which were made one after the other.
    """
    if len(after) == 1:
        return list(after)
    now_ms = max(metadata.last_updated_ms for metadata in after)
    tables: list[TableMetadata] = []
    for base, metadata in zip(before, after, strict=True):
        log = metadata.snapshot_log
        if log and log[-1:] != base.snapshot_log[-1:]:
            log = (*log[:-1], msgspec.structs.replace(log[-1], timestamp_ms=now_ms))
            metadata = changed(metadata, snapshot_log=log, last_updated_ms=now_ms)  # noqa: PLW2901
        tables.append(metadata)
    return tables


def readable_ms(milliseconds: int) -> str:
    """A time for a message."""
    try:
        moment = EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds")
