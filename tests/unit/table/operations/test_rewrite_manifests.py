"""Rewrite manifests: the same entries, with the same numbers and row ids, in manifests sorted by partition."""

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.format.manifest.manifest import DataFile, ManifestContent, ManifestFile
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.operations.append import Append
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.competing_writers import LosingTable
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

VERSIONS = ["1", "2", "3"]


def new_table(lake: Lake, version: str = "2", **properties: str) -> Table:
    return lake.create_table(
        "db.t", ORDERS, partition_by=["region"], properties={"format-version": version, **properties}
    )


def manifests(table: Table, branch: str = "main") -> list[ManifestFile]:
    snapshot = table.metadata.head(branch)
    assert snapshot is not None
    return load_manifest_list(table.io, snapshot)


def entries(table: Table) -> set[Any]:
    return {
        (e.data_file.file_path, e.snapshot_id, e.sequence_number, e.file_sequence_number, e.data_file.first_row_id)
        for e in live_entries(table.io, manifests(table), table.metadata)
    }


def filled(lake: Lake, version: str, **properties: str) -> Table:
    table = new_table(lake, version, **properties)
    for i in range(3):
        table.append(order_rows(i)).append(order_rows(10 + i, region="us"))
    return table


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_keep_their_numbers_and_row_ids_in_one_manifest(lake: Lake, version: str) -> None:
    table = filled(lake, version)
    before = entries(table)
    assert len(manifests(table)) == 6
    rows = table.scan(columns=["id", "_row_id"]).to_arrow().sort_by("id")
    table.rewrite_manifests()
    (manifest,) = manifests(table)
    assert entries(table) == before
    assert (manifest.added_files_count, manifest.existing_files_count) == (0, 6)
    assert table.scan(columns=["id", "_row_id"]).to_arrow().sort_by("id") == rows
    assert (None in rows.column("_row_id").to_pylist()) == (version != "3")
    assert table.current_snapshot is not None
    expected = {
        "operation": "replace",
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "6",
        "entries-processed": "6",
        "total-data-files": "6",
        "total-records": "6",
        "changed-partition-count": "0",
    }
    assert expected.items() <= table.current_snapshot.summary.items()


def test_manifests_of_the_target_size_hold_few_partitions_each(lake: Lake) -> None:
    table = new_table(lake, **{"commit.manifest.target-size-bytes": "1"})
    for half in range(2):
        names = [f"file:///files/{half}-{i}.parquet" for i in range(1000)]
        files = [DataFile(n, "PARQUET", ("us" if i % 2 else "eu",), 1, 9) for i, n in enumerate(names)]
        table.commit(Append(table.io, files, discard_on_failure=True))
    assert all(_is_mixed(m) for m in manifests(table))
    table.rewrite_manifests()
    assert sum(m.existing_files_count or 0 for m in manifests(table)) == 2000
    assert len(manifests(table)) > 2
    assert sum(_is_mixed(m) for m in manifests(table)) <= 1


def _is_mixed(manifest: ManifestFile) -> bool:
    assert manifest.partitions is not None
    return manifest.partitions[0].lower_bound != manifest.partitions[0].upper_bound


def test_row_ids_that_come_after_stay_apart(lake: Lake) -> None:
    table = filled(lake, "3").rewrite_manifests().append(order_rows(99))
    rows = table.scan(columns=["_row_id"]).to_arrow().column("_row_id").to_pylist()
    assert len(set(rows)) == 7


@pytest.mark.parametrize("version", ["2", "3"])
def test_delete_manifests_are_joined_among_themselves(lake: Lake, version: str) -> None:
    table = filled(lake, version)
    for planned in list(table.scan("id < 2").plan().files):
        wanted = {planned.file.file_path: [0]}
        deletes = deletion_vectors(table, wanted) if version == "3" else (position_deletes(table, wanted),)
        add_deletes(table, *deletes)
    before = entries(table)
    table.rewrite_manifests()
    assert sorted(m.content for m in manifests(table)) == [ManifestContent.DATA, ManifestContent.DELETES]
    assert entries(table) == before
    assert ids(table.scan().to_arrow()) == [2, 10, 11, 12]


def test_one_manifest_of_each_kind_is_left_alone(lake: Lake) -> None:
    table = new_table(lake)
    empty = table.metadata_location
    assert table.rewrite_manifests().metadata_location == empty
    table.append(order_rows(1))
    before = table.metadata_location
    assert table.rewrite_manifests().metadata_location == before


def test_dead_manifests_go(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).overwrite(order_rows(2))
    assert len(manifests(table)) == 2
    table.rewrite_manifests()
    assert [m.existing_files_count for m in manifests(table)] == [1]


