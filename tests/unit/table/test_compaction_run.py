"""Runs of compaction beside other writers: what is finished stays, what was changed is planned again or left."""

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import Committed, Outcome, TableChange
from bergline.datafiles.write.delete_writer import write_equality_deletes
from bergline.datafiles.write.write_spec import delete_write_spec
from bergline.errors import ConflictError, NotFoundError
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import RewritePlan
from bergline.table.engine.row_engine import FileChanges
from bergline.table.operations.compaction import CompactionResult
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.competing_writers import files, overtaken
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

REGIONS = ("eu", "us", "as")
PARTIAL = {"partial_progress_enabled": True, "partial_progress_max_commits": 3}


class WatchedEngine(ArrowRowEngine):
    """Does something before it rewrites for the n-th time, and notes the data files of each group."""

    def __init__(self, *before: Callable[[], object]) -> None:
        self._before = list(before)
        self.groups: list[list[int]] = []

    def rewrite_groups(self, io: FileIO, plan: RewritePlan) -> list[FileChanges]:
        self.groups.append([len(group.files) for group in plan.groups])
        if self._before:
            self._before.pop(0)()
        return super().rewrite_groups(io, plan)


def new_table(lake: Lake, version: str = "2") -> Table:
    """Two files in each of three partitions."""
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"format-version": version})
    for i, region in enumerate(REGIONS):
        table.append(order_rows(10 * i + 1, 10 * i + 2, region=region)).append(order_rows(10 * i + 5, region=region))
    return table


def planned(table: Table, order: int) -> PlannedFile:
    (found,) = table.scan(f"id = {order}").plan().files
    return found


def delete_order(lake: Lake, order: int, position: int = 0) -> Callable[[], object]:
    """Another writer deletes a row by its position."""

    def delete() -> None:
        rival = lake.load_table("db.t")
        path = {planned(rival, order).file.file_path: [position]}
        is_v3 = rival.metadata.format_version > 2
        add_deletes(rival, *(deletion_vectors(rival, path) if is_v3 else (position_deletes(rival, path),)))

    return delete


def retried(change: Callable[[], object]) -> None:
    """Try again where a rewrite of the same files came first."""
    for _ in range(50):
        with contextlib.suppress(ConflictError):
            change()
            return
    raise AssertionError("lost too often")


def operations(table: Table) -> list[str]:
    return [str(s.operation) for s in table.metadata.snapshots]


def found(table: Table) -> list[int]:
    return ids(table.refresh().scan().to_arrow())


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_group_that_others_changed_is_planned_again_and_the_rest_is_committed(lake: Lake, version: str) -> None:
    new_table(lake, version)
    engine = WatchedEngine()
    table = overtaken(lake, delete_order(lake, 12, 1)).load_table("db.t")
    result = table.compact(engine=engine)
    assert engine.groups == [[2, 2, 2], [2]]  # the rows of the other two partitions were written once
    assert (result.rewritten_data_files, result.added_data_files, result.failed_data_files) == (6, 3, 0)
    assert operations(table)[-2:] == ["replace", "replace"]
    assert found(table) == [1, 2, 5, 11, 15, 21, 22, 25]
    assert len(list(table.scan().plan().files)) == 3


def test_a_race_that_is_lost_for_the_commit_alone_rewrites_nothing_again(lake: Lake) -> None:
    new_table(lake).set_properties({"commit.retry.num-retries": "0"})
    appends = [lambda i=i: lake.load_table("db.t").append(order_rows(100 + i)) for i in range(3)]
    engine = WatchedEngine()
    table = overtaken(lake, *appends).load_table("db.t")
    result = table.compact(engine=engine)
    assert engine.groups == [[2, 2, 2]]
    assert (result.rewritten_data_files, result.added_data_files) == (6, 3)
    assert found(table) == [1, 2, 5, 11, 12, 15, 21, 22, 25, 100, 101, 102]


