"""Streams of appends: where batches end, and which files lie between two offsets."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.datafiles.read.reader import read_plan
from bergline.errors import FormatError, InvalidInputError, NotFoundError, RefusedError
from bergline.expressions.bound_filter import bind_filter
from bergline.table.manifests.removal import RemovedFiles
from bergline.table.operations.delete import Delete, RowsToDelete
from bergline.table.operations.overwrite import Overwrite
from bergline.table.scans.scan import to_predicate
from bergline.table.scans.stream_scan import (
    StreamOffset,
    StreamRules,
    StreamScan,
    parse_offset,
    render_offset,
)
from support.fixtures.data_files import written_files
from support.fixtures.rows import ids, order_rows

pytestmark = pytest.mark.long


def scan(table: Table, branch: str = "main", **rules: Any) -> StreamScan:
    return StreamScan(table.io, table.metadata, branch, table.schema, StreamRules(**rules))


def batches(table: Table, start: StreamOffset | None = None, branch: str = "main", **rules: Any) -> list[list[int]]:
    """The rows of all batches, as a query would run them; offsets go through a checkpoint."""
    stream, found = scan(table, branch, **rules), []
    at = start or stream.beginning()
    while (end := stream.end(at)) != at:
        found.append(ids(read_plan(table.io, stream.plan(at, parse_offset(render_offset(end))))))
        at = end
    return found


def add_files(table: Table, *parts: pa.Table) -> None:
    """One append of several files."""
    table.append_files([file for part in parts for file in written_files(table, part)])


@pytest.fixture
def table(orders: Table) -> Table:
    """Appends of rows 1, of 2, 3 and 4 in a file each, and of 5."""
    orders.append(order_rows(1))
    add_files(orders, order_rows(2), order_rows(3), order_rows(4))
    return orders.append(order_rows(5))


def test_all_appends_are_one_batch_without_limits(table: Table) -> None:
    assert batches(table) == [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"max_files": 1}, [[1], [2], [3], [4], [5]]),
        ({"max_files": 2}, [[1, 2], [3, 4], [5]]),
        ({"max_files": 4}, [[1, 2, 3, 4], [5]]),
        ({"max_rows": 1}, [[1], [2], [3], [4], [5]]),
        ({"max_rows": 3}, [[1, 2, 3], [4, 5]]),
        ({"max_rows": 3, "max_files": 2}, [[1, 2], [3, 4], [5]]),
    ],
)
def test_limits_split_the_files_of_a_snapshot(table: Table, rules: dict[str, int], expected: list[list[int]]) -> None:
    assert batches(table, **rules) == expected


def test_file_that_reaches_the_limit_of_rows_is_read_whole(orders: Table) -> None:
    add_files(orders, order_rows(1, 2, 3), order_rows(4), order_rows(5))
    assert batches(orders, max_rows=2) == [[1, 2, 3], [4, 5]]


def test_limits_can_be_left_out_of_account(table: Table) -> None:
    stream = scan(table, max_files=1)
    end = stream.end(stream.beginning(), limited=False)
    assert ids(read_plan(table.io, stream.plan(stream.beginning(), end))) == [1, 2, 3, 4, 5]


def test_an_empty_table_has_nothing_until_rows_arrive(orders: Table) -> None:
    at = scan(orders).beginning()
    assert render_offset(at) == {
        "version": 1,
        "snapshot_id": -1,
        "position": -1,
        "scan_all_files": False,
        "table_uuid": orders.metadata.table_uuid,
    }
    assert scan(orders).end(at) == at
    assert not scan(orders).plan(at, at).files
    orders.append(order_rows(1))
    end = scan(orders).end(at)
    orders.append(order_rows(2))
    assert ids(read_plan(orders.io, scan(orders).plan(at, end))) == [1]
    assert batches(orders, end) == [[2]]


def test_stream_begins_at_the_first_snapshot_from_a_time_on(table: Table) -> None:
    first, second, third = table.metadata.snapshots
    moved = [
        msgspec.structs.replace(s, timestamp_ms=n) for n, s in zip((10, 20, 30), table.metadata.snapshots, strict=True)
    ]
    metadata = msgspec.structs.replace(table.metadata, snapshots=tuple(moved))

    def begin(from_ms: int) -> int:
        return StreamScan(table.io, metadata, "main", table.schema, StreamRules(from_ms)).beginning().snapshot_id

    assert [begin(ms) for ms in (-5, 10, 11, 20, 21, 30, 31)] == [
        first.snapshot_id,
        first.snapshot_id,
        second.snapshot_id,
        second.snapshot_id,
        third.snapshot_id,
        third.snapshot_id,
        -1,
    ]


def test_compaction_is_skipped(table: Table) -> None:
    table.compact()
    table.append(order_rows(6))
    assert batches(table) == [[1, 2, 3, 4, 5, 6]]
    end = scan(table).end(scan(table).beginning())
    table.compact()
    assert scan(table).end(end) == end


@pytest.mark.parametrize(
    ("operation", "option"),
    [("delete", "streaming-skip-delete-snapshots"), ("overwrite", "streaming-skip-overwrite-snapshots")],
)
def test_snapshots_that_remove_rows_are_refused_unless_skipped(table: Table, operation: str, option: str) -> None:
    if operation == "delete":
        table.delete("id = 2")
    else:
        table.overwrite(order_rows(9), "id = 2")
    table.append(order_rows(6))
    removing = table.metadata.snapshots[3]
    assert removing.operation == operation
    message = f"cannot stream {operation} snapshot {removing.snapshot_id} of "
    with pytest.raises(RefusedError, match=message) as refused:
        scan(table).end(scan(table).beginning())
    assert refused.value.hints == (f"option `{option}` = `true` skips such snapshots",)
    skips = {"skip_deletes": operation == "delete", "skip_overwrites": operation == "overwrite"}
    assert batches(table, **skips) == [[1, 2, 3, 4, 5, 6]]
    other = {"skip_deletes": operation != "delete", "skip_overwrites": operation != "overwrite"}
    with pytest.raises(RefusedError, match=message):
        scan(table, **other).end(scan(table).beginning())


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_snapshots_are_judged_by_what_they_did(table: Table, mode: str) -> None:
    table.set_properties({"write.delete.mode": mode})
    rows = RowsToDelete(bind_filter(to_predicate("id = 99"), table.schema))
    table.commit(Delete(table.io, rows, commit_empty=True))  # as other writers do every night
    assert table.current_snapshot
    assert table.current_snapshot.operation == "delete"
    table.commit(Overwrite(table.io, written_files(table, order_rows(6)), [RemovedFiles(())]))
    assert table.current_snapshot.operation == "overwrite"
    table.append(order_rows(7))
    assert batches(table) == [[1, 2, 3, 4, 5, 6, 7]]
    assert batches(table, max_files=3) == [[1, 2, 3], [4, 5, 6], [7]]
    assert batches(table, skip_overwrites=True) == [[1, 2, 3, 4, 5, 7]]
    at = scan(table).end(scan(table).beginning())
    table.delete("id = 3")
    with pytest.raises(RefusedError, match="cannot stream"):
        scan(table).end(at)


def test_first_snapshot_may_be_one_that_is_skipped(orders: Table) -> None:
    orders.overwrite(order_rows(1))
    begin = scan(orders).beginning()
    assert orders.metadata.snapshots[0].operation == "overwrite"
    assert scan(orders, skip_overwrites=True).end(begin) == begin
    orders.append(order_rows(2))
    assert batches(orders, skip_overwrites=True) == [[2]]


def test_branches_have_streams_of_their_own(table: Table) -> None:
    table.refs.create_branch("b")
    table.append(order_rows(7), branch="b")
    table.append(order_rows(6))
    assert batches(table) == [[1, 2, 3, 4, 5, 6]]
    assert batches(table, branch="b") == [[1, 2, 3, 4, 5, 7]]
    with pytest.raises(NotFoundError, match="no branch `c`"):
        scan(table, "c")


def test_rows_keep_the_columns_of_the_start(table: Table) -> None:
    schema = table.schema
    with table.update_schema() as update:
        update.rename_column("amount", "price").add_column("note", "string")
    table.append(order_rows(6).rename_columns(["id", "price", "region"]))
    stream = StreamScan(table.io, table.metadata, "main", schema, StreamRules())
    begin = stream.beginning()
    rows = read_plan(table.io, stream.plan(begin, stream.end(begin)))
    assert rows.column_names == ["id", "amount", "region"]
    assert sorted(rows["amount"].to_pylist()) == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def test_offset_in_a_snapshot_that_has_expired_is_one_error(table: Table) -> None:
    stream = scan(table, max_files=1)
    at = stream.end(stream.beginning())
    table.expire(snapshot_ids=[table.metadata.snapshots[0].snapshot_id])
    with pytest.raises(NotFoundError, match=f"no snapshot {at.snapshot_id} of .*: it has expired") as missing:
        scan(table).end(at)
    assert "new `checkpointLocation`" in missing.value.hints[0]
    with pytest.raises(NotFoundError, match=f"no snapshot {at.snapshot_id} of "):
        scan(table).plan(stream.beginning(), at)


def test_first_batch_that_is_planned_again_begins_where_it_did(table: Table) -> None:
    begin, end = scan(table).beginning(), scan(table).end(scan(table).beginning())
    assert begin.is_beginning
    table.expire(snapshot_ids=[table.metadata.snapshots[0].snapshot_id])
    again = scan(table).beginning()
    assert again != begin
    with pytest.raises(NotFoundError, match=f"no snapshot {begin.snapshot_id} of "):
        scan(table).plan(again, end)


def test_hole_in_the_history_is_one_error(table: Table) -> None:
    begin = scan(table).beginning()
    table.expire(snapshot_ids=[table.metadata.snapshots[1].snapshot_id])
    with pytest.raises(InvalidInputError, match=r"expected snapshot \d+, .* found that it is not: .* have expired"):
        scan(table).end(begin)


def test_branch_that_was_rolled_back_is_one_error(table: Table) -> None:
    end = scan(table).end(scan(table).beginning())
    table.refs.rollback("main", to=table.metadata.snapshots[0].snapshot_id)
    with pytest.raises(InvalidInputError, match="the branch was rolled back"):
        scan(table).end(end)
    with pytest.raises(InvalidInputError, match=f"expected snapshot {end.snapshot_id}, at which the stream is"):
        scan(table).plan(scan(table).beginning(), end)


def test_checkpoint_of_another_table_is_one_error(table: Table, lake: Lake) -> None:
    other = lake.create_table("db.other", table.schema)
    other.append(order_rows(1))
    end = scan(other).end(scan(other).beginning())
    with pytest.raises(InvalidInputError, match=f"expected a checkpoint of .* with uuid {table.metadata.table_uuid}"):
        scan(table).end(end)


def test_offsets_of_the_official_runtime_are_understood(table: Table) -> None:
    second = table.metadata.snapshots[1]
    theirs = {"version": 1, "snapshot_id": second.snapshot_id, "position": 2, "scan_all_files": False}
    assert batches(table, parse_offset(theirs)) == [[4, 5]]
    everything = {**theirs, "position": 3, "scan_all_files": True}
    assert [len(found) for found in batches(table, parse_offset(everything))] == [2]


@pytest.mark.parametrize(
    "found", [{}, {"snapshot_id": "1", "position": 1}, {"version": 2, "snapshot_id": 1, "position": 0}, {"end": 3}]
)
def test_what_is_no_offset_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="in the checkpoint, found"):
        parse_offset(found)
