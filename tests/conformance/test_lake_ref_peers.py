"""Engines as they are on `lake@staging`: what they write is there and not on `main`, until it is published."""

import datetime as dt
import time
from collections.abc import Callable, Iterator

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.table import Table as PeerTable
from pyiceberg.types import StringType

import bergline
from bergline import Lake
from bergline.errors import RefusedError
from support.models.table_invariants import check_nothing_is_missing, pointer_line
from support.servers.bergline_server import BerglineServer
from support.servers.peers import OfficialError, OfficialRuntime, duckdb_connection

COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])
MAIN_ROWS = [1, 2, 3]


@pytest.fixture(autouse=True)
def _no_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars would warn that it has no planner of its own."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    with BerglineServer(tmp_path_factory.mktemp("lake-refs")) as server:
        yield server


@pytest.fixture
def lake(own_server: BerglineServer, request: pytest.FixtureRequest) -> Iterator[Lake]:
    """The lake on `main`, with an empty namespace of the test's own."""
    with bergline.connect(own_server.uri) as opened:
        opened.create_namespace(namespace(request))
        yield opened


@pytest.fixture
def name(lake: Lake, request: pytest.FixtureRequest) -> str:
    """A table of three rows."""
    made = f"{namespace(request)}.orders"
    lake.create_table(made, COLUMNS).append(rows("main", *MAIN_ROWS))
    return made


@pytest.fixture
def branch(lake: Lake, name: str) -> str:
    """A branch of the test's own tables, with a name that must be encoded in addresses."""
    made = f"50%/é_{name.partition('.')[0]}"
    lake.branches.create(made, tables=[f"{name}*"])
    lake.branch(made, [name])
    return made


def namespace(request: pytest.FixtureRequest) -> str:
    return str(request.function.__name__)[-40:]


