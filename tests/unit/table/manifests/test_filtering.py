"""Files removed from manifests: what is rewritten, what is left alone, which deletes go with the data."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestFile
from bergline.scan.manifest_cache import MANIFESTS
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.operation import CommitStamp
from bergline.table.manifests.filtering import Filtered, ManifestFilter
from bergline.table.manifests.removal import Everything, Removal, RemovedFiles, RemovedPartitions
from bergline.table.operations.overwrite import Overwrite
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

VERSIONS = ("1", "2", "3")


def create(lake: Lake, version: str = "2", partition_by: Sequence[str] = ()) -> Table:
    return lake.create_table("db.t", ORDERS, partition_by=partition_by, properties={"format-version": version})


def manifests(table: Table) -> list[ManifestFile]:
    assert table.current_snapshot is not None
    return load_manifest_list(table.io, table.current_snapshot)


def files(table: Table, row_filter: str | None = None) -> tuple[DataFile, ...]:
    return tuple(p.file for p in table.scan(row_filter).plan().files)


def statuses(table: Table) -> list[tuple[EntryStatus, int, int | None, int | None]]:
    """Status, first id in the file's bounds, number and row id of every entry."""
    return [
        (e.status, e.data_file.record_count, e.sequence_number, e.data_file.first_row_id)
        for m in manifests(table)
        for e in load_entries(table.io, m, table.metadata)
    ]


def remove(table: Table, *removals: Removal) -> Table:
    table.commit(Overwrite(table.io, [], removals))
    return table


def filtered(table: Table, *removals: Removal) -> Filtered:
    operation = Overwrite(table.io, [], removals)
    return ManifestFilter(table.io, operation, removals).apply(table.metadata, manifests(table))


@pytest.mark.parametrize("version", VERSIONS)
def test_removed_entries_are_tombstones_and_the_others_keep_numbers_and_row_ids(lake: Lake, version: str) -> None:
    table = create(lake, version)
    table.append_files(
        [
            *written_files(table, order_rows(1)),
            *written_files(table, order_rows(2, 3)),
            *written_files(table, order_rows(4)),
        ]
    )
    table.append(order_rows(5))
    before = {f.file_path: f.first_row_id for f in files(table)}
    remove(table, RemovedFiles(files(table, "id = 3")))
    numbers = {"1": (0, 0)}.get(version, (2, 1))
    rows = (4, 0, 1, 3) if version == "3" else (None,) * 4
    assert statuses(table) == [
        (EntryStatus.ADDED, 1, numbers[0], rows[0]),
        (EntryStatus.EXISTING, 1, numbers[1], rows[1]),
        (EntryStatus.DELETED, 2, numbers[1], rows[2]),
        (EntryStatus.EXISTING, 1, numbers[1], rows[3]),
    ]
    assert {f.file_path: f.first_row_id for f in files(table)}.items() <= before.items()
    remove(table, RemovedFiles(files(table, "id = 1")))
    assert [s for s, *_ in statuses(table)] == [EntryStatus.ADDED, EntryStatus.DELETED, EntryStatus.EXISTING]
    assert ids(table.scan().to_arrow()) == [4, 5]


def test_only_manifests_that_may_list_a_removed_file_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(lake, partition_by=["region"])
    for number, region in enumerate(("eu", "us", "jp", "eu")):
        table.append(order_rows(number, region=region))
    wanted = files(table, "id = 1")
    MANIFESTS.clear()
    read: list[str] = []
    original = table.io.read
    monkeypatch.setattr(table.io, "read", lambda location, *most: (read.append(location), original(location, *most))[1])
    for removal in (RemovedFiles(wanted), RemovedPartitions(((0, ("us",)),))):
        result = filtered(table, removal)
        assert [f.file_path for f in result.removed] == [f.file_path for f in wanted]
        assert result.replaced == 1
        assert [a == b for a, b in zip(result.manifests, manifests(table), strict=True)] == [True, True, False, True]
    assert {r for r in read if r in {m.manifest_path for m in manifests(table)}} == {manifests(table)[2].manifest_path}


def test_nothing_is_read_or_rewritten_for_a_partition_that_is_not_there(lake: Lake) -> None:
    table = create(lake, partition_by=["region"]).append(order_rows(1))
    result = filtered(table, RemovedPartitions(((0, (None,)), (0, ("jp",)), (0, ()), (7, ()))))
    assert result == Filtered(tuple(manifests(table)))


@pytest.mark.parametrize("partition", [("eu",), (None,), ("us",)])
def test_partitions_are_removed_with_their_deletes(lake: Lake, partition: tuple[str | None]) -> None:
    table = create(lake, partition_by=["region"])
    rows = {"eu": order_rows(1, 2), "us": order_rows(3, 4, region="us"), None: order_rows(5, 6)}
    rows[None] = rows[None].set_column(2, ORDERS.field("region"), pa.nulls(2, pa.string()))
    for part in rows.values():
        table.append(part)
    add_deletes(table, *(position_deletes(table, {f.file_path: [0]}) for f in files(table)))
    add_deletes(table, equality_deletes(table, pa.table({"id": [2]}), [1], partition=("eu",)))
    remove(table, RemovedPartitions(((0, partition),)))
    left = {"eu": [], "us": [4], None: [6]}
    del left[partition[0]]
    assert ids(table.scan().to_arrow()) == sorted(i for found in left.values() for i in found)
    live = [
        e.data_file.partition
        for m in manifests(table)
        if m.content is ManifestContent.DELETES
        for e in load_entries(table.io, m, table.metadata)
        if e.is_live
    ]
    assert partition not in live
    assert len(live) == (2 if partition == ("eu",) else 3)


