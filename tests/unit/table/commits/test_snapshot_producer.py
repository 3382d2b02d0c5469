"""What a snapshot in the making leaves behind."""

import pytest

from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_manifest_list
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
