"""Plans for row engines: what is read, what is written, which delete files the new ones replace."""

import pickle

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.scan.plan import PlannedFile
from bergline.table.engine.plans import (
    GroupLayout,
    check_granularity,
    plan_copy_on_write,
    plan_position_deletes,
    plan_rewrite,
)
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.rows import ORDERS, order_rows


def new_table(lake: Lake, version: str, **properties: str) -> Table:
    properties = {"format-version": version} | {k.replace("_", "."): v for k, v in properties.items()}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us")).append(order_rows(4))


def file_of(table: Table, order: int) -> PlannedFile:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned


@pytest.mark.parametrize(("version", "lineage"), [("2", []), ("3", ["_row_id", "_last_updated_sequence_number"])])
def test_copy_on_write_reads_all_rows_and_leaves_out_those_that_match(
    lake: Lake, version: str, lineage: list[str]
) -> None:
    table = new_table(lake, version)
    scanned = table.scan("id = 1").plan()
    plan = plan_copy_on_write(table.metadata, scanned, scanned.files)
    assert [f.name for f in plan.read.schema.fields] == ["id", "amount", "region", *lineage]
    assert (plan.read.filter, tuple(plan.read.files), plan.delete_where) == (ALWAYS_TRUE, (), scanned.filter)
    (group,) = plan.groups
    assert (group.files, group.partition) == (tuple(scanned.files), None)
    assert group.write.schema == plan.read.schema
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301


def test_rewrites_keep_each_group_in_its_partition_and_spec(lake: Lake) -> None:
    table = new_table(lake, "2")
    with table.update_spec() as spec:
        spec.remove_field("region")
    us = file_of(table, 3)
    plan = plan_rewrite(table.metadata, table.scan().plan(), [GroupLayout((us,), largest_file=77)])
    (group,) = plan.groups
    assert plan.delete_where is None
    assert (group.partition, group.write.spec.spec_id, group.write.target_file_size) == (("us",), us.file.spec_id, 77)
    assert group.write.spec.spec_id != table.spec.spec_id


def test_position_deletes_are_refused_in_format_version_1(lake: Lake) -> None:
    table = new_table(lake, "1")
    with pytest.raises(UnsupportedError, match="expected format version 2 or higher to delete rows, found 1"):
        plan_position_deletes(table.metadata, table.scan().plan())


@pytest.mark.parametrize(
    ("version", "granularity", "kind", "taken_over", "replaced"),
    [
        ("2", "file", "file", 1, 1),
        ("2", "partition", "partition", 0, 0),
        ("3", "file", "vector", 2, 1),  # a vector hides position delete files
    ],
)
def test_new_delete_files_take_over_what_they_replace_or_hide(
    lake: Lake, version: str, granularity: str, kind: str, taken_over: int, replaced: int
) -> None:
    table = new_table(lake, "2", write_delete_granularity=granularity)
    one, two = file_of(table, 1).file.file_path, file_of(table, 4).file.file_path
    add_deletes(table, position_deletes(table, {one: [0]}))
    add_deletes(table, position_deletes(table, {one: [1], two: [0]}))
    table.upgrade_format(int(version))
    scanned = table.scan().plan()
    (planned,) = (p for p in scanned.files if p.file.file_path == one)
    spec = plan_position_deletes(table.metadata, scanned).write
    assert (spec.kind, len(spec.taken_over(planned)), len(spec.replaced(planned))) == (kind, taken_over, replaced)


def test_vectors_replace_the_vector_that_exists(lake: Lake) -> None:
    table = new_table(lake, "3")
    add_deletes(table, *deletion_vectors(table, {file_of(table, 1).file.file_path: [0]}))
    planned = file_of(table, 2)
    spec = plan_position_deletes(table.metadata, table.scan().plan()).write
    assert spec.replaced(planned) == spec.taken_over(planned) == planned.deletes


def test_granularity_is_file_or_partition_in_any_case() -> None:
    assert check_granularity("k", "PARTITION") == "partition"
    with pytest.raises(InvalidInputError, match="expected file or partition for property `k`, found `row`"):
        check_granularity("k", "row")
