"""The metadata table position_deletes."""

import pyarrow as pa
import pytest

from bergline import Lake
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long


def paths(rows: pa.Table) -> list[str]:
    return sorted(rows.column("file_path").to_pylist())


def test_position_deletes_of_files_and_of_vectors(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"]).append(order_rows(1, 2, 3))
    (first,) = paths(table.inspect("files"))
    add_deletes(table, position_deletes(table, {first: [0, 2]}))
    rows = table.inspect("position_deletes").to_pylist()
    assert [(r["file_path"], r["pos"], r["row"], r["partition"]) for r in rows] == [
        (first, pos, None, {"region": "eu"}) for pos in (0, 2)
    ]
    table.upgrade_format(3)
    (second,) = (p.file.file_path for p in table.append(order_rows(4, 5)).scan("id = 4").plan().files)
    (vector,) = deletion_vectors(table, {second: [1]})
    add_deletes(table, vector)
    assert sorted(table.inspect("position_deletes").column("content_offset").to_pylist(), key=str) == [4, None, None]
    (row,) = [r for r in table.inspect("position_deletes").to_pylist() if r["file_path"] == second]
    assert (row["pos"], row["spec_id"], row["delete_file_path"]) == (1, 0, vector.file_path)
    assert row["content_size_in_bytes"] == vector.content_size_in_bytes
    (file,) = [r for r in table.inspect("delete_files").to_pylist() if r["file_format"] == "PUFFIN"]
    assert (file["referenced_data_file"], file["content_offset"]) == (second, vector.content_offset)
