"""Delete files for rows of data files, joined with those that exist."""

from functools import reduce

import pytest

from bergline import Lake, Table
from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.errors import NotFoundError
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.table.engine.plans import DeletedPositions, plan_position_deletes
from bergline.table.engine.position_deletes import delete_matching, write_deletes
from bergline.table.engine.row_engine import FileChanges
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.rows import ORDERS, order_rows


def new_table(lake: Lake, version: str, **properties: str) -> Table:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": version, **properties})
    return table.append(order_rows(1, 2, 3)).append(order_rows(4, 5))


def delete(table: Table, row_filter: str) -> FileChanges:
    plan = plan_position_deletes(table.metadata, table.scan(row_filter).plan())
    return delete_matching(table.io, plan, plan.files, "00007-3-job")


def path_of(table: Table, order: int) -> str:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned.file.file_path


def positions(table: Table, done: FileChanges, path: str) -> list[int]:
    said = (DeleteFiles(table.io).positions(d, path) for d in done.delete_files if d.referenced_data_file == path)
    return list(map(int, reduce(PositionSet.union, said, PositionSet()).to_arrow().to_pylist()))


@pytest.mark.parametrize(("version", "ending"), [("2", "parquet"), ("3", "puffin")])
def test_positions_join_those_that_exist(lake: Lake, version: str, ending: str) -> None:
    table = new_table(lake, version)
    one, two = path_of(table, 1), path_of(table, 4)
    older = deletion_vectors(table, {one: [0]}) if version == "3" else (position_deletes(table, {one: [0]}),)
    add_deletes(table, *older)
    done = delete(table, "id IN (1, 3, 5)")
    assert (positions(table, done, one), positions(table, done, two)) == ([0, 2], [1])
    assert (done.deleted_from, done.deleted_rows) == ({one, two}, 2)
    assert (done.data_files, done.rewritten) == ((), frozenset())
    assert all(path.endswith(f"-deletes.{ending}") and "00007-3-job" in path for path in done.paths)
    assert len(done.paths) == (1 if version == "3" else 2)


def test_one_file_for_a_partition_leaves_older_deletes_where_they_are(lake: Lake) -> None:
    table = new_table(lake, "2", **{"write.delete.granularity": "partition"})
    add_deletes(table, position_deletes(table, {path_of(table, 1): [0]}))
    (file,) = delete(table, "id IN (1, 3, 5)").delete_files
    assert file.record_count == 2


def test_positions_may_come_from_elsewhere(lake: Lake) -> None:
    """MERGE finds out by a join which rows of a data file are deleted."""
    table = new_table(lake, "3")
    scanned = table.scan().plan()
    add_deletes(table, *deletion_vectors(table, {path_of(table, 1): [0]}))
    scanned = table.scan("id = 3").plan()
    (planned,) = scanned.files
    spec = plan_position_deletes(table.metadata, scanned).write
    found = [DeletedPositions(planned, position_set([2]))]
    done = write_deletes(table.io, spec, found, "00001-1-job", DeleteFiles(table.io))
    assert (positions(table, done, planned.file.file_path), done.deleted_rows) == ([0, 2], 1)


def test_nothing_is_written_where_nothing_matches(lake: Lake) -> None:
    table = new_table(lake, "3")
    before = table.io.list(table.location)
    assert delete(table, "id = 2 AND amount > 1000") == FileChanges()
    assert table.io.list(table.location) == before


def test_an_error_leaves_no_file(lake: Lake) -> None:
    table = new_table(lake, "2")
    plan = plan_position_deletes(table.metadata, table.scan("id > 1").plan())
    table.io.delete([plan.files[-1].file.file_path])
    before = table.io.list(table.location)
    with pytest.raises(NotFoundError):
        delete_matching(table.io, plan, plan.files, "00007-3-job")
    assert table.io.list(table.location) == before
