"""Whether a snapshot replays the files of the one that it names."""

from collections.abc import Callable

import msgspec
import pytest

from bergline import Lake, Table
from bergline.catalog.protection.ref_moves import MoveKind, RefMove, find_ref_moves
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.scan.manifests import keep_manifest_list, load_manifest_list
from bergline.server.commits.replayed_files import replays_same_files
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def merged(orders: Table) -> tuple[TableMetadata, TableMetadata]:
    """A table before and after `dev`, of two snapshots, was merged into a `main` that had moved on."""
    orders.append(order_rows(1)).refs.create_branch("dev")
    orders.append(order_rows(2), branch="dev").delete("id = 1", branch="dev").append(order_rows(3))
    base = orders.metadata
    orders.refs.merge("dev", into="main")
    return base, orders.metadata


def main_move(base: TableMetadata, result: TableMetadata) -> RefMove:
    (move,) = (move for move in find_ref_moves(base, result) if move.ref == "main")
    assert move.published
    return move


def test_merge_replays_each_snapshot(orders: Table, merged: tuple[TableMetadata, TableMetadata]) -> None:
    base, result = merged
    move = main_move(base, result)
    assert [source for _, source in move.replays] == [s.snapshot_id for s in base.snapshots[1:3]]
    assert replays_same_files(orders.io, base, result, move)


def test_snapshot_with_files_of_its_own_replays_nothing(
    orders: Table, merged: tuple[TableMetadata, TableMetadata]
) -> None:
    base, result = merged
    move = main_move(base, result)
    (first, source), (last, _) = move.replays
    assert not replays_same_files(orders.io, base, result, msgspec.structs.replace(move, replays=((last, source),)))
    assert replays_same_files(orders.io, base, result, msgspec.structs.replace(move, replays=((first, source),)))


def test_snapshot_that_cannot_be_read_replays_nothing(
    orders: Table, merged: tuple[TableMetadata, TableMetadata]
) -> None:
    base, result = merged
    snapshots = tuple(
        s if s in base.snapshots else msgspec.structs.replace(s, manifest_list=f"{s.manifest_list}.gone")
        for s in result.snapshots
    )
    result = msgspec.structs.replace(result, snapshots=snapshots)
    assert not replays_same_files(orders.io, base, result, main_move(base, result))


@pytest.mark.parametrize(
    ("forge", "is_replay"),
    [
        (lambda side: side.overwrite(order_rows(2), "id = 1", branch="side"), False),
        (lambda side: side.delete("id = 1", branch="side"), False),
        (lambda side: side.delete("id = 3", branch="side"), False),
        (lambda side: side.append(order_rows(2), branch="side"), False),
        (lambda side: side.refs.merge("dev", into="side"), True),
    ],
)
def test_part_of_what_a_source_did_replays_nothing(
    orders: Table, forge: Callable[[Table], object], is_replay: bool
) -> None:
    orders.append(order_rows(1)).append(order_rows(3)).refs.create_branch("dev")
    orders.append(order_rows(4))
    orders.refs.create_branch("side")
    orders.overwrite(order_rows(2), "id = 1", branch="dev")
    source = orders.refs["dev"].snapshot_id
    forge(orders)
    metadata = orders.metadata
    before, side = metadata.ref("main"), metadata.ref("side")
    move = RefMove("main", MoveKind.FORWARD, before, side, replays=((side.snapshot_id, source),))
    assert replays_same_files(orders.io, metadata, metadata, move) is is_replay


def relisted(
    orders: Table, result: TableMetadata, change: Callable[[ManifestFile, Snapshot], ManifestFile]
) -> TableMetadata:
    """The result with another manifest list of its newest snapshot."""
    head = result.snapshots[-1]
    forged = msgspec.structs.replace(head, manifest_list=f"{head.manifest_list}.forged.avro")
    listed = load_manifest_list(orders.io, head)
    keep_manifest_list(orders.io, str(forged.manifest_list), [change(m, head) for m in listed])
    return msgspec.structs.replace(result, snapshots=(*result.snapshots[:-1], forged))


def as_it_is(manifest: ManifestFile, _head: Snapshot) -> ManifestFile:
    return manifest


def hidden(manifest: ManifestFile, head: Snapshot) -> ManifestFile:
    """Counts of zero, for manifests that were there before."""
    if manifest.added_snapshot_id == head.snapshot_id:
        return manifest
    return msgspec.structs.replace(manifest, added_files_count=0, existing_files_count=0)


def older(manifest: ManifestFile, head: Snapshot) -> ManifestFile:
    """An old number for new files, so that deletes that are there apply to them."""
    return (
        msgspec.structs.replace(manifest, sequence_number=1)
        if manifest.sequence_number > 1 and (manifest.added_snapshot_id == head.snapshot_id)
        else manifest
    )


@pytest.mark.parametrize(("change", "is_replay"), [(as_it_is, True), (hidden, False), (older, False)])
def test_manifests_are_listed_as_they_are(
    orders: Table, change: Callable[[ManifestFile, Snapshot], ManifestFile], is_replay: bool
) -> None:
    orders.append(order_rows(1)).append(order_rows(3)).refs.create_branch("dev")
    orders.append(order_rows(2), branch="dev").append(order_rows(4))
    base = orders.metadata
    orders.refs.merge("dev", into="main")
    result = relisted(orders, orders.metadata, change)
    assert replays_same_files(orders.io, base, result, main_move(base, result)) is is_replay


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("squash", [False, True])
def test_merges_of_all_kinds_of_changes_replay(lake: Lake, version: int, squash: bool) -> None:
    properties = {
        "format-version": str(version),
        "write.delete.mode": "merge-on-read" if version > 1 else "copy-on-write",
    }
    table = lake.create_table("db.kinds", ORDERS, properties=properties)
    table.append(order_rows(1, 2, 3)).refs.create_branch("dev")
    table.append(order_rows(4, 5)).append(order_rows(6, 7), branch="dev").delete("id = 2", branch="dev")
    table.delete("id = 6", branch="dev").overwrite(order_rows(8), "id = 7", branch="dev")
    for round_ in range(2):
        base = table.metadata
        table.refs.merge("dev", into="main", squash=squash)
        move = main_move(base, table.metadata)
        assert move.replays
        assert replays_same_files(table.io, base, table.metadata, move)
        table.append(order_rows(10 + round_), branch="dev").append(order_rows(20 + round_))


def test_staged_snapshot_whose_base_has_expired_replays(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3), wap_id="w")
    orders.append(order_rows(4)).append(order_rows(5))
    base = orders.metadata
    orders.refs.cherry_pick(base.snapshots[2].snapshot_id)
    without = [
        msgspec.structs.replace(m, snapshots=(*m.snapshots[2:3], *m.snapshots[3:])) for m in (base, orders.metadata)
    ]
    move = main_move(*without)
    assert len(move.replays) == 1
    assert replays_same_files(orders.io, *without, move)
    other = msgspec.structs.replace(move, replays=((base.snapshots[-1].snapshot_id, move.replays[0][1]),))
    assert not replays_same_files(orders.io, *without, other)
