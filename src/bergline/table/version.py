"""Which state of a table a read means: a branch, a tag, a snapshot or a moment."""

import datetime as dt

import msgspec

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.arguments import check_whole
from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN, check_ref_name
from bergline.format.schema import Schema

_LATEST_MS = 253_402_300_799_999


class ReadVersion(msgspec.Struct, frozen=True):
    """A snapshot, and the schema to read it with; no snapshot while a table is empty."""

    snapshot_id: int | None
    schema: Schema


def resolve_version(
    metadata: TableMetadata,
    *,
    ref: str | None = None,
    snapshot_id: int | None = None,
    as_of_ms: int | None = None,
) -> ReadVersion:
    """At most one of the three; none means `main`. Branches read with the table's schema, the rest with their own."""
    if sum(x is not None for x in (ref, snapshot_id, as_of_ms)) > 1:
        raise InvalidInputError("expected one of ref, snapshot_id and as_of, found several")
    if ref is not None:
        check_ref_name(ref)
    if snapshot_id is not None:
        return _at_snapshot(metadata, check_whole(snapshot_id, "a snapshot id"))
    if as_of_ms is not None:
        if not 0 <= check_whole(as_of_ms, "as_of_ms") <= _LATEST_MS:
            raise InvalidInputError(f"expected a time in milliseconds up to the year 9999, found {as_of_ms}")
        return _at_snapshot(metadata, _snapshot_as_of(metadata, as_of_ms))
    if ref in {None, MAIN} and MAIN not in metadata.refs:
        return ReadVersion(None, metadata.schema)
    found = metadata.ref(ref or MAIN)
    if found.is_branch:
        return ReadVersion(found.snapshot_id, metadata.schema)
    return _at_snapshot(metadata, found.snapshot_id)


def _at_snapshot(metadata: TableMetadata, snapshot_id: int) -> ReadVersion:
    schema_id = metadata.snapshot(snapshot_id).schema_id
    return ReadVersion(snapshot_id, metadata.schema if schema_id is None else metadata.schema_by_id(schema_id))


def _snapshot_as_of(metadata: TableMetadata, as_of_ms: int) -> int:
    """What `main` was at that time; the log may be out of order by a minute, so look for the latest, and last."""
    before = [e for e in metadata.snapshot_log if e.timestamp_ms <= as_of_ms]
    if not before:
        first = min((e.timestamp_ms for e in metadata.snapshot_log), default=None)
        raise NotFoundError(
            f"no snapshot at or before {_readable(as_of_ms)}",
            kind="snapshot",
            name=str(as_of_ms),
            hints=["the table has no history yet" if first is None else f"its history begins at {_readable(first)}"],
        )
    return max(reversed(before), key=lambda e: e.timestamp_ms).snapshot_id


def _readable(milliseconds: int) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)
    return moment.isoformat(sep=" ", timespec="milliseconds")
