"""Compaction: fewer files, the same rows, whatever others do meanwhile."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.operations.compaction import CompactionResult, plan_groups
from bergline.table.operations.rewrite_candidates import RewriteCandidates
from bergline.table.operations.rewrite_options import RewriteOptions
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.competing_writers import LosingTable, files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

VERSIONS = ["1", "2", "3"]


def new_table(lake: Lake, version: str = "2", **options: Any) -> Table:
    return lake.create_table("db.t", ORDERS, properties={"format-version": version}, **options)


def found(table: Table, **options: Any) -> list[int]:
    return ids(table.scan(**options).to_arrow())


def data_files(table: Table) -> list[DataFile]:
    return [p.file for p in table.scan().plan().files]


def delete_position(table: Table, order: int) -> None:
    """Delete the first row of the file that holds an order."""
    (planned,) = table.scan(f"id = {order}").plan().files
    wanted = {planned.file.file_path: [0]}
    is_v3 = table.metadata.format_version > 2
    add_deletes(table, *(deletion_vectors(table, wanted) if is_v3 else (position_deletes(table, wanted),)))


def live_deletes(table: Table) -> list[DataFile]:
    assert table.current_snapshot is not None
    manifests = load_manifest_list(table.io, table.current_snapshot)
    return [e.data_file for e in live_entries(table.io, manifests, table.metadata) if e.data_file.content]


@pytest.mark.parametrize(
    ("sizes", "deletes", "rewritten"),
    [
        ([10, 10], 0, 2),
        ([10], 0, 0),
        ([70, 70, 70], 0, 0),  # they would be three again
        ([40, 40, 40], 0, 3),
        ([80, 90, 10], 0, 0),
        ([80, 10, 10], 0, 2),
        ([10], 1, 1),
        ([200, 10, 10], 1, 3),
        ([], 0, 0),
    ],
)
def test_files_are_worth_rewriting_if_they_become_fewer_or_have_deletes(
    sizes: list[int], deletes: int, rewritten: int
) -> None:
    options = RewriteOptions(min_input_files=2, delete_file_threshold=1)
    places = range(len(sizes))
    candidates = RewriteCandidates(sizes, [place < deletes for place in places], [places])
    groups = plan_groups(candidates, options.sizes(100, only_fewer=True), options)
    assert sum(map(len, groups)) == rewritten


@pytest.mark.parametrize("version", VERSIONS)
def test_small_files_of_a_partition_become_one(lake: Lake, version: str) -> None:
    table = new_table(lake, version, partition_by=["region"])
    for i in range(3):
        table.append(order_rows(i)).append(order_rows(10 + i, region="us"))
    result = table.compact()
    assert (result.rewritten_data_files, result.added_data_files, result.removed_delete_files) == (6, 2, 0)
    assert result.rewritten_bytes > 0
    assert found(table) == [0, 1, 2, 10, 11, 12]
    assert sorted(f.partition for f in data_files(table)) == [("eu",), ("us",)]
    assert table.current_snapshot is not None
    assert table.current_snapshot.operation == "replace"
    before = table.metadata_location
    assert table.compact() == CompactionResult()
    assert table.metadata_location == before


def test_an_empty_table_has_nothing_to_compact(lake: Lake) -> None:
    assert new_table(lake).compact() == CompactionResult()


def test_the_filter_picks_files_and_all_their_rows_are_kept(lake: Lake) -> None:
    table = new_table(lake, partition_by=["region"])
    for i in range(2):
        table.append(order_rows(i, i + 5)).append(order_rows(10 + i, region="us"))
    assert table.compact("region = 'eu' AND id < 5").added_data_files == 1
    assert len(data_files(table)) == 3
    assert found(table) == [0, 1, 5, 6, 10, 11]


def test_files_are_rolled_at_the_target_size(lake: Lake) -> None:
    table = new_table(lake)
    for i in range(4):
        table.append(order_rows(*range(i * 1000, i * 1000 + 1000)))
    size = sum(f.file_size_in_bytes for f in data_files(table))
    result = table.compact(target_size=size // 2)
    assert 1 < result.added_data_files < 4
    assert found(table) == list(range(4000))


@pytest.mark.parametrize("options", [{"target_size": "1"}, {"min_files": 1.5}, {"row_filter": 7}, {"branch": ""}])
def test_bad_wishes_are_refused(lake: Lake, options: Any) -> None:
    with pytest.raises(InvalidInputError):
        new_table(lake).append(order_rows(1)).compact(**options)


@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_are_applied_and_delete_files_about_nothing_go(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1, 2)).append(order_rows(3, 4))
    delete_position(table, 1)
    add_deletes(table, equality_deletes(table, pa.table({"id": [4]}), [1]))
    assert found(table) == [2, 3]
    result = table.compact()
    assert (result.rewritten_data_files, result.added_data_files, result.removed_delete_files) == (2, 1, 2)
    assert found(table) == [2, 3]
    assert live_deletes(table) == []
    assert [f.record_count for f in data_files(table)] == [2]
    assert table.compact() == CompactionResult()


def test_a_file_without_rows_left_goes_and_none_comes(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1))
    delete_position(table, 1)
    result = table.compact()
    assert (result.rewritten_data_files, result.added_data_files, result.removed_delete_files) == (1, 0, 1)
    assert data_files(table) == []
    assert found(table) == []


def test_deletes_of_a_whole_partition_go_when_all_its_files_are_rewritten(lake: Lake) -> None:
    table = new_table(lake, partition_by=["region"])
    table.append(order_rows(1, 2)).append(order_rows(3, 4)).append(order_rows(5, region="us"))
    first, second = (p.file.file_path for p in table.scan("region = 'eu'").plan().files)
    add_deletes(table, position_deletes(table, {first: [0], second: [1]}))
    add_deletes(table, equality_deletes(table, pa.table({"id": [5]}), [1], ("us",)))
    rows = found(table)
    assert table.compact("region = 'eu'").removed_delete_files == 1
    assert [d.partition for d in live_deletes(table)] == [("us",)]
    assert found(table) == rows
    assert table.compact("region = 'eu'") == CompactionResult()


def test_deletes_that_other_files_still_need_stay(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(100))
    add_deletes(table, equality_deletes(table, pa.table({"id": [1, 100]}), [1]))
    assert table.compact("id = 1").removed_delete_files == 0
    assert found(table) == []
    assert table.compact().removed_delete_files == 1
    assert found(table) == []


def test_rows_keep_their_ids_and_when_they_were_last_changed(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2)).append(order_rows(3)).append(order_rows(4, 5))
    delete_position(table, 1)
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(columns=columns).to_arrow().sort_by("id")
    table.compact()
    assert table.scan(columns=columns).to_arrow().sort_by("id") == before
    table.append(order_rows(6)).compact()
    rows = table.scan(columns=columns).to_arrow().sort_by("id")
    assert rows.slice(0, 4) == before
    assert len(set(rows.column("_row_id").to_pylist())) == 5


def test_rows_from_before_row_ids_get_some(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1)).append(order_rows(2)).set_properties({"format-version": "3"})
    assert table.compact().added_data_files == 1
    row_ids = table.scan(columns=["_row_id"]).to_arrow().column("_row_id").to_pylist()
    assert len(set(row_ids)) == 2
    assert None not in row_ids


def test_row_ids_that_come_meanwhile_are_kept(lake: Lake) -> None:
    new_table(lake, "2").append(order_rows(1)).append(order_rows(2)).set_properties({"format-version": "3"})
    losing = LosingTable(lake, "db.t", lambda: lake.load_table("db.t").append(order_rows(3)))
    losing.table.compact()
    table = losing.table.refresh()
    given = table.scan(snapshot_id=table.metadata.snapshots[-2].snapshot_id, columns=["id", "_row_id"]).to_arrow()
    assert None not in given.column("_row_id").to_pylist()
    assert table.scan(columns=["id", "_row_id"]).to_arrow().sort_by("id") == given.sort_by("id")


def test_files_stay_in_their_partition_spec_even_if_its_column_is_gone(lake: Lake, pyiceberg: Any) -> None:
    table = new_table(lake, partition_by=["region"]).append(order_rows(1)).append(order_rows(2))
    theirs = pyiceberg.load_table("db.t")
    with theirs.update_spec() as spec:
        spec.remove_field("region")
    with theirs.update_schema() as schema:
        schema.delete_column("region")
    table.refresh().append(pa.table({"id": [3]})).append(pa.table({"id": [4]}))
    assert table.compact().added_data_files == 2
    assert sorted((f.spec_id, f.partition) for f in data_files(table)) == [(0, ("eu",)), (1, ())]
    assert found(table) == [1, 2, 3, 4]
    assert ids(pyiceberg.load_table("db.t").scan().to_arrow()) == [1, 2, 3, 4]


def test_a_branch_is_compacted_and_main_stays(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2)).append(order_rows(3), branch="dev")
    assert table.compact(branch="dev").rewritten_data_files == 3
    assert (len(data_files(table)), found(table, ref="dev")) == (2, [1, 2, 3])


def test_concurrent_appends_never_disturb(lake: Lake) -> None:
    new_table(lake).append(order_rows(1)).append(order_rows(2))
    appends = [lambda i=i: lake.load_table("db.t").append(order_rows(i)) for i in range(10, 18)]
    losing = LosingTable(lake, "db.t", *appends)
    losing.table.compact()
    assert losing.lists == [1] * 9
    assert losing.manifests == [3] + [0] * 8
    assert found(losing.table) == [1, 2, *range(10, 18)]


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_deleted_meanwhile_stay_deleted(lake: Lake, version: str) -> None:
    new_table(lake, version).append(order_rows(1, 2)).append(order_rows(3, 4))

    def by_position() -> None:
        delete_position(lake.load_table("db.t"), 1)

    def by_equality() -> None:
        rival = lake.load_table("db.t")
        add_deletes(rival, equality_deletes(rival, pa.table({"id": [4]}), [1]))

    losing = LosingTable(lake, "db.t", by_position, by_equality)
    result = losing.table.compact()
    assert found(losing.table) == [2, 3]
    assert result.added_data_files == 1
    assert [f.record_count for f in data_files(losing.table)] == [3]  # order 4 is deleted by the equality delete
    assert len(live_deletes(losing.table)) == 1


def test_a_compaction_that_always_loses_gives_up_and_leaves_no_file(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(*range(20))).append(order_rows(100))
    before = files(table, "*.parquet")
    left = list(range(20))

    def delete_another() -> None:
        rival = lake.load_table("db.t")
        (planned,) = rival.scan("id = 19").plan().files
        position = left.pop(0)
        vectors = deletion_vectors(rival, {planned.file.file_path: list(range(position + 1))})
        rival.row_delta(deletes=vectors, remove=list(planned.deletes))

    losing = LosingTable(lake, "db.t", *[delete_another] * 10)
    with pytest.raises(ConflictError, match="which this one replaces"):
        losing.table.compact()
    assert files(table, "*.parquet") == before
    assert found(table.refresh()) == [*range(10, 20), 100]


def test_compaction_in_a_transaction_takes_appends_of_others(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2))
    with table.transaction() as staged:
        staged.append(order_rows(3))
        assert staged.compact().added_data_files == 1
        lake.load_table("db.t").append(order_rows(4))
    assert found(table) == [1, 2, 3, 4]
    assert len(data_files(table)) == 2


def test_compaction_in_a_transaction_loses_against_deletes(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2))

    def compact_against_a_rival() -> None:
        with table.transaction() as staged:
            staged.append(order_rows(5)).compact()
            rival = lake.load_table("db.t")
            add_deletes(rival, equality_deletes(rival, pa.table({"id": [1]}), [1]))

    with pytest.raises(ConflictError, match="which this one replaces"):
        compact_against_a_rival()
    assert found(table.refresh()) == [2]


def test_deletes_of_a_transaction_that_is_compacted_still_apply_to_rows_of_others(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2)).append(order_rows(3))
    with table.transaction() as staged:
        staged.row_delta(deletes=[equality_deletes(staged, pa.table({"id": [1, 9]}), [1])], isolation="none")
        staged.compact()
        lake.load_table("db.t").append(order_rows(9))
    assert found(table) == [2, 3]


def test_the_start_may_expire_meanwhile(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2)).append(order_rows(3))
    delete_position(table, 1)

    def go_on_and_expire() -> None:
        rival = lake.load_table("db.t")
        for i in range(10, 13):
            rival.append(order_rows(i))
        rival.expire(older_than=dt.datetime.now(dt.UTC), retain_last=2)

    before = files(table, "*.parquet")
    losing = LosingTable(lake, "db.t", go_on_and_expire)
    result = losing.table.compact()
    assert (result.added_data_files, result.removed_delete_files) == (1, 1)
    assert found(losing.table) == [2, 3, 10, 11, 12]
    assert len(files(table, "*.parquet") - before) == 3 + 1  # the rows were written once


def test_a_branch_that_was_moved_back_keeps_the_rows_that_came_back(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2)).append(order_rows(3, 4))
    table.refs.create_branch("before", at="main")
    delete_position(table, 1)
    table.refs.create_branch("dev", at="main")
    losing = LosingTable(lake, "db.t", lambda: lake.load_table("db.t").refs.replace_branch("dev", at="before"))
    losing.table.compact(branch="dev")
    assert found(losing.table, ref="dev") == [1, 2, 3, 4]
    assert len(list(losing.table.scan(ref="dev").plan().files)) == 1


def test_a_table_that_was_made_anew_is_another_one(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2))
    lake.drop_table("db.t")
    new_table(lake).append(order_rows(3)).append(order_rows(4))
    with pytest.raises(ConflictError, match="dropped and re-created"):
        table.compact()


@pytest.mark.parametrize("wanted", [{"target_size": 0}, {"target_size": -1}, {"min_files": 0}])
def test_sizes_and_counts_are_positive(lake: Lake, wanted: dict[str, int]) -> None:
    table = lake.create_table("db.sizes", ORDERS)
    with pytest.raises(InvalidInputError, match="expected a number from 1 on"):
        table.compact(**wanted)