class SeenLater:
    """A catalog that answers with the table as it is after others have appended and expired everything before that."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake.catalog, name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        outcome = self._lake.catalog.commit(changes)
        assert isinstance(outcome, Committed)
        rival = self._lake.load_table("db.t").append(order_rows(99))
        rival.expire(older_than=dt.datetime(2099, 1, 1, tzinfo=dt.UTC), retain_last=1)
        return Committed((self._lake.catalog.load_table(rival.name),))


def test_compaction_that_was_expired_before_it_is_seen_is_done(lake: Lake) -> None:
    """As after a lost response of a server, when others have been at work since."""
    new_table(lake)
    table = Lake(SeenLater(lake), "lake").load_table("db.t")  # type: ignore[arg-type]
    result = table.compact()
    assert (result.rewritten_data_files, result.added_data_files) == (6, 3)
    assert found(table) == [1, 2, 5, 11, 12, 15, 21, 22, 25, 99]


def test_files_of_dropped_groups_are_deleted(lake: Lake) -> None:
    table = new_table(lake)
    before = files(table, "*.parquet")
    overtaken(lake, delete_order(lake, 12, 1)).load_table("db.t").compact()
    referenced = {p.file.file_path.rpartition("/")[2] for p in table.refresh().scan().plan().files}
    new = {name for name in files(table, "*.parquet") - before if "deletes" not in name}
    assert referenced <= new
    assert len(new - referenced) == 1  # the delete file of the other writer


def test_files_that_were_removed_meanwhile_are_left_out(lake: Lake) -> None:
    new_table(lake)
    engine = WatchedEngine(lambda: lake.load_table("db.t").delete("region = 'us'"))
    table = lake.load_table("db.t")
    result = table.compact(engine=engine)
    assert (result.rewritten_data_files, result.added_data_files) == (4, 2)
    assert found(table) == [1, 2, 5, 21, 22, 25]


def test_partial_progress_commits_in_batches_and_appends_do_not_disturb(lake: Lake) -> None:
    new_table(lake)
    appends = [lambda i=i: lake.load_table("db.t").append(order_rows(100 + i)) for i in range(3)]
    engine = WatchedEngine(*appends)
    table = lake.load_table("db.t")
    result = table.compact(options=PARTIAL, engine=engine)
    assert engine.groups == [[2], [2], [2]]
    assert (result.rewritten_data_files, result.added_data_files) == (6, 3)
    assert operations(table)[6:] == ["append", "replace"] * 3
    assert found(table) == [1, 2, 5, 11, 12, 15, 21, 22, 25, 100, 101, 102]


def test_with_partial_progress_what_is_finished_stays_when_a_group_fails(lake: Lake) -> None:
    table = new_table(lake)
    broken = planned(table, 15).file.file_path
    table.io.delete([broken])
    result = table.compact(options=PARTIAL | {"partial_progress_max_commits": 1})
    assert (result.rewritten_data_files, result.added_data_files, result.failed_data_files) == (4, 2, 2)
    assert operations(table)[-1] == "replace"
    assert ids(table.scan("region <> 'us'").to_arrow()) == [1, 2, 5, 21, 22, 25]


def test_too_many_failures_are_an_error_and_what_is_finished_stays(lake: Lake) -> None:
    table = new_table(lake)
    table.io.delete([planned(table, order).file.file_path for order in (15, 5)])
    options = PARTIAL | {"partial_progress_max_failed_commits": 1}
    with pytest.raises(ConflictError, match=r"up to 1 failed commits, found 2: 2 data files of .* were rewritten"):
        table.compact(options=options)
    assert operations(table.refresh())[-1] == "replace"
    assert len(list(table.scan("region = 'as'").plan().files)) == 1


def test_without_partial_progress_nothing_stays_when_a_group_fails(lake: Lake) -> None:
    table = new_table(lake)
    table.io.delete([planned(table, 15).file.file_path])
    before, location = files(table, "*.parquet"), table.metadata_location
    with pytest.raises(NotFoundError):
        table.compact()
    assert files(table, "*.parquet") == before
    assert table.refresh().metadata_location == location


def test_with_partial_progress_a_group_that_always_loses_is_counted(lake: Lake) -> None:
    table = new_table(lake)
    table.append(order_rows(*range(200, 240), region="us"))
    left = list(range(40))

    def delete_another() -> None:
        rival = lake.load_table("db.t")
        rival_file = planned(rival, 239).file.file_path
        add_deletes(rival, position_deletes(rival, {rival_file: [left.pop(0)]}))

    losing = overtaken(lake, *[delete_another] * 30).load_table("db.t")
    result = losing.compact("region = 'us'", options=PARTIAL)
    assert (result.rewritten_data_files, result.failed_data_files) == (0, 3)
    assert len(found(table)) == 9 + 40 - (40 - len(left))


def test_new_sequence_number_makes_equality_deletes_conflict(lake: Lake) -> None:
    new_table(lake)

    def by_equality() -> None:
        rival = lake.load_table("db.t")
        add_deletes(rival, equality_deletes(rival, pa.table({"id": [12]}), [1], ("us",)))

    engine = WatchedEngine()
    table = overtaken(lake, by_equality).load_table("db.t")
    table.compact(options={"use_starting_sequence_number": False}, engine=engine)
    assert engine.groups == [[2, 2, 2], [2]]
    assert found(table) == [1, 2, 5, 11, 15, 21, 22, 25]
    numbers = {p.sequence_number for p in table.scan().plan().files}
    assert min(numbers) > 6


def test_rows_move_to_the_current_spec_and_are_still_deleted_by_others(lake: Lake) -> None:
    table = new_table(lake)
    with table.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("bucket(2, id)")

    def by_equality() -> None:
        rival = lake.load_table("db.t")
        old = msgspec.structs.replace(delete_write_spec(rival.metadata), spec=rival.metadata.specs_by_id[0])
        path, rows = f"{rival.location}/data/old.parquet", pa.table({"id": [12]})
        add_deletes(rival, write_equality_deletes(rival.io, old, path, rows, [1], partition=("us",)))

    moving = overtaken(lake, by_equality).load_table("db.t")
    result = moving.rewrite_data_files(options={"rewrite_all": True})
    assert result.rewritten_data_files == 6
    assert found(moving) == [1, 2, 5, 11, 15, 21, 22, 25]
    assert {p.file.spec_id for p in moving.scan().plan().files} == {moving.spec.spec_id}
    assert len(list(moving.scan().plan().files)) == 2


def test_files_stay_or_go_to_a_spec_that_is_named(lake: Lake) -> None:
    table = new_table(lake)
    with table.update_spec() as spec:
        spec.remove_field("region")
    table.append(order_rows(50)).append(order_rows(51, region="us"))
    assert table.compact().added_data_files == 4
    assert sorted(p.file.spec_id for p in table.scan().plan().files) == [0, 0, 0, 1]
    table.rewrite_data_files(options={"output_spec_id": 0, "rewrite_all": True})
    assert {(p.file.spec_id, p.file.partition) for p in table.scan().plan().files} == {(0, (r,)) for r in REGIONS}
    assert len(found(table)) == 11


def test_icebergs_rules_are_those_of_rewrite_data_files(lake: Lake) -> None:
    table = new_table(lake)
    assert table.rewrite_data_files() == CompactionResult()  # two files in each partition are not enough
    delete_order(lake, 12, 1)()
    done = table.refresh().rewrite_data_files(options={"delete-file-threshold": "1"})
    assert (done.rewritten_data_files, done.removed_delete_files) == (2, 1)
    add_deletes(table, equality_deletes(table, pa.table({"id": [99]}), [1], ("us",)))
    everything = {"rewrite-all": "true"}
    done = table.rewrite_data_files(options=everything | {"use-starting-sequence-number": "false"})
    assert (done.rewritten_data_files, done.added_data_files, done.removed_delete_files) == (5, 3, 0)
    done = table.rewrite_data_files(options=everything | {"remove-dangling-deletes": "true"})
    assert (done.rewritten_data_files, done.added_data_files, done.removed_delete_files) == (3, 3, 1)


def test_most_groups_at_a_time_reach_the_engine(lake: Lake) -> None:
    table, seen = new_table(lake), []

    class Noting(ArrowRowEngine):
        def rewrite_groups(self, io: FileIO, plan: RewritePlan) -> list[FileChanges]:
            seen.append(plan.groups_at_a_time)
            return super().rewrite_groups(io, plan)

    table.compact(options={"max_concurrent_file_group_rewrites": 2}, engine=Noting())
    table.append(order_rows(1)).compact(engine=Noting())
    assert seen == [2, None]


def test_appends_deletes_and_compaction_at_the_same_time_lose_nothing(lake: Lake) -> None:
    table = new_table(lake, "3")
    errors: list[BaseException] = []
    stop = threading.Event()

    def guarded(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        return threading.Thread(target=run)

    def append() -> None:
        for i in range(12):
            lake.load_table("db.t").append(order_rows(1000 + i, region=REGIONS[i % 3]))

    def delete() -> None:
        for order in (1, 12, 1003, 25):
            rival = lake.load_table("db.t")
            while not ids(rival.scan(f"id = {order}").to_arrow()) and not stop.is_set():
                rival.refresh()
            retried(lambda order=order: lake.load_table("db.t").delete(f"id = {order}"))

    def compact() -> None:
        while not stop.is_set():
            lake.load_table("db.t").compact(options=PARTIAL)

    workers: Sequence[threading.Thread] = [guarded(append), guarded(delete)]
    compaction = guarded(compact)
    for thread in (*workers, compaction):
        thread.start()
    for thread in workers:
        thread.join(120)
    stop.set()
    compaction.join(120)
    assert errors == []
    expected = {*range(1000, 1012), 1, 2, 5, 11, 12, 15, 21, 22, 25} - {1, 12, 1003, 25}
    assert found(table) == sorted(expected)
    rows: Any = table.scan(columns=["_row_id"]).to_arrow().column("_row_id").to_pylist()
    assert len(set(rows)) == len(rows)
