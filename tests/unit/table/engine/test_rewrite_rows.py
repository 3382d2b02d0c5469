"""A group of data files written again."""

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.datafiles.read.reader import read_plan
from bergline.errors import NotFoundError, UnsupportedError
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.table.engine.plans import RewritePlan, plan_copy_on_write
from bergline.table.engine.rewrite_rows import rewrite_group
from bergline.table.engine.row_engine import FileChanges
from support.fixtures.add_deletes import add_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows


def rewrite(table: Table, plan: RewritePlan) -> FileChanges:
    return rewrite_group(table.io, plan, plan.groups[0], "00007-3-job")


def copy_on_write(table: Table, row_filter: str) -> RewritePlan:
    scanned = table.scan(row_filter).plan()
    return plan_copy_on_write(table.metadata, scanned, table.scan().plan().files)


def ids_in(table: Table, changes: FileChanges) -> list[int]:
    files = tuple(PlannedFile(file, 1) for file in changes.data_files)
    scanned = table.scan().plan()
    plan = ScanPlan(None, table.schema, scanned.schema, scanned.filter, files, specs=scanned.specs)
    return sorted(read_plan(table.io, plan).column("id").to_pylist())


def test_only_files_with_matching_rows_are_written_again(orders: Table) -> None:
    orders.append(order_rows(1, 2, 3)).append(order_rows(4, 5))
    paths = {p.file.record_count: p.file.file_path for p in orders.scan().plan().files}
    done = rewrite(orders, copy_on_write(orders, "id = 2"))
    assert ids_in(orders, done) == [1, 3]
    assert (done.rewritten, done.deleted_rows, done.delete_files) == ({paths[3]}, 1, ())
    assert [f.file_path.rpartition("/")[2] for f in done.data_files] == ["00007-3-job-00001.parquet"]


def test_deleted_rows_are_neither_matched_nor_copied(orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    (planned,) = orders.scan().plan().files
    add_deletes(orders, position_deletes(orders, {planned.file.file_path: [1]}))
    assert rewrite(orders, copy_on_write(orders, "id = 2")) == FileChanges()
    done = rewrite(orders, copy_on_write(orders, "id IN (2, 3)"))
    assert (ids_in(orders, done), done.deleted_rows) == ([1], 1)


def test_a_file_of_which_every_row_goes_leaves_no_file(orders: Table) -> None:
    orders.append(order_rows(1, 2))
    done = rewrite(orders, copy_on_write(orders, "id < 3 OR amount = 99"))
    assert (done.data_files, len(done.rewritten), done.deleted_rows) == ((), 1, 2)


def test_an_error_leaves_no_file(orders: Table) -> None:
    orders.set_properties({"write.target-file-size-bytes": "1"})
    orders.append(order_rows(1, 2)).append(order_rows(3, 4))
    plan = copy_on_write(orders, "id IN (1, 3)")
    orders.io.delete([plan.groups[0].files[-1].file.file_path])
    before = orders.io.list(orders.location)
    with pytest.raises(NotFoundError):
        rewrite(orders, plan)
    assert orders.io.list(orders.location) == before


def test_columns_that_cannot_be_written_matter_only_where_rows_match(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2, 9))
    with table.update_schema() as schema:
        schema.add_column("empty", pa.struct([]))
    before = table.metadata_location
    assert table.delete("id = 5").metadata_location == before
    with pytest.raises(UnsupportedError, match="struct without fields"):
        table.delete("id = 2")