def test_everything_leaves_tombstones_only(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2)).append(order_rows(3))
    add_deletes(table, equality_deletes(table, pa.table({"id": [1]}), [1]))
    remove(table, Everything())
    assert [s for s, *_ in statuses(table)] == [EntryStatus.DELETED] * 3
    assert table.current_snapshot is not None
    expected = {"total-data-files": "0", "total-delete-files": "0", "total-equality-deletes": "0", "total-records": "0"}
    assert expected.items() <= table.current_snapshot.summary.items()
    assert table.append(order_rows(9)).current_snapshot is not None
    assert len(manifests(remove(table, RemovedFiles(())))) == 1


def test_vectors_of_removed_data_files_go_and_others_in_the_same_file_stay(lake: Lake) -> None:
    table = create(lake, "3").append(order_rows(0)).append(order_rows(1, 2)).append(order_rows(3, 4))
    gone, stays = files(table, "id = 1") + files(table, "id = 3")
    add_deletes(table, *deletion_vectors(table, {gone.file_path: [0], stays.file_path: [1]}))
    remove(table, RemovedFiles((gone,)))
    assert ids(table.scan().to_arrow()) == [0, 3]
    (deletes,) = [m for m in manifests(table) if m.content is ManifestContent.DELETES]
    found = [(e.status, e.data_file.referenced_data_file) for e in load_entries(table.io, deletes, table.metadata)]
    assert found == [(EntryStatus.DELETED, gone.file_path), (EntryStatus.EXISTING, stays.file_path)]


def test_one_vector_of_several_in_a_file_is_removed(lake: Lake) -> None:
    table = create(lake, "3").append(order_rows(1, 2)).append(order_rows(3, 4))
    add_deletes(table, *deletion_vectors(table, {f.file_path: [0] for f in files(table)}))
    assert ids(table.scan().to_arrow()) == [2, 4]
    (planned,) = table.scan("id = 4").plan().files
    remove(table, RemovedFiles(planned.deletes, must_exist=True))
    assert ids(table.scan().to_arrow()) == [2, 3, 4]


def test_deletes_older_than_all_data_go_when_data_goes(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2))
    add_deletes(table, equality_deletes(table, pa.table({"id": [1]}), [1]))
    table.append(order_rows(3)).append(order_rows(4))
    result = filtered(table, RemovedFiles(files(table, "id = 4")))
    assert [f.content for f in result.removed] == [0], "order 2 is older than the deletes"
    remove(table, RemovedFiles(files(table, "id = 2")))
    assert [s for s, *_ in statuses(table)] == [EntryStatus.ADDED] * 2 + [EntryStatus.DELETED] * 2
    assert ids(table.scan().to_arrow()) == [3, 4]


def test_data_that_the_snapshot_adds_with_an_old_number_keeps_old_deletes(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2))
    add_deletes(table, equality_deletes(table, pa.table({"id": [1]}), [1]))
    table.append(order_rows(3)).append(order_rows(4))
    added = [m for m in manifests(table) if m.sequence_number == 1]
    operation = Overwrite(table.io, [], [])
    removals = [RemovedFiles(files(table, "id = 2"))]
    result = ManifestFilter(table.io, operation, removals).apply(table.metadata, manifests(table), added=added)
    assert len(result.removed) == 1


def test_position_deletes_of_one_removed_data_file_go_with_it(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2)).append(order_rows(3, 4))
    add_deletes(table, *(position_deletes(table, {f.file_path: [0]}) for f in files(table)))
    remove(table, RemovedFiles(files(table, "id = 4")))
    assert ids(table.scan().to_arrow()) == [2]
    assert table.metadata.snapshots[-1].summary["total-delete-files"] == "1"


def test_file_that_must_exist_and_does_not_is_a_conflict(lake: Lake) -> None:
    table = create(lake).append(order_rows(1)).append(order_rows(2))
    (first,) = files(table, "id = 1")
    remove(table, RemovedFiles((first,), must_exist=True))
    remove(table, RemovedFiles((first,)))
    with pytest.raises(ConflictError, match=r"expected a file to remove, found it removed already: .*parquet"):
        remove(table, RemovedFiles((first, *files(table)), must_exist=True))
    assert ids(table.refresh().scan().to_arrow()) == [2]


def test_next_attempt_uses_what_the_first_wrote(lake: Lake) -> None:
    table = create(lake).append_files([f for n in range(3) for f in create_rows(lake, n)])
    operation = Overwrite(table.io, [], [RemovedFiles(files(table, "id = 1"))])
    operation.attempt(table.metadata, CommitStamp(1, 0))
    before = set(table.io.list(table.location))
    table.append(order_rows(7))
    operation.attempt(table.metadata, CommitStamp(2, 0))
    new = [f for f in set(table.io.list(table.location)) - before if "-m" in f]
    assert len(new) == 1, "the manifest of the append"


def create_rows(lake: Lake, number: int) -> list[DataFile]:
    return written_files(lake.load_table("db.t"), order_rows(number))