def test_only_the_given_manifests_are_rewritten_on_the_given_branch(lake: Lake) -> None:
    table = filled(lake, "2")
    table.append(order_rows(50), branch="dev")
    first, second, *rest = manifests(table, "dev")
    table.rewrite_manifests([first.manifest_path, second.manifest_path], branch="dev")
    assert manifests(table, "dev")[1:] == rest
    assert len(manifests(table)) == 6
    assert ids(table.scan(ref="dev").to_arrow()) == [0, 1, 2, 10, 11, 12, 50]
    table.refs.create_tag("v1")
    with pytest.raises(RefusedError, match="tags do not move"):
        table.rewrite_manifests(branch="v1")
    with pytest.raises(InvalidInputError, match="expected a list of manifests"):
        table.rewrite_manifests("one")


@pytest.mark.parametrize("version", VERSIONS)
def test_concurrent_appends_are_kept_and_each_lost_attempt_writes_one_list(lake: Lake, version: str) -> None:
    table = filled(lake, version)
    appends = [lambda i=i: lake.load_table("db.t").append(order_rows(i)) for i in (50, 51, 52)]
    losing = LosingTable(lake, "db.t", *appends)
    before = entries(table)
    losing.table.rewrite_manifests()
    assert losing.lists == [1, 1, 1, 1]
    assert losing.manifests == [1, 0, 0, 0]
    assert len(manifests(losing.table)) == 4
    assert before < entries(losing.table)
    assert ids(losing.table.scan().to_arrow()) == [0, 1, 2, 10, 11, 12, 50, 51, 52]


def test_what_a_rival_replaced_is_worked_out_again(lake: Lake) -> None:
    filled(lake, "3")

    def remove_us() -> None:
        rival = lake.load_table("db.t")
        rival.overwrite_files([], removed=[p.file for p in rival.scan("region = 'us'").plan().files])

    losing = LosingTable(lake, "db.t", remove_us)
    losing.table.rewrite_manifests()
    assert losing.manifests == [1, 1]
    assert ids(losing.table.scan().to_arrow()) == [0, 1, 2]
    assert len(manifests(losing.table)) == 1


def test_row_ids_given_between_two_attempts_are_kept(lake: Lake) -> None:
    filled(lake, "2")

    def upgrade() -> None:
        lake.load_table("db.t").set_properties({"format-version": "3"}).append(order_rows(50))

    losing = LosingTable(lake, "db.t", upgrade)
    losing.table.rewrite_manifests()
    rival = lake.load_table("db.t")
    given = rival.scan(snapshot_id=rival.metadata.snapshots[-2].snapshot_id, columns=["id", "_row_id"]).to_arrow()
    now = rival.scan(columns=["id", "_row_id"]).to_arrow()
    assert None not in now.column("_row_id").to_pylist()
    assert now.sort_by("id") == given.sort_by("id")


def test_partitions_of_null_and_nan_are_sorted_too(lake: Lake) -> None:
    schema = pa.schema([("p", pa.float64()), ("id", pa.int64())])
    table = lake.create_table("db.nan", schema, partition_by=["p"])
    for i, p in enumerate([math.nan, None, 1.0, -1.0]):
        table.append(pa.table({"p": pa.array([p], pa.float64()), "id": [i]}))
    table.rewrite_manifests()
    found = [e.data_file.partition for e in live_entries(table.io, manifests(table), table.metadata)]
    assert [str(p) for p in found] == ["(None,)", "(-1.0,)", "(1.0,)", "(nan,)"]


def test_names_that_are_no_manifests_of_the_branch_are_refused(lake: Lake) -> None:
    table = filled(lake, "2")
    before = table.metadata_location
    with pytest.raises(
        InvalidInputError, match="expected the paths of manifests of branch `main`, found 'x' and 1 more"
    ):
        table.rewrite_manifests([manifests(table)[0].manifest_path, "x", "y"])
    assert table.refresh().metadata_location == before


MAINTENANCE: dict[str, Callable[[Table], object]] = {
    "compact": lambda t: t.compact(branch="stagin"),
    "rewrite_manifests": lambda t: t.rewrite_manifests(branch="stagin"),
    "rewrite_files": lambda t: t.rewrite_files(
        add=written_files(t, order_rows(0)), remove=[p.file for p in t.scan("id = 0").plan().files], branch="stagin"
    ),
}


@pytest.mark.parametrize("call", MAINTENANCE.values(), ids=MAINTENANCE)
def test_maintenance_of_a_branch_that_does_not_exist_names_the_near_ones(
    lake: Lake, call: Callable[[Table], object]
) -> None:
    table = filled(lake, "2")
    table.refs.create_branch("staging")
    with pytest.raises(NotFoundError, match="no branch `stagin`") as raised:
        call(table)
    assert raised.value.near[0] == "staging"
    assert set(table.refresh().metadata.refs) == {"main", "staging"}
