"""What was current at a time, by the snapshot log."""

import datetime as dt
from typing import Final

from bergline.errors import NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata

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


def readable_ms(milliseconds: int) -> str:
    """A time for a message."""
    try:
        moment = EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds")
