"""How two refs differ, by their metadata."""

import pytest

from bergline import Lake, Table
from bergline.errors import NotFoundError
from bergline.table.references.diff import PartitionDiff
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 to 3 in `eu`, 4 and 5 in `us`, and a branch `staging` at that point."""
    table = lake.create_table(
        "db.parts", ORDERS, partition_by=["region"], properties={"write.delete.mode": "merge-on-read"}
    )
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5, region="us"))
    table.refs.create_branch("staging")
    return table


def test_refs_at_one_snapshot_do_not_differ(parts: Table) -> None:
    diff = parts.refs.diff("main", "staging")
    assert diff.ancestor == parts.current_snapshot
    assert (diff.only_from, diff.only_to, diff.partitions, diff.schema_changes) == ((), (), (), ())
    assert diff.to_arrow().num_rows == 0


def test_files_and_rows_are_counted_by_partition(parts: Table) -> None:
    ancestor = parts.current_snapshot
    parts.append(order_rows(6, 7), branch="staging").delete("id = 1", branch="staging")
    parts.delete("region = 'us'", branch="staging")
    parts.append(order_rows(8, region="us"))
    diff = parts.refs.diff("main", "staging")
    assert diff.ancestor == ancestor
    assert [s.operation for s in diff.only_to] == ["append", "delete", "delete"]
    assert diff.only_from == (parts.current_snapshot,)
    assert diff.partitions == (
        PartitionDiff("region=eu", 0, added_rows=2, added_data_files=1, added_delete_files=1, added_deletes=1),
        PartitionDiff("region=us", 0, removed_rows=3, removed_data_files=2),
    )
    assert diff.to_arrow().to_pylist()[1]["removed_rows"] == 3
    back = parts.refs.diff("staging", "main")
    assert back.partitions[1] == PartitionDiff("region=us", 0, added_rows=3, added_data_files=2)


def test_a_diff_is_printed_in_a_few_lines(parts: Table) -> None:
    ancestor = parts.refs["main"].snapshot_id
    parts.append(order_rows(6, 7), branch="staging").delete("id = 1", branch="staging")
    parts.append(order_rows(8, region="us"))
    parts.refs.create_tag("before")
    with parts.update_schema() as schema:
        schema.add_column("note", "string")
    assert str(parts.refs.diff("before", "staging")).split("\n  ") == [
        f"`staging` against `before`, since snapshot {ancestor}: 2 snapshots of its own; `before` has 1",
        "region=eu: +2 rows in 1 data file, +1 delete in 1 delete file",
        "region=us: -1 row in 1 data file",
        "added `note` string",
    ]


def test_a_diff_of_many_partitions_names_the_first(lake: Lake) -> None:
    table = lake.create_table("db.many", ORDERS, partition_by=["id"]).append(order_rows(0))
    table.refs.create_tag("before")
    lines = str(table.append(order_rows(*range(1, 24))).refs.diff("before", "main")).split("\n  ")
    assert (len(lines), lines[-1]) == (22, "and 3 partitions more")


def test_no_data_file_is_needed(parts: Table) -> None:
    parts.append(order_rows(6), branch="staging").delete("id = 1", branch="staging")
    parts.io.delete([f for f in parts.io.list(parts.location) if f.endswith(".parquet")])
    assert len(parts.refs.diff("main", "staging").partitions) == 1


def test_what_was_merged_is_marked_and_is_no_difference(parts: Table) -> None:
    parts.append(order_rows(6), branch="staging").append(order_rows(7))
    parts.refs.merge("staging", into="main")
    diff = parts.refs.diff("main", "staging")
    assert diff.already_merged == {parts.refs["staging"].snapshot_id}
    assert diff.partitions == (PartitionDiff("region=eu", 0, removed_rows=1, removed_data_files=1),)


def test_columns_that_came_went_and_changed_are_named(lake: Lake) -> None:
    table = lake.create_table("db.columns", ORDERS).append(order_rows(1))
    table.refs.create_tag("before")
    with table.update_schema() as schema:
        schema.add_column("note", "string")
        schema.rename_column("region", "area")
        schema.drop_column("amount")
        schema.make_optional("id")
    table.append(order_rows(2).select(["id"]))
    assert set(table.refs.diff("before", "main").schema_changes) == {
        "dropped `amount`",
        "added `note` string",
        "renamed `region` to `area`",
        "made `id` optional",
    }
    assert "added `amount` double" in table.refs.diff("main", "before").schema_changes


def test_columns_are_those_that_reads_of_the_refs_give(lake: Lake) -> None:
    table = lake.create_table("db.columns", ORDERS).append(order_rows(1))
    table.refs.create_branch("dev")
    table.refs.create_tag("v1")
    with table.update_schema() as schema:
        schema.add_column("note", "string")  # no snapshot has it yet
    for before in ("main", "dev", "v1"):
        for after in ("main", "dev", "v1"):
            names = [set(table.scan(ref=ref).to_arrow().column_names) for ref in (before, after)]
            added = tuple(f"added `{name}` string" for name in names[1] - names[0])
            dropped = tuple(f"dropped `{name}`" for name in names[0] - names[1])
            assert table.refs.diff(before, after).schema_changes == (*dropped, *added)


def test_where_the_ancestor_has_expired_the_known_snapshots_are_named(parts: Table) -> None:
    parts.append(order_rows(6), branch="staging").append(order_rows(7), branch="staging").append(order_rows(8))
    parent = parts.metadata.snapshot(parts.refs["staging"].snapshot_id).parent_snapshot_id
    parts.expire(snapshot_ids=[parent or 0], retain_last=100)
    diff = parts.refs.diff("main", "staging")
    assert diff.ancestor is None
    assert [s.snapshot_id for s in diff.only_to] == [parts.refs["staging"].snapshot_id]
    assert diff.partitions[0].added_rows == 2


def test_unknown_refs_are_named(parts: Table) -> None:
    with pytest.raises(NotFoundError, match="`nope`"):
        parts.refs.diff("main", "nope")
