"""Merging branches that have moved apart: what is replayed, what is refused, and what stays as it was."""

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError, ConflictError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.snapshot import Snapshot
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.references.snapshot_change import load_change
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.competing_writers import files as files_on_disk
from support.fixtures.competing_writers import overtaken
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing

pytestmark = pytest.mark.long


@pytest.fixture(params=["2", "3"])
def parts(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """Orders by region: 1 to 3 in `eu`, 4 to 6 in `us`, and a branch `staging` at that point."""
    properties = {"format-version": request.param, "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5, 6, region="us"))
    table.refs.create_branch("staging")
    return table


def rows(table: Table, ref: str = "main") -> list[int]:
    return ids(table.refresh().scan(ref=ref).to_arrow())


def line(table: Table, ref: str = "main") -> list[Snapshot]:
    """The history of a ref, newest first."""
    return list(table.metadata.ancestors(table.refs[ref].snapshot_id))


def unchanged(table: Table, call: Callable[[], object]) -> pytest.ExceptionInfo[BerglineError]:
    """The error of a call that changes nothing and leaves no file."""
    before, on_disk = table.refresh().metadata, files_on_disk(table, "*")
    with pytest.raises(BerglineError) as caught:
        call()
    assert table.refresh().metadata == before
    assert files_on_disk(table, "*") == on_disk
    return caught


def test_a_branch_that_is_ahead_moves_the_other_forward(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging")
    head = parts.refs["staging"].snapshot_id
    result = parts.refs.merge("staging", into="main")
    assert (result.head, result.replayed) == (head, {})
    assert parts.refs["main"].snapshot_id == head


def test_appends_on_both_sides_come_together_in_one_commit(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8, region="us"), branch="staging")
    parts.append(order_rows(9))
    before, data = parts.metadata_location, files_on_disk(parts, "*.parquet")
    result = parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert rows(parts, "staging") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert parts.metadata.metadata_log[-1].metadata_file == before
    assert files_on_disk(parts, "*.parquet") == data
    new, old = line(parts)[:2], line(parts, "staging")[:2]
    assert [s.summary["source-snapshot-id"] for s in new] == [str(s.snapshot_id) for s in old]
    assert result.replayed == {o.snapshot_id: n.snapshot_id for o, n in zip(old, new, strict=True)}
    assert result.head == new[0].snapshot_id
    check_nothing_is_missing(parts, merged=True)


def test_a_second_merge_adds_nothing(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    parts.refs.merge("staging", into="main")
    before = parts.metadata_location
    assert parts.refs.merge("staging", into="main").replayed == {}
    assert parts.refresh().metadata_location == before
    parts.append(order_rows(9), branch="staging")
    assert len(parts.refs.merge("staging", into="main").replayed) == 1
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_merging_back_and_forth_repeats_nothing(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    parts.refs.merge("staging", into="main")
    parts.refs.merge("main", into="staging")
    assert rows(parts, "staging") == rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8]
    parts.delete("id = 8", branch="staging")
    parts.delete("id = 7")
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6]
    parts.refs.merge("main", into="staging")
    assert rows(parts, "staging") == [1, 2, 3, 4, 5, 6]
    assert parts.refs.merge("staging", into="main").replayed == {}


def test_what_a_snapshot_says_of_itself_is_kept_and_what_is_counted_is_counted_again(parts: Table) -> None:
    parts.append(order_rows(7, 8), branch="staging", summary={"job": "nightly", "spark.app.id": "a-1"})
    parts.append(order_rows(9))
    parts.refs.merge("staging", into="main")
    new, old = line(parts)[0].summary, line(parts, "staging")[0].summary
    assert new.items() >= {"operation": "append", "job": "nightly", "spark.app.id": "a-1"}.items()
    assert (old["total-records"], new["total-records"]) == ("8", "9")
    assert new["added-records"] == "2"
    assert new["total-data-files"] == "4"


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_deletes_overwrites_and_compaction_go_where_the_other_side_changed_other_files(parts: Table, mode: str) -> None:
    parts.set_properties({"write.delete.mode": mode})
    parts.delete("id = 2", branch="staging")
    parts.append(order_rows(7), branch="staging")
    parts.delete("id = 7", branch="staging")
    parts.overwrite(order_rows(30, 33), "id = 3", branch="staging")
    assert parts.compact(branch="staging").rewritten_data_files
    parts.delete("id = 5").append(order_rows(8, 9))
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 4, 6, 8, 9, 30, 33]
    operations = [s.operation for s in line(parts)[:5]]
    assert operations == [s.operation for s in line(parts, "staging")[:5]]
    check_nothing_is_missing(parts, merged=True)


def test_each_snapshot_that_is_done_again_has_one_manifest_of_its_own_for_what_it_adds(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").delete("id = 7", branch="staging")
    parts.append(order_rows(8))
    parts.refs.merge("staging", into="main")
    for snapshot in line(parts)[:2]:
        own = [m for m in load_manifest_list(parts.io, snapshot) if m.added_snapshot_id == snapshot.snapshot_id]
        adding = [m for m in own if m.added_files_count]
        assert len(adding) == len({m.content for m in adding})
        for manifest in adding:
            assert manifest.sequence_number == snapshot.sequence_number
            assert all(e.snapshot_id == snapshot.snapshot_id for e in load_entries(parts.io, manifest, parts.metadata))


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("theirs", ["delete", "overwrite", "compact", "delete all"])
@pytest.mark.parametrize("ours", ["delete", "overwrite", "delete all"])
def test_the_same_file_changed_on_both_sides_is_refused_with_who_changed_it(
    parts: Table, mode: str, theirs: str, ours: str
) -> None:
    parts.set_properties({"write.delete.mode": mode})
    parts.append(order_rows(10))  # compaction has something to do
    parts.refs.replace_branch("staging")

    def change(kind: str, branch: str, one: int) -> None:
        match kind:
            case "delete":
                parts.delete(f"id = {one}", branch=branch)
            case "overwrite":
                parts.overwrite(order_rows(one * 100), f"id = {one}", branch=branch)
            case "compact":
                parts.compact("region = 'eu'", branch=branch)
            case "delete all":
                parts.delete("region = 'eu'", branch=branch)

    change(theirs, "staging", 2)
    change(ours, "main", 3)
    parts.append(order_rows(20), branch="staging")
    refused, winner = parts.refs["staging"].snapshot_id, parts.refs["main"].snapshot_id
    caught = unchanged(parts, lambda: parts.refs.merge("staging", into="main"))
    assert isinstance(caught.value, ConflictError)
    first = parts.metadata.snapshot(refused).parent_snapshot_id
    text = str(caught.value)
    assert text.startswith(f"cannot merge `staging` into `main`: snapshot {first} ")
    assert f"snapshot {winner} (" in text
    assert "`region=eu`" in text
    assert ".parquet" in text


def test_equality_deletes_go_only_where_no_rows_came_that_they_would_delete(parts: Table) -> None:
    add_deletes(parts, equality_deletes(parts, pa.table({"id": [2]}), [1], ("eu",)), branch="staging")
    parts.append(order_rows(8, region="us")).append(order_rows(9))
    parts.refs.create_tag("before")
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 3, 4, 5, 6, 8, 9]
    parts.refs.replace_branch("main", at="before")
    parts.append(order_rows(1, 3))
    caught = unchanged(parts, lambda: parts.refs.merge("staging", into="main"))
    assert "by equality" in str(caught.value)


def test_equality_deletes_of_the_other_side_leave_rows_alone_that_come_after_them(parts: Table) -> None:
    parts.append(order_rows(7, 8), branch="staging")
    add_deletes(parts, equality_deletes(parts, pa.table({"id": [2, 7]}), [1], ("eu",)))
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 3, 4, 5, 6, 7, 8]


