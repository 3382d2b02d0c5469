"""What the other line did that a merge must not pass over: rows that would come back, be lost, or wrongly be kept."""

from collections.abc import Callable

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.datafiles.write.delete_writer import write_equality_deletes
from bergline.datafiles.write.write_spec import delete_write_spec
from bergline.errors import ConflictError
from support.fixtures.add_deletes import add_deletes, equality_deletes, position_deletes
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

JOINS: list[Callable[[Table], object]] = [
    lambda table: table.refs.merge("staging", into="main"),
    lambda table: table.refs.merge("staging", into="main", squash=True),
    lambda table: table.refs.rebase("staging", onto="main"),
]
every_join = pytest.mark.parametrize("join", JOINS, ids=["merge", "squash", "rebase"])


def create(lake: Lake, *, version: str = "2", mode: str = "merge-on-read", partitioned: bool = False) -> Table:
    """Orders 1 to 4 in two files."""
    properties = {"format-version": version, "write.delete.mode": mode}
    partition_by = ["region"] if partitioned else []
    table = lake.create_table("db.t", ORDERS, partition_by=partition_by, properties=properties)
    return table.append(order_rows(1, 2)).append(order_rows(3, 4))


def delete_by_equality(table: Table, *numbers: int, branch: str = "main") -> None:
    add_deletes(table.refresh(), equality_deletes(table, pa.table({"id": numbers}), [1]), branch=branch)


def rows(table: Table, ref: str = "main") -> list[int]:
    return ids(table.refresh().scan(ref=ref).to_arrow())


def refused(table: Table, join: Callable[[Table], object]) -> str:
    before = table.refresh().metadata
    with pytest.raises(ConflictError) as caught:
        join(table)
    assert table.refresh().metadata == before
    return str(caught.value)


@every_join
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("second", ["delete", "overwrite", "compact"])
def test_rows_that_a_compaction_moved_are_not_brought_back_by_a_change_after_it(
    lake: Lake, join: Callable[[Table], object], version: str, mode: str, second: str
) -> None:
    table = create(lake, version=version, mode=mode)
    table.refs.create_branch("staging")
    table.compact(branch="staging")
    match second:
        case "delete":
            table.delete("id = 4", branch="staging")
        case "overwrite":
            table.overwrite(order_rows(1), "id = 1", branch="staging")
        case "compact":
            files = [p.file for p in table.scan(ref="staging").plan().files]
            table.rewrite_files(add=written_files(table, order_rows(1, 2, 3, 4)), remove=files, branch="staging")
    delete_by_equality(table, 1)
    assert "deleted rows of" in refused(table, join)


def test_what_came_after_the_equality_deletes_of_the_other_side_is_changed_freely(lake: Lake) -> None:
    table = create(lake)
    table.refs.create_branch("staging")
    table.append(order_rows(7, 8), branch="staging").delete("id = 8", branch="staging")
    delete_by_equality(table, 1, 7, 8)
    table.refs.merge("staging", into="main")
    assert rows(table) == [2, 3, 4, 7]


def test_rows_of_the_branch_that_were_given_an_older_number_are_not_lost(lake: Lake) -> None:
    table = create(lake)
    table.refs.create_branch("staging")
    old = table.metadata.snapshot(table.refs["staging"].snapshot_id).sequence_number
    table.append(order_rows(7), branch="staging")
    files = [p.file for p in table.scan("id = 7", ref="staging").plan().files]
    table.rewrite_files(add=written_files(table, order_rows(7)), remove=files, branch="staging", sequence_number=old)
    delete_by_equality(table, 7)
    assert "deleted rows of" in refused(table, JOINS[0])


def test_a_compaction_across_specs_is_refused_where_rows_were_deleted_in_a_partition_of_one(lake: Lake) -> None:
    table = create(lake, partitioned=True)
    with table.update_spec() as update:
        update.remove_field("region")
    with table.refresh().update_spec() as update:
        update.add_field("truncate(1000, id)", name="thousands")
    table.refresh().append(order_rows(5))
    table.refs.create_branch("staging")
    number = table.metadata.snapshot(table.refs["staging"].snapshot_id).sequence_number
    files = [p.file for p in table.scan(ref="staging").plan().files]
    added = written_files(table, order_rows(1, 2, 3, 4, 5))
    table.rewrite_files(add=added, remove=files, branch="staging", sequence_number=number)
    spec = msgspec.structs.replace(delete_write_spec(table.metadata), spec=table.metadata.specs_by_id[0])
    path = f"{table.location}/data/by-id.parquet"
    delete = write_equality_deletes(table.io, spec, path, pa.table({"id": [1]}), [1], partition=("eu",))
    table.refresh().row_delta(deletes=[delete], isolation="none")
    assert rows(table) == [2, 3, 4, 5]
    assert "deleted rows of" in refused(table, JOINS[0])


