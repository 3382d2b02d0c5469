"""Whether a snapshot replays the files of the one that it names."""

import msgspec
import pytest
from rows import order_rows

from bergline import Table
from bergline.catalog.protection.ref_moves import RefMove, find_ref_moves
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.commits.replayed_files import replays_same_files


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
