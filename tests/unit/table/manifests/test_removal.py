"""What a commit removes, found in manifests."""

import pytest

from bergline import Lake, Table
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.format.manifest.manifest import DataFile
from bergline.scan.manifests import load_columns, load_manifest_list
from bergline.table.manifests.removal import (
    DeleteTargets,
    Everything,
    FileSelector,
    Removal,
    RemovedFiles,
    RemovedPartitions,
    live_rows,
    matches_wholly,
)
from support.fixtures.add_deletes import equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def parts(lake: Lake) -> Table:
    """One file each of `eu` and `us`, in manifests of their own."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def data_files(table: Table) -> dict[str, DataFile]:
    return {p.file.partition[0]: p.file for p in table.scan().plan().files}


def picked(table: Table, *removals: Removal) -> list[tuple[bool, int]]:
    """For each manifest, oldest first, whether it may list removed files, and how many it does."""
    assert table.current_snapshot is not None
    manifests = load_manifest_list(table.io, table.current_snapshot)[::-1]
    selector = FileSelector(removals, table.metadata)
    frames = zip(manifests, load_columns(table.io, manifests), strict=True)
    return [(selector.may_pick(m), len(selector.picks(live_rows(frame), m))) for m, frame in frames]


def test_removed_files_partitions_and_everything_are_found(parts: Table) -> None:
    eu = data_files(parts)["eu"]
    assert picked(parts, RemovedFiles((eu,))) == [(True, 1), (False, 0)]
    assert picked(parts, RemovedPartitions(((eu.spec_id, ("us",)),))) == [(False, 0), (True, 1)]
    assert picked(parts, RemovedPartitions(((eu.spec_id, (None,)),))) == [(False, 0), (False, 0)]
    assert picked(parts, Everything()) == [(True, 1), (True, 1)]
    assert picked(parts) == [(False, 0), (False, 0)]


def test_file_matches_wholly_only_if_all_rows_certainly_do(parts: Table) -> None:
    eu = data_files(parts)["eu"]

    def wholly(text: str) -> bool:
        bound = bind_filter(parse_predicate(text), parts.schema)
        return matches_wholly(bound.on(parts.schema), eu, parts.metadata)

    assert [wholly(t) for t in ("region = 'eu'", "id <= 2", "id = 1", "region = 'us'")] == [True, True, False, False]


def test_delete_files_have_their_targets_by_path_and_by_keys(parts: Table) -> None:
    files = data_files(parts)
    targets = DeleteTargets(list(files.values()), parts.metadata)
    by_position = position_deletes(parts, {files["us"].file_path: [0]})
    assert targets.of(by_position) == [files["us"]]
    by_key = equality_deletes(parts, order_rows(1).select(["id"]), [parts.schema.find("id").id], ("eu",))
    assert targets.of(by_key) == [files["eu"]]
