"""Which state of a table is read: a branch, a tag, a snapshot or a point in time."""

import datetime as dt

import msgspec

from bergline.arguments import check_whole, shown
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.format.metadata.snapshot_log import EPOCH, snapshot_as_of
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema

_LATEST_MS = 253_402_300_799_999

SnapshotChoice = int | str | dt.datetime
"""A snapshot by its id, by a branch or tag, or by a time at which it was the head of `main`."""


class ReadVersion(msgspec.Struct, frozen=True):
    """A snapshot, and the schema to read it with; no snapshot while a table is empty."""

    snapshot_id: int | None
    schema: Schema
    branch: str | None = None
    """The branch whose head it is; None for a tag, a snapshot id or a time, which do not move."""


class BranchRead(msgspec.Struct, frozen=True):
    """The head of a table's branch at the time of a read."""

    table: str
    """See `table_identity`."""
    branch: str
    """See `real_branch`."""
    snapshot_id: int | None


def table_identity(metadata: TableMetadata) -> str:
    """What identifies a table, whatever its name: the uuid, or the location of a v1 table without one."""
    return metadata.table_uuid or metadata.location


def real_branch(metadata: TableMetadata, branch: str) -> str:
    """What a branch is called at the table's own `main`, whatever ref the catalog shows under that name."""
    return metadata.seen_at.name if metadata.seen_at is not None and branch == MAIN else branch


def resolve_version(
    metadata: TableMetadata,
    *,
    ref: str | None = None,
    snapshot_id: int | None = None,
    as_of_ms: int | None = None,
) -> ReadVersion:
    """At most one of the three may be given; none means `main`. Branches use the table's schema, the rest their own."""
    if sum(x is not None for x in (ref, snapshot_id, as_of_ms)) > 1:
        raise InvalidInputError("expected one of ref, snapshot_id and as_of, found several")
    if ref is not None:
        check_ref_name(ref)
    if snapshot_id is not None:
        return _at_snapshot(metadata, check_whole(snapshot_id, "a snapshot id"))
    if as_of_ms is not None:
        if not 0 <= check_whole(as_of_ms, "as_of_ms") <= _LATEST_MS:
            raise InvalidInputError(f"expected a time in milliseconds up to the year 9999, found {as_of_ms}")
        return _at_snapshot(metadata, snapshot_as_of(metadata, as_of_ms))
    if ref in {None, MAIN} and MAIN not in metadata.refs:
        return ReadVersion(None, metadata.schema, MAIN)
    found = metadata.ref(ref or MAIN)
    if found.is_branch:
        return ReadVersion(found.snapshot_id, metadata.schema, ref or MAIN)
    return _at_snapshot(metadata, found.snapshot_id)


def snapshot_at(metadata: TableMetadata, at: SnapshotChoice) -> int:
    """The id of a chosen snapshot; NotFoundError if there is none."""
    if isinstance(at, str):
        return metadata.ref(at).snapshot_id
    if isinstance(at, dt.datetime):
        return snapshot_as_of(metadata, epoch_ms(at))
    if type(at) is not int:
        raise InvalidInputError(
            f"expected a snapshot id, a branch or tag, or a datetime with a time zone, found {shown(at)}"
        )
    return metadata.snapshot(check_whole(at, "the id of a snapshot")).snapshot_id


def epoch_ms(moment: dt.datetime) -> int:
    """Milliseconds since 1970, rounded down."""
    if not isinstance(moment, dt.datetime):
        raise InvalidInputError(f"expected a datetime with a time zone, found {shown(moment)}")
    if moment.tzinfo is None:
        raise InvalidInputError(f"expected a time with a time zone, found {moment.isoformat()}")
    return (moment - EPOCH) // dt.timedelta(milliseconds=1)


def _at_snapshot(metadata: TableMetadata, snapshot_id: int) -> ReadVersion:
    schema_id = metadata.snapshot(snapshot_id).schema_id
    if schema_id is None:
        return ReadVersion(snapshot_id, metadata.schema)
    try:
        return ReadVersion(snapshot_id, metadata.schema_by_id(schema_id))
    except NotFoundError as error:
        raise NotFoundError(
            f"cannot read snapshot {snapshot_id} with its schema: the table no longer has schema {schema_id}",
            kind="schema",
            name=str(schema_id),
            hints=["a branch at the snapshot is read with the table's schema"],
        ) from error
