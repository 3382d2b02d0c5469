"""Who holds on to which file."""

import msgspec
import pytest

from bergline import Lake, Table
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
from bergline.io.locations import normalized
from bergline.table.expiry.reachable import FileKind, held_files, reachable_files, still_unneeded, unneeded_files
from support.fixtures.add_deletes import add_deletes, deletion_vectors
from support.fixtures.rows import ORDERS, order_rows

METADATA_KINDS = {FileKind.MANIFEST, FileKind.MANIFEST_LIST, FileKind.STATISTICS}


def with_statistics(orders: Table) -> Table:
    """A statistics file of each kind for the head."""
    head = orders.metadata.current_snapshot_id or 0
    for number, file in enumerate(
        (
            StatisticsFile(head, f"{orders.location}/metadata/{head}.puffin", 3, 1, ()),
            PartitionStatisticsFile(head, f"{orders.location}/metadata/{head}.parquet", 4),
        )
    ):
        orders.io.create(file.statistics_path, b"abc" + b"d" * number)
        orders.set_statistics(file)
    return orders


def test_every_file_but_those_of_metadata_is_reachable(orders: Table) -> None:
    with_statistics(orders.append(order_rows(1)).append(order_rows(2), branch="dev").overwrite(order_rows(3)))
    found = {normalized(f.location): f for f in reachable_files(orders.io, orders.metadata)}
    there = {f for f in orders.io.list(orders.location) if not f.endswith(".metadata.json")}
    assert found.keys() == {normalized(f) for f in there}
    sizes = {location: len(orders.io.read(location)) for location in there}
    known = {f.location: f.size for f in found.values() if f.size is not None}
    assert known == {location: sizes[location] for location in known}
    assert {f.kind for f in found.values() if f.size is None} == {FileKind.MANIFEST_LIST}


def test_statistics_go_with_their_snapshot(orders: Table) -> None:
    with_statistics(orders.append(order_rows(1))).append(order_rows(2))
    first, last = orders.metadata.snapshots
    gone = unneeded_files(orders.io, orders.metadata, [first.snapshot_id])
    assert {f.location.rsplit(".", 1)[-1] for f in gone if f.kind is FileKind.STATISTICS} == {"puffin", "parquet"}
    later = unneeded_files(orders.io, orders.metadata, [last.snapshot_id])
    assert not [f for f in later if f.kind is FileKind.STATISTICS]


@pytest.mark.parametrize("contents", [True, False])
def test_statistics_that_hold_a_live_deletion_vector_too_stay(lake: Lake, contents: bool) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "3"}).append(order_rows(1, 2))
    (vector,) = deletion_vectors(table, {table.scan().plan().files[0].file.file_path: [0]})
    add_deletes(table, vector)
    first = table.metadata.snapshots[0].snapshot_id
    table.set_statistics(StatisticsFile(first, vector.file_path, vector.file_size_in_bytes, 10, ()))
    gone = unneeded_files(table.io, table.metadata, [first], contents=contents)
    assert [f.kind for f in gone] == [FileKind.MANIFEST_LIST]


def test_without_contents_no_manifest_is_read(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first = orders.metadata.snapshots[0].snapshot_id
    everything = unneeded_files(orders.io, orders.metadata, [first])
    assert [f.kind for f in everything] == [FileKind.DATA, FileKind.MANIFEST, FileKind.MANIFEST_LIST]
    metadata_only = unneeded_files(orders.io, orders.metadata, [first], contents=False)
    assert metadata_only == [f for f in everything if f.kind in METADATA_KINDS]


def test_files_are_held_by_all_whose_snapshots_need_them(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="a").append(order_rows(3), branch="b")
    by_id = {ref.snapshot_id: frozenset({name}) for name, ref in orders.metadata.refs.items()}

    def counts(most: int) -> dict[tuple[str, ...], int]:
        held = held_files(orders.io, orders.metadata, by_id.__getitem__, most=most)
        owners = [tuple(sorted(h.owners)) for h in held if h.file.kind is FileKind.DATA]
        return {who: owners.count(who) for who in owners}

    assert counts(0) == {}
    assert counts(1) == {("a",): 1, ("b",): 1}
    assert counts(3) == {("a",): 1, ("b",): 1, ("a", "b", "main"): 1}


def test_files_of_several_manifests_belong_to_the_owners_of_all(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    orders.rewrite_manifests()
    *_, before, after = orders.metadata.snapshots
    by_id = {before.snapshot_id: frozenset({"before"}), after.snapshot_id: frozenset({"after"})}
    held = held_files(orders.io, orders.metadata, lambda i: by_id.get(i, frozenset()), most=1)
    assert {(h.file.kind, *h.owners) for h in held} >= {(FileKind.MANIFEST, "before"), (FileKind.MANIFEST, "after")}
    assert not [h for h in held if h.file.kind is FileKind.DATA]


def test_what_is_named_again_is_not_unneeded(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    planned = orders.metadata
    files = unneeded_files(orders.io, planned, [planned.snapshots[0].snapshot_id])
    assert still_unneeded(orders.io, files, planned, planned) == files
    data = [p.file for p in orders.scan(snapshot_id=planned.snapshots[0].snapshot_id).plan().files]
    orders.append_files(data)
    left = still_unneeded(orders.io, files, planned, orders.metadata)
    assert [f.kind for f in left] == [FileKind.MANIFEST, FileKind.MANIFEST_LIST]


def test_another_spelling_is_the_same_file(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first, last = orders.metadata.snapshots
    spelt = msgspec.structs.replace(first, manifest_list=f"file:{first.manifest_list.removeprefix('file://')}")  # type: ignore[union-attr]
    again = msgspec.structs.replace(spelt, snapshot_id=7)
    metadata = msgspec.structs.replace(orders.metadata, snapshots=(first, last, again))
    assert unneeded_files(orders.io, metadata, [7]) == []
