"""`CALL system.fast_forward`, `rollback_to_snapshot` and the others that move refs, with the official columns."""

import datetime as dt
from collections.abc import Iterable

import pyarrow as pa

from bergline.errors import InvalidInputError, NotFoundError
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.references.merge import MergeResult
from bergline.table.table import Table


def fast_forward(table: Table, *, branch: str, to: str) -> pa.Table:
    """Move a branch forward to a ref that descends from it."""
    result = table.refs.fast_forward(branch, to=to)
    return pa.Table.from_pylist(
        [{"branch_updated": branch, "previous_ref": result.previous, "updated_ref": result.head}],
        schema=pa.schema(
            [
                pa.field("branch_updated", pa.string(), nullable=False),
                pa.field("previous_ref", pa.int64()),
                pa.field("updated_ref", pa.int64(), nullable=False),
            ]
        ),
    )


def rollback_to_snapshot(table: Table, *, snapshot_id: int) -> pa.Table:
    """Move `main` back to a snapshot of its history."""
    return _moved(table.refs.rollback(to=snapshot_id))


def rollback_to_timestamp(table: Table, *, timestamp: dt.datetime) -> pa.Table:
    """Move `main` back to the last snapshot of its history before a moment."""
    return _moved(table.refs.rollback(to=timestamp))


def set_current_snapshot(table: Table, *, snapshot_id: int | None = None, ref: str | None = None) -> pa.Table:
    """Move `main` to any snapshot, by its id or by a ref."""
    given: list[int | str] = [place for place in (snapshot_id, ref) if place is not None]
    if len(given) != 1:
        raise InvalidInputError(f"expected either snapshot_id or ref, found {'both' if given else 'neither'}")
    result = table.refs.set_current(to=given[0])
    return _longs([(result.previous, result.head)], ("previous_snapshot_id", "current_snapshot_id"), nullable=[0])


def cherrypick_snapshot(table: Table, *, snapshot_id: int) -> pa.Table:
    """Cherry-pick a snapshot onto `main`."""
    return _picked(table.refs.cherry_pick(snapshot_id))


def publish_changes(table: Table, *, wap_id: str) -> pa.Table:
    """Publish what was staged under a WAP id to `main`."""
    return _picked(table.refs.publish(wap_id))


def ancestors_of(table: Table, *, snapshot_id: int | None = None) -> pa.Table:
    """A snapshot, by default the head of `main`, and its parents with their times in milliseconds, newest first."""
    if snapshot_id is None and table.current_snapshot is None:
        raise NotFoundError(f"no snapshot in table `{table.name}` yet", kind="snapshot", name="main")
    start = table.current_snapshot if snapshot_id is None else table.metadata.snapshot(snapshot_id)
    line = table.metadata.ancestors(start.snapshot_id if start else None)
    return _longs([(s.snapshot_id, s.timestamp_ms) for s in line], ("snapshot_id", "timestamp"), nullable=[0, 1])


def _moved(result: MergeResult) -> pa.Table:
    return _longs([(result.previous, result.head)], ("previous_snapshot_id", "current_snapshot_id"))


def _picked(result: MergeResult) -> pa.Table:
    source = next(iter(result.replayed), result.head)
    return _longs([(source, result.head)], ("source_snapshot_id", "current_snapshot_id"))


def _longs(
    rows: Iterable[tuple[int | None, int | None]], names: tuple[str, str], *, nullable: Iterable[int] = ()
) -> pa.Table:
    schema = pa.schema([pa.field(name, pa.int64(), nullable=n in nullable) for n, name in enumerate(names)])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


_SNAPSHOT_ID = Parameter("snapshot_id", "bigint", required=True)
REF_PROCEDURES: dict[str, Procedure] = {
    "fast_forward": Procedure(
        (TABLE, Parameter("branch", "string", required=True), Parameter("to", "string", required=True)),
        fast_forward,
        moves_refs=True,
    ),
    "rollback_to_snapshot": Procedure((TABLE, _SNAPSHOT_ID), rollback_to_snapshot, moves_refs=True),
    "rollback_to_timestamp": Procedure(
        (TABLE, Parameter("timestamp", "timestamp", required=True)), rollback_to_timestamp, moves_refs=True
    ),
    "set_current_snapshot": Procedure(
        (TABLE, Parameter("snapshot_id", "bigint"), Parameter("ref", "string")), set_current_snapshot, moves_refs=True
    ),
    "cherrypick_snapshot": Procedure((TABLE, _SNAPSHOT_ID), cherrypick_snapshot, moves_refs=True),
    "publish_changes": Procedure(
        (TABLE, Parameter("wap_id", "string", required=True)), publish_changes, moves_refs=True
    ),
    "ancestors_of": Procedure((TABLE, Parameter("snapshot_id", "bigint")), ancestors_of),
}


def merge(table: Table, *, branch: str, into: str, squash: bool = False) -> pa.Table:
    """Merge a branch into another."""
    return _result(into, table.refs.merge(branch, into=into, squash=squash))


def rebase(table: Table, *, branch: str, onto: str, squash: bool = False) -> pa.Table:
    """Rebase a branch onto another ref."""
    return _result(branch, table.refs.rebase(branch, onto=onto, squash=squash))


def diff(table: Table, *, from_ref: str, to_ref: str) -> pa.Table:
    """Files and rows that one ref has and another has not, by partition."""
    return table.refs.diff(from_ref, to_ref).to_arrow()


def _result(branch: str, result: MergeResult) -> pa.Table:
    row = {
        "branch_updated": branch,
        "previous_ref": result.previous,
        "updated_ref": result.head,
        "replayed_snapshots_count": len(result.replayed),
    }
    return pa.Table.from_pylist(
        [row],
        schema=pa.schema(
            [
                pa.field("branch_updated", pa.string(), nullable=False),
                pa.field("previous_ref", pa.int64()),
                pa.field("updated_ref", pa.int64(), nullable=False),
                pa.field("replayed_snapshots_count", pa.int32(), nullable=False),
            ]
        ),
    )


MERGE_PROCEDURES: dict[str, Procedure] = {
    "merge": Procedure(
        (
            TABLE,
            Parameter("branch", "string", required=True),
            Parameter("into", "string", required=True),
            Parameter("squash", "boolean"),
        ),
        merge,
        moves_refs=True,
    ),
    "rebase": Procedure(
        (
            TABLE,
            Parameter("branch", "string", required=True),
            Parameter("onto", "string", required=True),
            Parameter("squash", "boolean"),
        ),
        rebase,
        moves_refs=True,
    ),
    "diff": Procedure(
        (TABLE, Parameter("from_ref", "string", required=True), Parameter("to_ref", "string", required=True)), diff
    ),
}
