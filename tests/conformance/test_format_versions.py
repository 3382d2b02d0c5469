"""Tables of every format version, written by bergline, the official runtime and PyIceberg in turn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from bergline.scan.manifests import load_manifest_list
from support.fixtures.damaged_tables import accept_metadata
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.java.java_manifests import JAVA, read_table
from support.servers.peers import OfficialRuntime

Official = Callable[[str], list[tuple[Any, ...]]]
official_only = pytest.mark.official
ROW_IDS = ["id", "_row_id", "_last_updated_sequence_number"]


def create(lake: Lake, version: int, name: str = "db.t", partition_by: tuple[str, ...] = ("region",)) -> Table:
    return lake.create_table(name, ORDERS, partition_by=partition_by, properties={"format-version": str(version)})


def write_history(table: Table) -> None:
    """Appends, a branch, replaced partitions, an overwrite of the branch: entries of every status."""
    table.append(order_rows(1, 2)).append(order_rows(3, region="us")).append(order_rows(4))
    table.append(order_rows(5, region="us"), branch="dev")
    table.overwrite_files(
        written_files(table, order_rows(6, 7)), removed=[p.file for p in table.scan("id = 4").plan().files]
    )
    table.replace_partitions(written_files(table, order_rows(8, region="us")))
    table.overwrite(order_rows(9), branch="dev").append(order_rows(10), branch="dev")


HISTORY = {"main": [1, 2, 6, 7, 8], "dev": [9, 10]}


@official_only
@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_official_reads_and_writes_next_to_us(
    official: Official, official_runtime: OfficialRuntime, lake: Lake, version: int
) -> None:
    table = create(lake, version)
    write_history(table)
    assert table.metadata.format_version == version
    for ref, expected in HISTORY.items():
        assert sorted(official(f"SELECT id FROM db.t VERSION AS OF '{ref}'")) == [(i,) for i in expected]
        assert ids(table.scan(ref=ref).to_arrow()) == expected
    official("INSERT INTO db.t VALUES (11, 1.0, 'eu'), (12, 1.0, 'us')")
    official("INSERT INTO db.t.branch_dev VALUES (13, 1.0, 'eu')")
    official("DELETE FROM db.t WHERE region = 'us'")
    table.refresh().append(order_rows(14))
    table.overwrite_files([], removed=[p.file for p in table.scan().plan().files if p.file.record_count == 2])
    for ref, expected in {"main": [11, 14], "dev": [9, 10, 13]}.items():
        assert sorted(official(f"SELECT id FROM db.t VERSION AS OF '{ref}'")) == [(i,) for i in expected]
        assert ids(table.scan(ref=ref).to_arrow()) == expected
    theirs = official_runtime.python(JAVA + "result = read_table('db.t')")
    assert read_table(table) == theirs


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_every_version(pyiceberg: Any, lake: Lake, version: int) -> None:
    write_history(create(lake, version))
    theirs = pyiceberg.load_table("db.t")
    assert theirs.format_version == version
    for ref, expected in HISTORY.items():
        snapshot_id = theirs.metadata.refs[ref].snapshot_id
        assert ids(theirs.scan(snapshot_id=snapshot_id).to_arrow()) == expected
        assert ids(theirs.scan("region = 'eu'", snapshot_id=snapshot_id).to_arrow()) == [i for i in expected if i != 8]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_writes_next_to_us(pyiceberg: Any, lake: Lake, version: int) -> None:
    table = create(lake, version)
    write_history(table)
    theirs = pyiceberg.load_table("db.t")
    theirs.append(order_rows(11).cast(theirs.schema().as_arrow()))
    theirs.delete("region = 'us'")
    table.refresh().append(order_rows(12))
    theirs.refresh()
    assert ids(table.scan().to_arrow()) == ids(theirs.scan().to_arrow()) == [1, 2, 6, 7, 11, 12]


@official_only
def test_old_snapshots_that_name_their_manifests_themselves_are_carried_on(
    official: Official, tmp_path: Path, lake: Lake
) -> None:
    """As the first v1 tables were, before there were manifest lists."""
    table = create(lake, 1).append(order_rows(1)).append(order_rows(2, region="us"))
    location = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(location.read_text())
    for snapshot, written in zip(table.metadata.snapshots, document["snapshots"], strict=True):
        del written["manifest-list"]
        written["manifests"] = [m.manifest_path for m in load_manifest_list(table.io, snapshot)]
    location.write_text(json.dumps(document))
    accept_metadata(lake, table.metadata_location)
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as again:
        table = again.load_table("db.t")
        assert ids(table.scan().to_arrow()) == [1, 2]
        table.append(order_rows(3))
        assert sorted(official("SELECT id FROM db.t")) == [(1,), (2,), (3,)]
        for version, number in ((2, 12), (3, 13)):
            table.set_properties({"format-version": str(version)}).append(order_rows(number))
            table.replace_partitions(written_files(table, order_rows(number + 10, region="us")))
        assert ids(table.scan().to_arrow()) == [1, 3, 12, 13, 23]
        assert row_ids(table) == official_row_ids(official)


def row_ids(table: Table, **version: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in table.scan(columns=ROW_IDS, **version).to_arrow().to_pylist())


def official_row_ids(official: Official, name: str = "db.t", ref: str = "main") -> list[tuple[Any, ...]]:
    return sorted(official(f"SELECT {', '.join(ROW_IDS)} FROM {name} VERSION AS OF '{ref}'"))


@official_only
def test_row_ids_are_the_same_for_both(official: Official, lake: Lake) -> None:
    table = create(lake, 3)
    write_history(table)
    for ref in HISTORY:
        assert row_ids(table, ref=ref) == official_row_ids(official, ref=ref)
    before = {row[0]: row[1:] for row in row_ids(table)}
    official("INSERT INTO db.t VALUES (11, 1.0, 'eu'), (12, 1.0, 'us')")
    official("CALL system.rewrite_manifests('db.t')")
    table.refresh().append(order_rows(13)).delete("region = 'us'")
    found = row_ids(table)
    assert found == official_row_ids(official)
    assert {row[0]: row[1:] for row in found if row[0] in before} == {i: before[i] for i in (1, 2, 6, 7)}
    assert len({row[1] for row in found}) == len(found)


@official_only
def test_row_ids_are_assigned_as_java_assigns_them(official: Official, lake: Lake) -> None:
    ours, theirs = create(lake, 3, "db.ours"), create(lake, 3, "db.theirs")
    for number, region in enumerate(["eu", "us", "eu"]):
        rows = order_rows(*range(number * 10, number * 10 + number + 1), region=region)
        ours.append(rows)
        values = ", ".join(f"({i}, {i * 10.0}, '{region}')" for i in rows.column("id").to_pylist())
        official(f"INSERT INTO db.theirs SELECT /*+ COALESCE(1) */ * FROM VALUES {values} AS t(id, amount, region)")
    ours.append(order_rows(40), branch="dev")
    official("ALTER TABLE db.theirs CREATE BRANCH dev")
    official("INSERT INTO db.theirs.branch_dev VALUES (40, 400.0, 'eu')")
    ours.replace_partitions(written_files(ours, order_rows(50)))
    official("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    official("INSERT OVERWRITE db.theirs VALUES (50, 500.0, 'eu')")
    ours.delete("region = 'us'")
    official("DELETE FROM db.theirs WHERE region = 'us'")
    theirs.refresh()
    lineage = [(s.first_row_id, s.added_rows, s.sequence_number) for s in ours.metadata.snapshots]
    assert lineage == [(s.first_row_id, s.added_rows, s.sequence_number) for s in theirs.metadata.snapshots]
    assert ours.metadata.next_row_id == theirs.metadata.next_row_id
    for ref in ("main", "dev"):
        assert row_ids(ours, ref=ref) == row_ids(theirs, ref=ref) == official_row_ids(official, "db.ours", ref)


@official_only
@pytest.mark.parametrize("upgraded_by", ["us", "java"])
def test_rows_of_an_upgraded_table_gain_ids(
    official: Official, official_runtime: OfficialRuntime, lake: Lake, upgraded_by: str
) -> None:
    table = create(lake, 1)
    for version in (2, 3):
        table.append(order_rows(version * 10, version * 10 + 1)).append(order_rows(version * 10 + 2, region="us"))
        official(f"INSERT INTO db.t VALUES ({version * 10 + 3}, 1.0, 'eu')")
        if upgraded_by == "us":
            table.refresh().set_properties({"format-version": str(version)})
        else:
            official(f"ALTER TABLE db.t SET TBLPROPERTIES ('format-version' = '{version}')")
            table.refresh()
        assert table.metadata.format_version == version
    assert {row[1] for row in row_ids(table)} == {row[1] for row in official_row_ids(official)} == {None}
    removed = table.scan("id = 20").plan().files[0].file
    table.overwrite_files(written_files(table, order_rows(40)), removed=[removed])
    found = row_ids(table)
    assert found == official_row_ids(official)
    assert len({row[1] for row in found}) == len(found) == 7
    official("INSERT INTO db.t VALUES (41, 1.0, 'us')")
    table.refresh().append(order_rows(42), branch="dev")
    assert row_ids(table) == official_row_ids(official)
    assert row_ids(table, ref="dev") == official_row_ids(official, ref="dev")
    assert read_table(table) == official_runtime.python(JAVA + "result = read_table('db.t')")


@official_only
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_java_changes_keep_their_ids(
    official: Official, official_runtime: OfficialRuntime, lake: Lake, mode: str
) -> None:
    table = create(lake, 3)
    table.set_properties({f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")})
    table.append(order_rows(1, 2, 3, 4)).append(order_rows(5, 6, region="us"))
    official("DELETE FROM db.t WHERE id IN (2, 6)")
    official("UPDATE db.t SET amount = -1.0 WHERE id = 3")
    table.refresh().append(order_rows(7))
    official("MERGE INTO db.t USING (SELECT 4L AS id) s ON db.t.id = s.id WHEN MATCHED THEN UPDATE SET amount = -2.0")
    official("DELETE FROM db.t WHERE id = 1")
    table.refresh()
    found = row_ids(table)
    assert found == official_row_ids(official)
    assert [row[:2] for row in found] == [(3, 2), (4, 3), (5, 4), (7, found[-1][1])]
    rows = sorted(tuple(r.values()) for r in table.scan().to_arrow().to_pylist())
    assert rows == sorted(official("SELECT * FROM db.t"))
    assert read_table(table) == official_runtime.python(JAVA + "result = read_table('db.t')")
    if mode == "merge-on-read":
        assert {d.file_format for f in table.scan().plan().files for d in f.deletes} == {"PUFFIN"}
