"""Snapshots and their summaries."""

import json

import pytest

from bergline.errors import FormatError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation, summarize


def file(records: int = 10, size: int = 100, partition: str = "eu") -> DataFile:
    return DataFile(f"memory:/f{records}", "PARQUET", (partition,), records, size)


def test_first_append_counts_from_zero() -> None:
    assert summarize(SnapshotOperation.APPEND, [file(), file(5, 50, "us")], [], None, {"engine": "bergline"}) == {
        "operation": "append",
        "engine": "bergline",
        "added-data-files": "2",
        "added-records": "15",
        "added-files-size": "150",
        "changed-partition-count": "2",
        "total-records": "15",
        "total-files-size": "150",
        "total-data-files": "2",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


def test_totals_carry_on_from_the_parent() -> None:
    parent = summarize(SnapshotOperation.APPEND, [file(), file(5, 50)], [], None, {})
    summary = summarize(SnapshotOperation.OVERWRITE, [file(1, 7)], [file()], parent, {})
    assert (summary["added-records"], summary["deleted-records"], summary["total-records"]) == ("1", "10", "6")
    assert (summary["removed-files-size"], summary["total-files-size"]) == ("100", "57")
    assert (summary["deleted-data-files"], summary["total-data-files"]) == ("1", "2")
    assert summary["changed-partition-count"] == "1"


@pytest.mark.parametrize("total", [None, "many", "-20"])
def test_total_is_left_out_where_it_cannot_be_known(total: str | None) -> None:
    parent = {} if total is None else {"total-records": total}
    assert "total-records" not in summarize(SnapshotOperation.APPEND, [file()], [], parent, {})


def test_caller_cannot_replace_computed_keys() -> None:
    summary = summarize(SnapshotOperation.APPEND, [file()], [], None, {"operation": "magic", "added-records": "999"})
    assert (summary["operation"], summary["added-records"]) == ("append", "10")


POSITIONS = DataFile("p", "PARQUET", ("eu",), 3, 30, content=FileContent.POSITION_DELETES)
EQUALITY = DataFile("e", "PARQUET", ("eu",), 4, 40, content=FileContent.EQUALITY_DELETES)
VECTOR = DataFile(
    "v", "PUFFIN", ("eu",), 5, 5000, content=FileContent.POSITION_DELETES, content_offset=4, content_size_in_bytes=50
)


def test_deletes_are_counted_by_kind_and_vectors_by_their_own_size() -> None:
    summary = summarize(SnapshotOperation.DELETE, [POSITIONS, EQUALITY, VECTOR], [], None, {})
    assert {k: v for k, v in summary.items() if k.startswith("added")} == {
        "added-files-size": "120",
        "added-equality-delete-files": "1",
        "added-position-delete-files": "1",
        "added-dvs": "1",
        "added-delete-files": "3",
        "added-position-deletes": "8",
        "added-equality-deletes": "4",
    }
    gone = summarize(SnapshotOperation.OVERWRITE, [], [POSITIONS, VECTOR], summary, {})
    assert (gone["removed-dvs"], gone["removed-delete-files"], gone["removed-files-size"]) == ("1", "2", "80")
    assert (gone["total-delete-files"], gone["total-position-deletes"]) == ("1", "0")
    assert (gone["total-equality-deletes"], gone["total-files-size"]) == ("4", "40")


def test_few_changed_partitions_are_summed_up_one_by_one() -> None:
    files = [file(), file(5, 50, "us")]

    def details(limit: int) -> dict[str, str]:
        summary = summarize(
            SnapshotOperation.OVERWRITE, files, [file(1, 7)], None, {}, partition_limit=limit, partition_path=path
        )
        return {k: v for k, v in summary.items() if k.startswith("partition")}

    def path(of: DataFile) -> str:
        return f"region={of.partition[0]}"

    assert details(1) == {}
    eu = "added-files-size=100,removed-files-size=7,added-data-files=1,deleted-data-files=1,"
    assert details(2) == {
        "partition-summaries-included": "true",
        "partitions.region=eu": f"{eu}added-records=10,deleted-records=1",
        "partitions.region=us": "added-files-size=50,added-data-files=1,added-records=5",
    }


def test_root_snapshot_is_written_without_a_parent() -> None:
    snapshot = Snapshot(
        snapshot_id=1, timestamp_ms=5, manifest_list="m", summary={"operation": "append"}, sequence_number=1
    )
    assert b"parent" not in encode_json(snapshot)
    assert decode_json(encode_json(snapshot), Snapshot, "x") == snapshot


def test_summary_without_operation_reads_as_overwrite() -> None:
    assert Snapshot(snapshot_id=1, timestamp_ms=5, manifest_list="m").operation == "overwrite"


def test_missing_sequence_number_reads_as_zero() -> None:
    data = b'{"snapshot-id":1,"timestamp-ms":2,"manifest-list":"m","summary":{}}'
    assert decode_json(data, Snapshot, "x").sequence_number == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("snapshot-id", 2**63), ("snapshot-id", 1.5), ("timestamp-ms", "1"), ("sequence-number", -(2**63) - 1)],
)
def test_number_that_is_no_long_names_the_place(key: str, value: object) -> None:
    good = {"snapshot-id": 1, "timestamp-ms": 2, "manifest-list": "m", "summary": {}}
    with pytest.raises(FormatError, match=rf"at \$\.{key} in x"):
        decode_json(json.dumps({**good, key: value}).encode(), Snapshot, "x")