def test_rows_that_a_compaction_moved_under_their_old_number_are_still_deleted_by_equality(parts: Table) -> None:
    parts.append(order_rows(7))
    parts.refs.replace_branch("staging")
    parts.compact("region = 'eu'", branch="staging")
    add_deletes(parts, equality_deletes(parts, pa.table({"id": [2, 7]}), [1], ("eu",)))
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 3, 4, 5, 6]


def test_a_compaction_of_the_branch_s_own_files_gets_the_number_that_its_rows_have_there(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8), branch="staging")
    parts.compact("id > 6", branch="staging")
    parts.append(order_rows(9))
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    replaced, second = line(parts)[:2]
    (added,) = load_change(parts.io, parts.metadata, replaced).added
    assert added.number == second.sequence_number


def test_a_compaction_of_old_and_new_files_is_refused_where_old_rows_were_deleted_by_equality(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging")
    parts.compact("region = 'eu'", branch="staging")
    add_deletes(parts, equality_deletes(parts, pa.table({"id": [2]}), [1], ("eu",)))
    assert isinstance(unchanged(parts, lambda: parts.refs.merge("staging", into="main")).value, ConflictError)


def test_a_partition_that_was_replaced_must_have_got_no_rows_meanwhile(parts: Table) -> None:
    parts.overwrite_partitions(order_rows(20), branch="staging")
    parts.append(order_rows(7, region="us"))
    parts.refs.create_tag("before")
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [4, 5, 6, 7, 20]
    parts.refs.replace_branch("main", at="before")
    parts.append(order_rows(8))
    assert "replaced" in str(unchanged(parts, lambda: parts.refs.merge("staging", into="main")).value)


def test_deletes_of_a_whole_partition_s_files_are_refused_where_one_of_these_is_gone(lake: Lake) -> None:
    table = lake.create_table("db.wide", ORDERS, partition_by=["region"])
    table.append(order_rows(1, 2)).append(order_rows(3, 4)).append(order_rows(5, region="us"))
    table.refs.create_branch("staging")
    paths = sorted(p.file.file_path for p in table.scan("region = 'eu'").plan().files)
    add_deletes(table, position_deletes(table, {path: [0] for path in paths}), branch="staging")
    table.delete("region = 'us'")
    table.refs.create_tag("before")
    table.refs.merge("staging", into="main")
    assert rows(table) == [2, 4]
    table.refs.replace_branch("main", at="before")
    table.delete("id < 3")
    assert isinstance(unchanged(table, lambda: table.refs.merge("staging", into="main")).value, ConflictError)


def test_a_deletion_vector_replaces_the_one_that_the_file_had(lake: Lake) -> None:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.vectors", ORDERS, properties=properties)
    table.append(order_rows(1, 2, 3)).delete("id = 1")
    table.refs.create_branch("staging")
    table.delete("id = 2", branch="staging").append(order_rows(4))
    table.refs.merge("staging", into="main")
    assert rows(table) == [3, 4]
    assert line(table)[0].summary["removed-dvs"] == "1"


def test_merged_rows_get_ids_that_no_other_row_has(lake: Lake) -> None:
    table = lake.create_table("db.ids", ORDERS, properties={"format-version": "3"}).append(order_rows(1))
    table.refs.create_branch("staging")
    table.append(order_rows(2, 3), branch="staging").append(order_rows(4))
    table.refs.merge("staging", into="main")
    found = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert {r["id"]: r["_row_id"] for r in found} == {1: 0, 4: 3, 2: 4, 3: 5}


def test_a_snapshot_that_only_rewrote_manifests_is_left_out_and_an_empty_one_is_kept(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").rewrite_manifests(branch="staging")
    parts.append_files([], branch="staging", summary={"checkpoint": "9"})
    parts.append(order_rows(8))
    assert len(parts.refs.merge("staging", into="main").replayed) == 2
    assert line(parts)[0].summary["checkpoint"] == "9"
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_rebase_moves_the_branch_and_keeps_its_retention(parts: Table) -> None:
    parts.refs.set_retention("staging", min_snapshots_to_keep=7)
    parts.append(order_rows(7), branch="staging").delete("id = 1", branch="staging")
    parts.append(order_rows(8))
    main = parts.refs["main"]
    parts.refs.rebase("staging", onto="main")
    assert rows(parts, "staging") == [2, 3, 4, 5, 6, 7, 8]
    assert parts.refs["main"] == main
    assert [s.snapshot_id for s in line(parts, "staging")][2] == main.snapshot_id
    assert parts.refs["staging"].min_snapshots_to_keep == 7
    assert parts.refs.rebase("staging", onto="main").replayed == {}
    assert parts.refs.merge("staging", into="main").replayed == {}
    assert parts.refs["main"].snapshot_id == parts.refs["staging"].snapshot_id


def test_the_result_is_printed_in_a_line(parts: Table) -> None:
    before = parts.append(order_rows(7), branch="staging").append(order_rows(8)).refs["main"].snapshot_id
    merged = parts.refs.merge("staging", into="main")
    now = parts.refs["main"].snapshot_id
    assert str(merged) == f"moved from snapshot {before} to snapshot {now}, 1 snapshot replayed"
    assert str(parts.refs.merge("staging", into="main")) == f"unchanged at snapshot {now}"
    assert str(parts.refs.fast_forward("new", to="main")) == f"created at snapshot {now}"


def test_rebase_of_a_branch_without_snapshots_of_its_own_moves_it_forward(parts: Table) -> None:
    parts.append(order_rows(7))
    parts.refs.rebase("staging", onto="main")
    assert parts.refs["staging"].snapshot_id == parts.refs["main"].snapshot_id


def test_rebase_over_a_change_of_the_same_file_is_refused(parts: Table) -> None:
    parts.delete("id = 1", branch="staging")
    parts.delete("id = 2")
    caught = unchanged(parts, lambda: parts.refs.rebase("staging", onto="main"))
    assert str(caught.value).startswith("cannot rebase `staging` onto `main`: snapshot ")
    assert "on no ref" not in str(caught.value)
    assert "(delete on `staging`, " in str(caught.value)
    assert "(delete on `main`, " in str(caught.value)
    assert caught.value.hints[0] == '`refs.diff("main", "staging")` shows how they differ'


def test_a_merged_branch_is_known_after_it_was_rebased(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    parts.refs.create_branch("copy", at="staging")
    parts.refs.rebase("staging", onto="main")
    parts.append(order_rows(9))
    parts.refs.merge("staging", into="main")
    summary = line(parts)[0].summary
    assert summary["origin-snapshot-id"] == str(parts.refs["copy"].snapshot_id)
    assert parts.refs.merge("copy", into="main").replayed == {}
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_files_that_were_added_on_both_sides_by_hand_are_refused(parts: Table) -> None:
    files = written_files(parts, order_rows(7))
    parts.append_files(files, branch="staging").append_files(files)
    assert "too" in str(unchanged(parts, lambda: parts.refs.merge("staging", into="main")).value)


def test_branches_that_began_apart_on_an_empty_table_are_merged(lake: Lake) -> None:
    table = lake.create_table("db.apart", ORDERS)
    table.refs.create_branch("dev")
    table.append(order_rows(1), branch="dev")
    table.refs.merge("dev", into="main")
    assert rows(table) == [1]
    other = lake.create_table("db.other", ORDERS)
    other.refs.create_branch("dev")
    other.append(order_rows(1)).append(order_rows(2), branch="dev")
    other.refs.merge("dev", into="main")
    assert rows(other) == [1, 2]


def expire(table: Table, *snapshots: int) -> None:
    table.expire(older_than=dt.datetime(2000, 1, 1, tzinfo=dt.UTC), snapshot_ids=snapshots)


def test_expired_history_is_refused_unless_squashed(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").delete("id = 2", branch="staging")
    parts.append(order_rows(8), branch="staging").delete("id = 7", branch="staging")
    parts.append(order_rows(9))
    _, third, second, _, *_ = line(parts, "staging")
    expire(parts, second.snapshot_id, third.snapshot_id)
    caught = unchanged(parts, lambda: parts.refs.merge("staging", into="main"))
    assert isinstance(caught.value, RefusedError)
    assert str(third.snapshot_id) in str(caught.value)
    assert "squash" in caught.value.hints[0]
    result = parts.refs.merge("staging", into="main", squash=True)
    assert rows(parts) == [1, 3, 4, 5, 6, 8, 9]
    assert result.replayed == {parts.refs["staging"].snapshot_id: parts.refs["main"].snapshot_id}
    check_nothing_is_missing(parts, merged=True)
    assert parts.refs.merge("staging", into="main", squash=True).replayed == {}
    assert parts.refs.merge("staging", into="main").replayed == {}
    parts.append(order_rows(10), branch="staging")
    assert len(parts.refs.merge("staging", into="main").replayed) == 1
    assert rows(parts) == [1, 3, 4, 5, 6, 8, 9, 10]


def test_a_squash_is_refused_where_it_is_not_certain_where_the_branches_parted(lake: Lake) -> None:
    table = lake.create_table("db.compacted", ORDERS).append(order_rows(1)).append(order_rows(2, 3))
    table.refs.create_branch("staging")
    files = [p.file for p in table.scan("id > 1", ref="staging").plan().files]
    table.rewrite_files(add=written_files(table, order_rows(2, 3)), remove=files, branch="staging")
    table.append(order_rows(4), branch="staging").rewrite_manifests(branch="staging")
    table.append(order_rows(5))
    middle = line(table, "staging")[1:3]
    assert [s.operation for s in middle] == ["append", "replace"]
    expire(table, *(s.snapshot_id for s in middle))
    # nothing on `staging` tells whether it ever had the file of 2 and 3 that is still on `main`
    caught = unchanged(table, lambda: table.refs.merge("staging", into="main", squash=True))
    assert isinstance(caught.value, RefusedError)


def test_a_squashed_branch_is_one_snapshot(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8), branch="staging").append(order_rows(9))
    before = len(line(parts))
    parts.refs.merge("staging", into="main", squash=True)
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len(line(parts)) == before + 1
    assert line(parts)[0].operation == "append"
    assert parts.refs.merge("staging", into="main").replayed == {}
    parts.refs.merge("main", into="staging")
    assert rows(parts, "staging") == rows(parts)


def test_a_squash_checks_what_the_other_side_changed(parts: Table) -> None:
    parts.delete("id = 2", branch="staging").append(order_rows(7), branch="staging")
    parts.delete("id = 1")
    assert isinstance(
        unchanged(parts, lambda: parts.refs.merge("staging", into="main", squash=True)).value, ConflictError
    )


def test_a_squash_is_refused_where_equality_deletes_would_no_longer_delete(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging")
    add_deletes(parts, equality_deletes(parts, pa.table({"id": [7]}), [1], ("eu",)), branch="staging")
    parts.append(order_rows(8, region="us"))
    caught = unchanged(parts, lambda: parts.refs.merge("staging", into="main", squash=True))
    assert isinstance(caught.value, RefusedError)
    parts.refs.merge("staging", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 8]


def test_history_that_has_expired_on_the_other_side_is_refused_even_squashed(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8)).append(order_rows(9))
    expire(parts, line(parts)[1].snapshot_id)
    for squash in (False, True):
        caught = unchanged(parts, lambda squash=squash: parts.refs.merge("staging", into="main", squash=squash))
        assert isinstance(caught.value, RefusedError)


def test_a_lost_race_checks_again_and_writes_the_manifests_once(lake: Lake, parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8), branch="staging").append(order_rows(9))
    before = files_on_disk(parts, "*-m*.avro")
    others = overtaken(lake, lambda: lake.load_table("db.parts").append(order_rows(10, region="us")))
    others.load_table("db.parts").refs.merge("staging", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert len(files_on_disk(parts, "*-m*.avro") - before) == 3
    check_nothing_is_missing(parts, merged=True)


def test_a_conflict_that_comes_meanwhile_is_found(lake: Lake, parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").delete("id = 2", branch="staging").append(order_rows(9))
    before = files_on_disk(parts, "*.avro")
    others = overtaken(lake, lambda: lake.load_table("db.parts").delete("id = 1"))
    with pytest.raises(ConflictError, match="cannot be replayed"):
        others.load_table("db.parts").refs.merge("staging", into="main")
    assert rows(parts) == [2, 3, 4, 5, 6, 9]
    assert len(files_on_disk(parts, "*.avro") - before) == 2


def test_a_branch_that_grows_meanwhile_is_merged_as_it_is_then(lake: Lake, parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    others = overtaken(lake, lambda: lake.load_table("db.parts").append(order_rows(9), branch="staging"))
    others.load_table("db.parts").refs.merge("staging", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_rebase_that_loses_against_a_write_to_the_branch_takes_it_along(lake: Lake, parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    others = overtaken(lake, lambda: lake.load_table("db.parts").append(order_rows(9), branch="staging"))
    others.load_table("db.parts").refs.rebase("staging", onto="main")
    assert rows(parts, "staging") == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_merge_in_a_transaction_sees_what_the_transaction_did(lake: Lake, parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").delete("id = 2", branch="staging")
    with parts.transaction() as inside:
        inside.append(order_rows(8))
        inside.refs.merge("staging", into="main")
        inside.append(order_rows(9))
    assert rows(parts) == [1, 3, 4, 5, 6, 7, 8, 9]
    parts.delete("id = 3", branch="staging")
    with parts.transaction() as inside:
        inside.delete("id = 1")
        with pytest.raises(ConflictError):
            inside.refs.merge("staging", into="main")
        inside.append(order_rows(1))
    assert rows(parts) == [1, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("squash", [False, True])
def test_a_transaction_that_loses_a_race_merges_what_it_has_written_anew(
    lake: Lake, parts: Table, squash: bool
) -> None:
    parts.append(order_rows(50, region="us"))
    others = overtaken(lake, lambda: lake.load_table("db.parts").append(order_rows(9), branch="staging"))
    with others.load_table("db.parts").transaction() as inside:
        inside.overwrite(order_rows(7), branch="staging", isolation="snapshot")
        inside.refs.merge("staging", into="main", squash=squash)
        inside.delete("id = 50")
    assert rows(parts, "staging") == [7]
    assert rows(parts) == [7]
    check_nothing_is_missing(parts, merged=True)


def test_a_transaction_that_loses_a_race_rebases_what_it_has_written_anew(lake: Lake, parts: Table) -> None:
    parts.append(order_rows(50, region="us"))
    others = overtaken(lake, lambda: lake.load_table("db.parts").append(order_rows(9), branch="staging"))
    with others.load_table("db.parts").transaction() as inside:
        inside.overwrite(order_rows(7), branch="staging", isolation="snapshot")
        inside.refs.rebase("staging", onto="main")
    assert rows(parts, "staging") == [7, 50]
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 50]


def test_names_that_cannot_be_merged(parts: Table) -> None:
    parts.refs.create_tag("v1")
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    cases: list[tuple[Callable[[], object], type[BerglineError]]] = [
        (lambda: parts.refs.merge("main", into="main"), InvalidInputError),
        (lambda: parts.refs.merge("nope", into="main"), NotFoundError),
        (lambda: parts.refs.merge("staging", into="nope"), NotFoundError),
        (lambda: parts.refs.merge("staging", into="v1"), RefusedError),
        (lambda: parts.refs.rebase("v1", onto="staging"), RefusedError),
        (lambda: parts.refs.rebase("staging", onto="nope"), NotFoundError),
        (lambda: parts.refs.merge(7, into="main"), InvalidInputError),  # type: ignore[arg-type]
    ]
    for call, kind in cases:
        assert isinstance(unchanged(parts, call).value, kind)


def test_a_tag_can_be_merged_into_a_branch(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging").append(order_rows(8))
    parts.refs.create_tag("v1", at="staging")
    parts.refs.merge("v1", into="main")
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_deletion_vectors_on_the_branch_s_own_files_come_along(lake: Lake) -> None:
    table = lake.create_table("db.own", ORDERS, properties={"format-version": "3"}).append(order_rows(1))
    table.refs.create_branch("staging")
    table.append(order_rows(2, 3), branch="staging")
    path = next(p.file.file_path for p in table.scan("id = 2", ref="staging").plan().files)
    table.refs.create_tag("aside", at="main")
    table.refs.replace_branch("main", at="staging")
    vectors = deletion_vectors(table, {path: [0]})
    table.refs.replace_branch("main", at="aside")
    add_deletes(table, *vectors, branch="staging")
    table.append(order_rows(4))
    table.refs.merge("staging", into="main")
    assert rows(table) == [1, 3, 4]


def test_parts_of_what_was_squashed_are_known_by_the_first_snapshots_that_did_them(parts: Table) -> None:
    parts.refs.create_branch("other")
    parts.append(order_rows(7), branch="staging").append(order_rows(8), branch="staging")
    parts.append(order_rows(9), branch="other")
    parts.refs.merge("staging", into="other")
    parts.compact(branch="staging")
    parts.append(order_rows(10))
    parts.refs.merge("staging", into="main", squash=True)
    assert len(parts.refs.merge("other", into="main").replayed) == 1
    assert rows(parts) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_squashed_snapshot_of_which_the_other_branch_has_a_part_is_refused(parts: Table) -> None:
    parts.append(order_rows(7), branch="staging")
    parts.append(order_rows(9), branch="other")
    parts.refs.merge("staging", into="other")
    parts.append(order_rows(8), branch="staging")
    parts.compact(branch="staging")
    parts.append(order_rows(10))
    squashed = parts.refs.merge("staging", into="main", squash=True).head
    for squash in (False, True):
        caught = unchanged(parts, lambda squash=squash: parts.refs.merge("main", into="other", squash=squash))
        assert isinstance(caught.value, RefusedError)
        assert f"snapshot {squashed} was squashed from several, of which `other` already has some, but not all" in str(
            caught.value
        )
