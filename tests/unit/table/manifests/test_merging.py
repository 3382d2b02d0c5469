"""Manifests of earlier commits are joined; nothing that they say of their files changes."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.format.manifest.manifest import EntryStatus, ManifestContent, ManifestFile
from bergline.format.partition.transforms import UnknownTransform
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.operation import CommitStamp
from bergline.table.manifests import merging
from bergline.table.manifests.merging import plan_merges
from bergline.table.operations.append import Append
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.competing_writers import once, rival_lake
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

MERGE_AT_3 = {"commit.manifest.min-count-to-merge": "3"}


def create(lake: Lake, version: str = "2", **properties: str) -> Table:
    return lake.create_table("db.t", ORDERS, properties=MERGE_AT_3 | {"format-version": version} | properties)


def manifests(table: Table) -> list[ManifestFile]:
    assert table.current_snapshot is not None
    return load_manifest_list(table.io, table.current_snapshot)


def live(table: Table) -> dict[str, tuple[Any, ...]]:
    """What is said of every live file."""
    return {
        e.data_file.file_path: (e.snapshot_id, e.sequence_number, e.file_sequence_number, e.data_file)
        for m in manifests(table)
        for e in load_entries(table.io, m, table.metadata)
        if e.is_live
    }


@pytest.mark.parametrize("known", ["all", "some", "none"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_append_joins_older_manifests_and_keeps_what_they_say(
    lake: Lake, version: str, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_FEW_READ", 2 if known == "some" else 0)
    table = create(lake, version)
    for number in range(3):
        table.append(order_rows(number))
        if known == "none" or (known == "some" and number == 1):
            forget_files()
    before = live(table)
    table.append(order_rows(3))
    new, joined = manifests(table)
    assert (new.added_files_count, new.existing_files_count) == (1, 0)
    assert (joined.added_files_count, joined.existing_files_count) == (0, 3)
    assert joined.sequence_number == new.sequence_number
    assert {p: f for p, f in live(table).items() if p in before} == before
    assert [e.sequence_number for e in load_entries(table.io, joined, table.metadata)] == (
        [0, 0, 0] if version == "1" else [3, 2, 1]
    )
    assert table.current_snapshot is not None
    expected = {"manifests-created": "2", "manifests-kept": "0", "manifests-replaced": "3"}
    assert expected.items() <= table.current_snapshot.summary.items()
    assert ids(table.scan().to_arrow()) == [0, 1, 2, 3]


@pytest.mark.parametrize("how", ["fast", "property"])
def test_nothing_is_joined_or_read_where_it_is_not_wanted(
    lake: Lake, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(lake) if how == "fast" else create(lake, **{"commit.manifest-merge.enabled": "false"})
    monkeypatch.setattr("bergline.scan.manifests.load_columns", None)
    for number in range(8):
        table.append(order_rows(number), fast=how == "fast")
    assert len(manifests(table)) == 8


def test_only_manifests_of_one_kind_and_spec_are_joined(lake: Lake) -> None:
    table = create(lake)
    for number in range(2):
        table.append(order_rows(number, number + 10))
        add_deletes(table, equality_deletes(table, pa.table({"id": [number]}), [1]))
    assert len(manifests(table)) == 4
    table.append(order_rows(5))
    assert len(manifests(table)) == 5
    table.append(order_rows(6))
    found = [(m.content, m.existing_files_count) for m in manifests(table)]
    data, deletes = ManifestContent.DATA, ManifestContent.DELETES
    assert found == [(data, 0), (data, 3), (deletes, 0), (deletes, 0)]
    assert ids(table.scan().to_arrow()) == [5, 6, 10, 11]


def test_dead_manifests_are_left_out(lake: Lake) -> None:
    table = create(lake).append(order_rows(1)).overwrite(order_rows(2))
    assert [m.deleted_files_count for m in manifests(table)] == [0, 1]
    table.append(order_rows(3), fast=True)
    assert len(manifests(table)) == 3
    table.append(order_rows(4))
    assert [m.deleted_files_count for m in manifests(table)] == [0, 0, 0]


def test_overwrites_join_what_they_do_not_touch(lake: Lake) -> None:
    table = create(lake)
    for number in range(4):
        table.append(order_rows(number), fast=True)
    before = live(table)
    table.overwrite_files([], removed=[p.file for p in table.scan("id = 2").plan().files])
    assert [(m.existing_files_count, m.deleted_files_count) for m in manifests(table)] == [(3, 0), (0, 1)]
    statuses = [e.status for m in manifests(table) for e in load_entries(table.io, m, table.metadata)]
    assert statuses == [EntryStatus.EXISTING] * 3 + [EntryStatus.DELETED]
    assert live(table).items() <= before.items()


def test_next_attempt_uses_the_joined_manifest_beside_what_came_in_between(lake: Lake) -> None:
    table = create(lake)
    for number in range(3):
        table.append(order_rows(number))
    append = Append(table.io, written_files(table, order_rows(9)))
    append.attempt(table.metadata, CommitStamp(0, 0))
    before = set(table.io.list(table.location))
    lake.load_table("db.t").append(order_rows(4), fast=True)
    new = {f for f in set(table.io.list(table.location)) - before if f.endswith(".avro")}
    table.commit(append)
    assert [m.existing_files_count for m in manifests(table)] == [0, 0, 3]
    assert {f for f in table.io.list(table.location) if f.endswith(".avro")} >= new
    assert sum("-m" in f for f in set(table.io.list(table.location)) - before) == 1, "that of the other append"
    assert ids(table.scan().to_arrow()) == [0, 1, 2, 4, 9]


def test_joined_manifest_whose_sources_are_gone_is_not_used_and_is_deleted(lake: Lake) -> None:
    table = create(lake)
    for number in range(3):
        table.append(order_rows(number))
    append = Append(table.io, written_files(table, order_rows(9)))
    append.attempt(table.metadata, CommitStamp(0, 0))
    lake.load_table("db.t").append(order_rows(4))
    table.commit(append)
    assert [m.existing_files_count for m in manifests(table)] == [0, 0, 3]
    assert ids(table.scan().to_arrow()) == [0, 1, 2, 4, 9]
    named = {m.manifest_path for s in table.metadata.snapshots for m in load_manifest_list(table.io, s)}
    assert {f for f in table.io.list(table.location) if "-m" in f} == named


def test_manifests_joined_before_an_upgrade_are_not_used_after_it(lake: Lake) -> None:
    table = create(lake, "1")
    for number in range(3):
        table.append(order_rows(number))
    append = Append(table.io, written_files(table, order_rows(9)))
    append.attempt(table.metadata, CommitStamp(0, 0))
    table.set_properties({"format-version": "2"}).commit(append)
    assert [m.existing_files_count for m in manifests(table)] == [0, 0, 0, 0]
    assert ids(table.scan().to_arrow()) == [0, 1, 2, 9]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_transaction_that_joins_its_own_manifests_may_be_worked_out_again(lake: Lake, version: str) -> None:
    table = create(lake, version).append(order_rows(50))
    loser, _ = rival_lake(lake, before_swap=once(lambda: table.append(order_rows(90, 91))))
    with loser.load_table("db.t").transaction() as mine:
        for number in range(6):
            mine.append(order_rows(number))
        mine.delete("id = 50")
    assert ids(table.refresh().scan().to_arrow()) == [0, 1, 2, 3, 4, 5, 90, 91]
    numbers = {planned.sequence_number for planned in table.scan().plan().files}
    assert len(numbers) == (1 if version == "1" else 7)
    if version == "3":
        row_ids = table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
        assert len(set(row_ids)) == 8
    named = {m.manifest_path for s in table.metadata.snapshots for m in load_manifest_list(table.io, s)}
    assert {f for f in table.io.list(table.location) if "-m" in f.rpartition("/")[2]} == named


Plan = Callable[[Iterable[int]], list[list[int]]]


@pytest.fixture
def plan(orders: Table) -> Plan:
    orders.set_properties({"commit.manifest.target-size-bytes": "1000", "commit.manifest.min-count-to-merge": "4"})

    def planned(lengths: Iterable[int]) -> list[list[int]]:
        listed = [ManifestFile(str(n), x, 0, ManifestContent.DATA, 1, sequence_number=1) for n, x in enumerate(lengths)]
        groups = plan_merges(orders.metadata, listed)
        assert all(group == tuple(sorted(group, key=listed.index)) for group in groups)
        return [[m.manifest_length for m in group] for group in groups]

    return planned


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([], []),
        ([10, 10, 10], []),
        ([10, 11, 12, 13], [[10, 11, 12, 13]]),
        ([10, 11, 12, 500], []),
        ([10, 11, 12, 13, 500], [[10, 11, 12, 13]]),
        ([10, 11, 12, 13, 100], [[10, 11, 12, 13]]),
        ([30, 31, 32, 33, 100], [[30, 31, 32, 33, 100]]),
        ([10, 400, 401, 300], [[401, 300]]),
        ([400, 450, 450], [[450, 450]]),
        ([10, 400, 600, 400, 10], []),
        ([1, 2, 3, 4, 999, 1, 2, 3, 4], [[1, 2, 3, 4], [1, 2, 3, 4]]),
    ],
)
def test_neighbours_are_joined_from_the_oldest_on(plan: Plan, lengths: list[int], groups: list[list[int]]) -> None:
    assert plan(lengths) == groups


def test_partitions_that_cannot_be_written_are_not_joined(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=MERGE_AT_3)
    for number in range(3):
        table.append(order_rows(number))
    metadata, listed = table.metadata, manifests(table)
    assert len(plan_merges(metadata, listed)) == 1
    (field,) = metadata.spec.fields
    odd = msgspec.structs.replace(field, transform=UnknownTransform("foo[2]"))
    spec = msgspec.structs.replace(metadata.spec, fields=(odd,))
    assert plan_merges(msgspec.structs.replace(metadata, partition_specs=(spec,)), listed) == []


def test_one_commit_joins_only_so_much(plan: Plan) -> None:
    assert len(plan([400] * 100)) == 8


def test_each_entry_is_written_again_only_a_few_times_however_many_commits_there_are(plan: Plan) -> None:
    lengths: list[int] = []
    rewritten = 0
    for _ in range(2000):
        for group in plan(lengths):
            joined = 5 + sum(length - 5 for length in group)  # a header of 5 bytes, and a byte for each entry
            place = next(n for n in range(len(lengths)) if lengths[n : n + len(group)] == group)
            lengths[place : place + len(group)] = [joined]
            rewritten += joined
        lengths.insert(0, 6)
        assert len(lengths) < 20
    assert rewritten < 2000 * 12
