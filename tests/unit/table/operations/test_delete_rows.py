"""Merge on read: the delete files for rows that match, and those that they replace."""

from typing import Any

import pytest

from bergline import Lake, Table
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.table.operations.delete import write_deletes_by_position
from support.fixtures.add_deletes import position_deletes
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long


def new_table(lake: Lake, version: str, **options: Any) -> Table:
    return lake.create_table(
        "db.t", ORDERS, properties={"format-version": version, **options.pop("properties", {})}, **options
    )


def found(table: Table, **options: Any) -> list[int]:
    return ids(table.scan(**options).to_arrow())


def summary(table: Table) -> dict[str, str]:
    assert table.current_snapshot is not None
    return table.current_snapshot.summary


def data_files(table: Table) -> list[DataFile]:
    return [p.file for p in table.scan().plan().files]


def delete_where(table: Table, text: str, **options: Any) -> Table:
    """Merge on read, as `table.delete` does it."""
    plan = table.scan(text).plan()
    made = write_deletes_by_position(table.io, table.metadata, plan)
    return table.row_delta(deletes=made.deletes, remove=made.replaced, referenced=made.referenced, **options)


def _path_with(table: Table, order: int) -> str:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned.file.file_path


@pytest.mark.parametrize("granularity", ["file", "partition", "PARTITION"])
def test_position_delete_files_are_about_a_file_or_a_partition(lake: Lake, granularity: str) -> None:
    table = new_table(lake, "2", partition_by=["region"], properties={"write.delete.granularity": granularity})
    table.append(order_rows(1, 2)).append(order_rows(3, 4)).append(order_rows(5, 6, region="us"))
    delete_where(table, "id IN (1, 3, 5)")
    assert found(table) == [2, 4, 6]
    deletes = {d.file_path: d for p in table.scan().plan().files for d in p.deletes}.values()
    assert len(deletes) == (3 if granularity == "file" else 2)
    assert {d.partition for d in deletes} == {("eu",), ("us",)}
    assert all("region=" in d.file_path for d in deletes)
    delete_where(table, "id = 2")
    assert found(table) == [4, 6]
    assert summary(table)["total-position-deletes"] == "4"
    assert summary(table)["total-delete-files"] == "3"


def test_deletion_vectors_take_over_what_was_deleted_before_the_upgrade(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2, 3)).append(order_rows(4, 5, 6))
    delete_where(table, "id = 1")
    first, second = sorted(data_files(table), key=lambda f: f.file_path != _path_with(table, 2))
    whole = position_deletes(table, {first.file_path: [1], second.file_path: [1]})
    table.row_delta(deletes=[whole])
    assert found(table) == [3, 4, 6]
    table.set_properties({"format-version": "3"})
    delete_where(table, "id IN (3, 6)")
    assert found(table) == [4]
    deletes = [d for p in table.scan().plan().files for d in p.deletes]
    assert [d.file_format for d in deletes] == ["PUFFIN", "PUFFIN"]
    assert sorted(d.record_count for d in deletes) == [2, 3]
    assert len({d.file_path for d in deletes}) == 1
    assert summary(table)["removed-position-delete-files"] == "1"
    delete_where(table, "id = 4")
    assert found(table) == []
    assert summary(table)["total-position-deletes"] == "8"  # two vectors of three, and the file about both


def test_nothing_matches_and_nothing_is_written(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1))
    made = write_deletes_by_position(table.io, table.metadata, table.scan("id = 7 OR amount < 0").plan())
    assert (made.deletes, made.replaced, made.rows) == ((), (), 0)


def test_deleted_rows_are_not_deleted_again(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2))
    delete_where(table, "id = 1")
    made = write_deletes_by_position(table.io, table.metadata, table.scan().plan())
    assert made.rows == 1
    assert [d.record_count for d in made.deletes] == [2]
    assert [d.content for d in made.replaced] == [FileContent.POSITION_DELETES]
