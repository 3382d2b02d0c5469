"""Position delete files joined: fewer files, the same rows, nothing about data files that are gone."""

from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.manifest.manifest import DataFile, FileContent, is_deletion_vector
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.operations.rewrite_position_deletes import PositionDeletesResult
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

ALL = {"rewrite_all": True}


def new_table(lake: Lake, granularity: str = "file") -> Table:
    properties = {"format-version": "2", "write.delete.granularity": granularity}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(*range(10))).append(order_rows(*range(10, 20)))
    return table.append(order_rows(*range(20, 30), region="us"))


def path(table: Table, order: int) -> str:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned.file.file_path


def delete(table: Table, *orders: int) -> None:
    """A delete file for each order."""
    for order in orders:
        add_deletes(table, position_deletes(table, {path(table, order): [order % 10]}))


def deletes(table: Table) -> list[DataFile]:
    assert table.current_snapshot is not None
    manifests = load_manifest_list(table.io, table.current_snapshot)
    entries = live_entries(table.io, manifests, table.metadata)
    return [e.data_file for e in entries if e.data_file.content is not FileContent.DATA]


def found(table: Table) -> list[int]:
    return ids(table.refresh().scan().to_arrow())


@pytest.mark.parametrize(("granularity", "left"), [("file", 3), ("partition", 2)])
def test_delete_files_of_a_data_file_or_a_partition_become_one(lake: Lake, granularity: str, left: int) -> None:
    table = new_table(lake, granularity)
    delete(table, 1, 2, 3, 11, 12, 21, 22)
    rows, before = found(table), deletes(table)
    done = table.rewrite_position_deletes(options=ALL)
    assert (done.rewritten_delete_files, done.added_delete_files) == (7, left)
    assert done.rewritten_bytes == sum(d.file_size_in_bytes for d in before)
    assert done.added_bytes == sum(d.file_size_in_bytes for d in deletes(table))
    assert len(deletes(table)) == left
    assert found(table) == rows
    assert table.current_snapshot is not None
    assert table.current_snapshot.operation == "replace"


def test_few_files_are_left_as_they_are(lake: Lake) -> None:
    table = new_table(lake)
    delete(table, 1, 2, 3, 11, 21)
    before = table.metadata_location
    assert table.rewrite_position_deletes() == PositionDeletesResult()  # four in one partition, one in another
    assert table.metadata_location == before
    delete(table, 12)
    assert table.rewrite_position_deletes().rewritten_delete_files == 5
    assert table.rewrite_position_deletes(options={"min-input-files": "2"}).rewritten_delete_files == 2
    assert len(deletes(table)) == 3


def test_the_filter_picks_partitions(lake: Lake) -> None:
    table = new_table(lake)
    delete(table, 1, 2, 21, 22)
    done = table.rewrite_position_deletes("region = 'us' AND id > 1000", options=ALL)
    assert (done.rewritten_delete_files, done.added_delete_files) == (2, 1)
    assert sorted(d.partition for d in deletes(table)) == [("eu",), ("eu",), ("us",)]
    assert table.rewrite_position_deletes("region = 'as'", options=ALL) == PositionDeletesResult()


def test_deletes_of_data_files_that_are_gone_are_dropped(lake: Lake) -> None:
    table = new_table(lake, "partition")
    add_deletes(table, position_deletes(table, {path(table, 1): [1], path(table, 11): [1]}))
    delete(table, 21)
    table.rewrite_data_files("id >= 10 AND region = 'eu'", options=ALL)
    rows = found(table)
    assert sum(d.record_count for d in deletes(table)) == 3
    done = table.rewrite_position_deletes(options=ALL)
    assert (done.rewritten_delete_files, done.added_delete_files) == (2, 2)
    assert sum(d.record_count for d in deletes(table)) == 2
    table.rewrite_data_files("region = 'eu'", options=ALL)
    assert [d.partition for d in deletes(table)] == [("us",)]  # what was about one data file went with it
    assert found(table) == rows


def test_rows_of_a_data_file_that_no_metrics_point_to_stay_deleted(lake: Lake) -> None:
    """A filter must pick delete files, not the data files that they are about."""
    table = new_table(lake, "partition")
    add_deletes(table, position_deletes(table, {path(table, 1): [1], path(table, 11): [1]}))
    rows = found(table)
    table.rewrite_position_deletes("region = 'eu' AND id < 5", options=ALL)
    assert found(table) == rows


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_vectors_take_the_place_of_position_deletes_in_version_3(lake: Lake, granularity: str) -> None:
    table = new_table(lake, granularity)
    delete(table, 1, 2)
    add_deletes(table, position_deletes(table, {path(table, 3): [3], path(table, 13): [3]}))
    add_deletes(table, position_deletes(table, {path(table, 21): [1], path(table, 22): [2]}))
    table.upgrade_format(3)
    with_vector = {path(table, 21): [1, 2, 5]}
    add_deletes(table, *deletion_vectors(table, with_vector))
    rows = found(table)
    assert table.rewrite_position_deletes() == PositionDeletesResult()
    done = table.rewrite_position_deletes(options=ALL)
    assert (done.rewritten_delete_files, done.added_delete_files) == (4, 2)
    assert [is_deletion_vector(d) for d in deletes(table)] == [True] * 3
    assert found(table) == rows
    assert table.rewrite_position_deletes(options=ALL) == PositionDeletesResult()


def test_a_vector_holds_what_delete_files_say_that_are_not_rewritten(lake: Lake) -> None:
    table = new_table(lake, "partition")
    delete(table, 1, 2)
    small = max(d.file_size_in_bytes for d in deletes(table))
    add_deletes(table, position_deletes(table, {path(table, 3): [3], path(table, 13): list(range(3, 9))}))
    table.upgrade_format(3)
    rows = found(table)
    options = {"target-file-size-bytes": small + 2, "min-file-size-bytes": small + 1, "min-input-files": 2}
    table.rewrite_position_deletes(options=options)
    assert found(table) == rows


def test_equality_deletes_and_vectors_stay(lake: Lake) -> None:
    table = new_table(lake)
    delete(table, 1, 2)
    add_deletes(table, equality_deletes(table, pa.table({"id": [15]}), [1], ("eu",)))
    table.rewrite_position_deletes(options=ALL)
    assert sorted(d.content for d in deletes(table)) == [1, 2]
    assert 15 not in found(table)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"options": {"delete-file-threshold": "1"}}, NotFoundError, "no option `delete-file-threshold`"),
        ({"options": {"min-input-files": "0"}}, InvalidInputError, "from 1 on for `min-input-files`"),
        ({"options": {"target-file-size-bytes": "10", "max-file-size-bytes": "5"}}, InvalidInputError, "too large"),
        ({"row_filter": "nope = 1"}, NotFoundError, "nope"),
        ({"branch": "nope"}, NotFoundError, "no branch `nope`"),
        ({"engine": 7}, InvalidInputError, "expected a row engine"),
    ],
)
def test_bad_requests_are_refused(lake: Lake, wanted: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        new_table(lake).rewrite_position_deletes(**wanted)
