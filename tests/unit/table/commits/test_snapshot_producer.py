"""What a snapshot in the making leaves behind."""

import pytest
from rows import ORDERS, order_rows

from bergline import Lake
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_manifest_list


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
