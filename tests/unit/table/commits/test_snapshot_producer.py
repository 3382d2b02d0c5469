"""What a snapshot in the making leaves behind."""

import pyarrow as pa
import pytest

from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_manifest_list
from bergline.scan.planned_files import PlannedFiles
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, order_rows


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("partition_by", [[], ["bucket(4, id)"]])
def test_manifest_list_that_was_written_is_remembered_as_it_would_be_read(
    lake: Lake, version: str, partition_by: list[str]
) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=partition_by, properties={"format-version": version})
    for write in (table.append, table.append, table.overwrite, table.append):
        write(order_rows(1, 2))
    remembered = [load_manifest_list(table.io, s) for s in table.metadata.snapshots]
    forget_files()
    assert [load_manifest_list(table.io, s) for s in table.metadata.snapshots] == remembered


@pytest.mark.parametrize("merged_from", ["3", "100"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("partition_by", [[], ["region"], ["bucket(4, id)"]])
def test_files_that_were_written_are_planned_as_if_read_back(
    lake: Lake, version: str, partition_by: list[str], merged_from: str
) -> None:
    properties = {"format-version": version, "commit.manifest.min-count-to-merge": merged_from}
    if version != "1":
        properties |= {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
    table = lake.create_table("db.t", ORDERS, partition_by=partition_by, properties=properties)
    for first in (1, 4, 7):
        table.append(order_rows(first, first + 1, first + 2))
    table.delete("id = 2 OR id = 7 OR id = 8 OR id = 9")
    if version != "1" and not partition_by:
        rows = pa.table({"id": [4]}, pa.schema([("id", pa.int64())]))
        add_deletes(table, equality_deletes(table, rows, [1]))
    scans = [table.scan(snapshot_id=s.snapshot_id) for s in table.metadata.snapshots]
    written = [scan.plan() for scan in scans]
    assert not any(isinstance(plan.files, PlannedFiles) for plan in written)
    forget_files()
    read = [scan.plan() for scan in scans]
    assert all(isinstance(plan.files, PlannedFiles) for plan in read)
    assert [list(plan.files) for plan in written] == [list(plan.files) for plan in read]
    assert [plan.key_columns for plan in written] == [plan.key_columns for plan in read]


def test_encrypted_tables_are_not_written(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2))
    (file,) = [planned.file for planned in table.scan().plan().files]
    table.set_properties({"encryption.key-id": "k"})
    before = table.metadata_location
    for write in (
        lambda: table.append(order_rows(3)),
        lambda: table.append_files([file]),
        lambda: table.delete("id = 1"),
        lambda: table.delete("true"),
    ):
        with pytest.raises(UnsupportedError, match=f"cannot write to the encrypted table at {table.location}$"):
            write()
    assert table.refresh().metadata_location == before
    assert [planned.file for planned in table.scan().plan().files] == [file]