@every_join
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_deletes_that_the_other_side_took_back_stay_taken_back(
    lake: Lake, join: Callable[[Table], object], mode: str
) -> None:
    table = create(lake, version="3").delete("id = 1")
    table.refs.create_branch("staging")
    table.set_properties({"write.delete.mode": mode})
    table.delete("id = 2", branch="staging")
    table.row_delta(remove=[d for p in table.refresh().scan().plan().files for d in p.deletes])
    assert rows(table) == [1, 2, 3, 4]
    assert "took back deletes" in refused(table, join)


@pytest.mark.parametrize("by", ["equality", "position"])
def test_deletes_that_the_branch_took_back_are_refused_where_the_rows_are_gone(lake: Lake, by: str) -> None:
    table = create(lake, mode="copy-on-write")
    paths = sorted(p.file.file_path for p in table.scan().plan().files)
    if by == "equality":
        delete_by_equality(table, 1, 3)
    else:
        add_deletes(table, position_deletes(table, {path: [0] for path in paths}))
    table.refresh().refs.create_branch("staging")
    deletes = {d.file_path: d for p in table.scan().plan().files for d in p.deletes}
    table.row_delta(remove=list(deletes.values()), branch="staging")
    table.append(order_rows(9))
    table.refs.create_tag("before")
    table.refs.merge("staging", into="main")
    assert rows(table) == [1, 2, 3, 4, 9]
    table.refs.replace_branch("main", at="before")
    table.overwrite(order_rows(20), "id = 2")
    assert "removed" in refused(table, JOINS[0])


def test_deletes_that_went_because_all_data_is_younger_are_in_nobody_s_way(lake: Lake) -> None:
    table = create(lake)
    delete_by_equality(table, 1)
    table.refresh().append(order_rows(5, 6))
    table.refs.create_branch("staging")
    table.delete("id = 5", branch="staging")
    table.delete("id < 5")
    table.delete("id < 5")
    table.refs.merge("staging", into="main")
    assert rows(table) == [6]


@every_join
def test_a_replaced_partition_is_known_among_other_changes(lake: Lake, join: Callable[[Table], object]) -> None:
    table = create(lake, partitioned=True)
    table.refs.create_branch("staging")
    table.overwrite_partitions(order_rows(10), branch="staging")
    table.append(order_rows(11, region="us"), branch="staging")
    table.append(order_rows(5))
    assert "replaced" in refused(table, join)


def test_only_the_replaced_partitions_of_what_is_squashed_count_as_replaced(lake: Lake) -> None:
    table = create(lake, partitioned=True)
    table.refs.create_branch("staging")
    table.overwrite_partitions(order_rows(10), branch="staging")
    table.append(order_rows(11, region="us"), branch="staging")
    table.append(order_rows(5, region="us"))
    table.refs.merge("staging", into="main", squash=True)
    assert rows(table) == [5, 10, 11]
    summary = table.metadata.snapshot(table.refs["main"].snapshot_id).summary
    assert "replace-partitions" not in summary
    assert summary["replayed-replace-partitions"] == "true"


@pytest.mark.parametrize("how", ["picked", "squashed"])
def test_a_replaced_partition_that_was_brought_to_the_branch_is_known(lake: Lake, how: str) -> None:
    table = create(lake, partitioned=True)
    table.refs.create_branch("dev")
    table.refs.create_branch("staging")
    table.overwrite_partitions(order_rows(10), branch="dev")
    table.append(order_rows(11, region="us"), branch="staging")
    if how == "picked":
        table.refs.cherry_pick("dev", onto="staging")
    else:
        table.append(order_rows(12, region="jp"), branch="dev")
        table.refs.merge("dev", into="staging", squash=True)
    table.append(order_rows(5))
    for join in JOINS:
        assert "replaced" in refused(table, join)