def rows(who: str, *ids: int) -> pa.Table:
    return pa.table({"id": ids, "who": [who] * len(ids)}, schema=COLUMNS)


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def duck_at(server: BerglineServer, ref: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb_connection()
    line = server.connection_examples["DuckDB"]
    connection.execute(line.replace("ATTACH 'lake' AS lake ", f"ATTACH 'lake@{ref}' AS ice "))
    return connection


def peer_at(server: BerglineServer, ref: str) -> Catalog:
    return load_catalog(ref, type="rest", uri=server.uri, warehouse=f"lake@{ref}")


def check_published(server: BerglineServer, lake: Lake, name: str, branch: str, there: list[int]) -> None:
    """What is at the branch is not on `main`; published, it is, in the same files.

    A second table, `…_new`, was created there with the same ids.
    """
    new = f"{name}_new"
    assert ids(lake.load_table(name).scan().to_arrow()) == MAIN_ROWS
    assert lake.list_tables(name.partition(".")[0]) == [name]
    with bergline.connect(server.uri, warehouse=f"lake@{branch}") as at_branch:
        assert at_branch.list_tables(name.partition(".")[0]) == [name, new]
        seen = {t: at_branch.load_table(t) for t in (name, new)}
        assert [ids(table.scan().to_arrow()) for table in seen.values()] == [there, there]
        assert ids(seen[name].scan(ref="lake_main").to_arrow()) == MAIN_ROWS
        files = {t: {planned.file.file_path for planned in table.scan().plan().files} for t, table in seen.items()}
    lake.branches.publish(branch)
    assert lake.list_tables(name.partition(".")[0]) == [name, new]
    for published, of_branch in files.items():
        table = lake.load_table(published)
        assert ids(table.scan().to_arrow()) == there
        assert {planned.file.file_path for planned in table.scan().plan().files} == of_branch
        check_nothing_is_missing(table)
        pointer_line(table)


def test_duckdb(own_server: BerglineServer, lake: Lake, name: str, branch: str) -> None:
    with duck_at(own_server, branch) as duck, duck_at(own_server, branch) as other:
        duck.execute(f"INSERT INTO ice.{name} VALUES (4, 'duck'), (5, 'duck')")
        duck.execute(f"DELETE FROM ice.{name} WHERE id = 1")
        duck.execute(f"UPDATE ice.{name} SET who = 'changed' WHERE id = 2")
        duck.execute(f"BEGIN; INSERT INTO ice.{name} VALUES (6, 'duck'); COMMIT")
        for reader in (duck, other):
            found = reader.sql(f"SELECT id, who FROM ice.{name} ORDER BY id").fetchall()
            assert found == [(2, "changed"), (3, "main"), (4, "duck"), (5, "duck"), (6, "duck")]
        duck.execute(f"CREATE TABLE ice.{name}_new AS SELECT id FROM ice.{name} WHERE id < 5")
        duck.execute(f"INSERT INTO ice.{name}_new VALUES (5), (6)")
        with pytest.raises(duckdb.Error, match="cannot drop table"):
            duck.execute(f"DROP TABLE ice.{name}")
    check_published(own_server, lake, name, branch, [2, 3, 4, 5, 6])


def test_duckdb_joins_two_refs_of_one_lake(own_server: BerglineServer, lake: Lake, name: str, branch: str) -> None:
    with duck_at(own_server, branch) as duck:
        duck.execute(own_server.connection_examples["DuckDB"])
        duck.execute(f"INSERT INTO ice.{name} VALUES (4, 'duck')")
        new = f"SELECT s.id FROM ice.{name} s LEFT JOIN lake.{name} m USING (id) WHERE m.id IS NULL"
        assert duck.sql(new).fetchall() == [(4,)]


def test_pyiceberg(own_server: BerglineServer, lake: Lake, name: str, branch: str) -> None:
    table = peer_at(own_server, branch).load_table(name)
    table.append(rows("py", 4))
    table.overwrite(rows("py", 5), "id = 4")
    table.delete("id = 1")
    assert table.upsert(rows("upserted", 2, 6), ["id"]).rows_inserted == 1
    with table.transaction() as transaction:
        transaction.append(rows("py", 7))
        transaction.set_properties(owner="ann")
    with table.update_schema() as change:
        change.add_column("note", StringType())
    noted = pa.table({"id": [8], "who": ["py"], "note": ["new"]}, schema=COLUMNS.append(pa.field("note", pa.string())))
    table.append(noted)
    found = peer_at(own_server, branch).load_table(name).scan().to_arrow().sort_by("id")
    assert found.to_pydict() == {
        "id": [2, 3, 5, 6, 7, 8],
        "who": ["upserted", "main", "py", "upserted", "py", "py"],
        "note": [None] * 5 + ["new"],
    }
    assert lake.load_table(name).metadata.properties["owner"] == "ann"
    for change_of_column in ("rename", "drop"):
        with pytest.raises(ForbiddenError, match=f"cannot {change_of_column} column `who`"), table.update_schema() as s:
            s.rename_column("who", "author") if change_of_column == "rename" else s.delete_column("who")
        table.refresh()
    catalog = peer_at(own_server, branch)
    catalog.create_table(f"{name}_old", COLUMNS).append(rows("py", 2, 3, 5, 6))
    catalog.rename_table(f"{name}_old", f"{name}_new")
    catalog.load_table(f"{name}_new").append(rows("py", 7, 8))
    with catalog.create_table_transaction(f"{name}_gone", COLUMNS) as transaction:
        transaction.append(rows("py", 1))
    catalog.drop_table(f"{name}_gone")
    check_published(own_server, lake, name, branch, [2, 3, 5, 6, 7, 8])


def test_pyiceberg_makes_refs_there(own_server: BerglineServer, lake: Lake, name: str, branch: str) -> None:
    """Branches and tags begin at the head of the branch, and are refs of the table as all others."""
    table = peer_at(own_server, branch).load_table(name)
    table.append(rows("py", 4))
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_branch(head.snapshot_id, "further").create_tag(head.snapshot_id, "v4").commit()
    table.append(rows("py", 5), branch="further")
    assert set(lake.load_table(name).refs) == {"main", branch, "further", "v4"}
    for ref, there in (("further", [1, 2, 3, 4, 5]), ("v4", [1, 2, 3, 4])):
        assert ids(lake.load_table(name).scan(ref=ref).to_arrow()) == there
        assert ids(peer_at(own_server, branch).load_table(name).scan().use_ref(ref).to_arrow()) == there
        assert ids(peer_at(own_server, ref).load_table(name).scan().to_arrow()) == there


def test_pyiceberg_is_told_what_it_cannot_do_there(
    own_server: BerglineServer, lake: Lake, name: str, branch: str
) -> None:
    catalog = peer_at(own_server, branch)
    refused: list[tuple[str, Callable[[], object]]] = [
        ("drop table", lambda: catalog.drop_table(name)),
        ("drop table", lambda: catalog.purge_table(name)),
        ("rename table", lambda: catalog.rename_table(name, f"{name}_new")),
        ("drop a namespace", lambda: catalog.drop_namespace(name.partition(".")[0])),
        ("expire snapshots", lambda: expire_all(catalog, name)),
    ]
    lake.load_table(name).append(rows("main", 4)).delete("id = 4")  # an old snapshot, to expire
    for what, act in refused:
        with pytest.raises(ForbiddenError, match=what):
            act()
    assert ids(catalog.load_table(name).scan().to_arrow()) == MAIN_ROWS


def expire_all(catalog: Catalog, name: str) -> None:
    table = catalog.load_table(name)
    table.maintenance.expire_snapshots().by_ids([s.snapshot_id for s in table.snapshots()[1:2]]).commit()


def test_polars(own_server: BerglineServer, lake: Lake, name: str, branch: str) -> None:
    table = peer_at(own_server, branch).load_table(name)
    pl.DataFrame({"id": [4], "who": ["polars"]}).write_iceberg(table, mode="append")
    found = pl.scan_iceberg(table.refresh()).filter(pl.col("id") > 1).select("id").collect()
    assert sorted(found["id"]) == [2, 3, 4]
    assert ids(lake.load_table(name).scan().to_arrow()) == MAIN_ROWS


def test_tags_and_times_are_read_and_not_written(own_server: BerglineServer, lake: Lake, name: str) -> None:
    tag = f"v_{name.partition('.')[0]}"
    table = lake.load_table(name)
    table.refs.create_tag(tag)
    time.sleep(0.005)
    moment = dt.datetime.now(dt.UTC).isoformat()
    time.sleep(0.005)
    table.append(rows("main", 4))
    with table.update_schema() as change:
        change.add_column("note", "string")
    for ref, place in ((tag, f"tag `{tag}`"), (moment, moment[:23])):
        refused = f"is read at {place}.*, where nothing can be written"
        peer = peer_at(own_server, ref).load_table(name)
        assert peer.scan().to_arrow().schema.names == ["id", "who"]
        assert ids(peer.scan().to_arrow()) == ids(pl_rows(peer)) == MAIN_ROWS
        with pytest.raises(ForbiddenError, match=refused):
            peer.append(rows("py", 5))
        with duck_at(own_server, ref) as duck:
            assert duck.sql(f"SELECT * FROM ice.{name} ORDER BY id").fetchall() == [(n, "main") for n in MAIN_ROWS]
            with pytest.raises(duckdb.Error, match=refused):
                duck.execute(f"INSERT INTO ice.{name} VALUES (5, 'duck')")
        with bergline.connect(own_server.uri, warehouse=f"lake@{ref}") as at:
            assert ids(at.load_table(name).scan().to_arrow()) == MAIN_ROWS
            with pytest.raises(RefusedError, match="where nothing can be written"):
                at.load_table(name).append(rows("bergline", 5))
    assert ids(lake.load_table(name).scan().to_arrow()) == [1, 2, 3, 4]


@pytest.mark.official
def test_official_runtime(
    own_server: BerglineServer, lake: Lake, name: str, branch: str, official_runtime: OfficialRuntime
) -> None:
    lake.load_table(name).append(rows("main", 9)).delete("id = 9")  # snapshots that could expire
    lake.load_table(name).refs.replace_branch(branch, at="main")
    options = {"type": "rest", "uri": own_server.uri, "cache-enabled": "false"}
    official_runtime.open_catalog("ice", options | {"warehouse": f"lake@{branch}"})
    sql = official_runtime.sql
    sql(f"INSERT INTO {name} VALUES (4, 'spark'), (5, 'spark')")
    sql(f"UPDATE {name} SET who = 'changed' WHERE id = 2")
    sql(f"DELETE FROM {name} WHERE id = 1")
    sql(
        f"MERGE INTO {name} t USING (SELECT * FROM VALUES (5L, 'merged'), (6L, 'merged') AS s(id, who)) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    sql(f"ALTER TABLE {name} ADD COLUMN note STRING")
    there = [(2, "changed", None), (3, "main", None), (4, "spark", None), (5, "merged", None), (6, "merged", None)]
    assert sql(f"SELECT * FROM {name} ORDER BY id") == there
    assert sql(f"SELECT id FROM {name} VERSION AS OF 'lake_main' ORDER BY id") == [(n,) for n in MAIN_ROWS]
    sql(f"CALL ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert sql(f"SELECT * FROM {name} ORDER BY id") == there
    assert sql(f"SELECT count(*) FROM {name}.files WHERE content = 0") == [(1,)]
    sql(f"ALTER TABLE {name} CREATE BRANCH further")
    sql(f"INSERT INTO {name}.branch_further VALUES (7, 'spark', null)")
    assert sql(f"SELECT max(id) FROM {name} VERSION AS OF 'further'") == [(7,)]
    sql(f"ALTER TABLE {name} DROP BRANCH further")
    sql(f"CREATE TABLE {name}_new USING iceberg AS SELECT id FROM {name} WHERE id < 6")
    sql(f"INSERT INTO {name}_new VALUES (6)")
    older = "TIMESTAMP '2100-01-01 00:00:00'"
    for statement, refused in (
        (f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT 1 AS id", "cannot change the type of column `id`"),
        (f"DROP TABLE {name}", "cannot drop table .* at branch"),
        (f"ALTER TABLE {name} DROP COLUMN who", "cannot drop column `who`"),
        (f"ALTER TABLE {name} DROP BRANCH lake_main", "cannot move the real `main`"),
        (f"CALL ice.system.expire_snapshots(table => '{name}', older_than => {older})", "cannot expire snapshots"),
    ):
        with pytest.raises(OfficialError, match=refused):
            sql(statement)
    assert sql(f"SELECT * FROM {name} ORDER BY id") == there
    official_runtime.open_catalog("other", options)
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(n,) for n in MAIN_ROWS]
    check_published(own_server, lake, name, branch, [2, 3, 4, 5, 6])
    assert sql(f"SELECT * FROM {name} ORDER BY id") == there


@pytest.mark.official
def test_official_runtime_replaces_a_table_there(
    own_server: BerglineServer, lake: Lake, name: str, branch: str, official_runtime: OfficialRuntime
) -> None:
    """With the columns that it has: it begins a new history, as it would on `main`."""
    options = {"type": "rest", "uri": own_server.uri, "cache-enabled": "false", "warehouse": f"lake@{branch}"}
    official_runtime.open_catalog("replacing", options)
    sql = official_runtime.sql
    sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT id + 10 AS id, who FROM {name}")
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(11,), (12,), (13,)]
    assert ids(lake.load_table(name).scan().to_arrow()) == MAIN_ROWS
    with pytest.raises(RefusedError):
        lake.publish(branch)
    assert ids(lake.load_table(name).scan().to_arrow()) == MAIN_ROWS


def pl_rows(table: PeerTable) -> pa.Table:
    """What polars reads."""
    found: pl.DataFrame = pl.scan_iceberg(table).collect()
    return found.to_arrow()
