"""The trash of a SQL catalog, in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.reserved_directories import overlap
from bergline.catalog.sql.directories.table_directories import canonical_directory
from bergline.catalog.sql.records_layout import DROPPED_TABLES
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.trash.dropped_tables import ClaimedPurge
from bergline.errors import ConflictError
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.many_tables import plans, watched

T = TableName(("db",), "orders")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    """A store with namespace `db`."""
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    catalog: Any = open_catalog(
        CatalogConfig(uri, f"file://{tmp_path}", f"bin-{tmp_path.name}", {}, 10.0, (), 10**6, True)
    )
    catalog.create_namespace(("db",), {})
    yield catalog.store
    catalog.close()


def drop(store: SqlPointerStore, number: int = 1, keep_until_ms: int = 100) -> DroppedTable:
    """Put a table into the trash; the one that is found there."""
    dropped = DroppedTable(T, f"file:///t/{number}.metadata.json", number, keep_until_ms, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.table_trash.add(connection, dropped)
    return store.dropped_tables()[0]


def test_dropped_tables_are_listed_newest_first(store: SqlPointerStore) -> None:
    drop(store, 1)
    newest = drop(store, 2)
    assert [d.dropped_ms for d in store.dropped_tables()] == [2, 1]
    assert (newest.name, newest.principal, newest.purges_files, newest.purge_begun) == (T, "ann", True, False)


def test_table_is_restored_once(store: SqlPointerStore) -> None:
    dropped = drop(store)
    assert store.restore(dropped, T)
    assert store.read(T) == dropped.metadata_location
    assert store.dropped_tables() == []
    store.drop(T)
    with pytest.raises(ConflictError, match="no longer in the trash"):
        store.restore(dropped, T)
    assert store.read(T) is None


def test_taken_name_leaves_the_table_in_the_trash(store: SqlPointerStore) -> None:
    dropped = drop(store)
    store.create(T, "file:///t/new.metadata.json")
    assert not store.restore(dropped, T)
    assert store.dropped_tables() == [dropped]


def test_table_is_claimed_when_its_time_is_over_and_again_when_the_lease_is(store: SqlPointerStore) -> None:
    drop(store)
    assert store.table_trash.claim(99, 10) is None
    first = store.table_trash.claim(100, 10)
    assert isinstance(first, ClaimedPurge)
    assert store.table_trash.claim(109, 10) is None
    second = store.table_trash.claim(110, 10)
    assert second is not None
    assert not store.table_trash.begin(first)
    with pytest.raises(ConflictError, match="by another server"):
        store.table_trash.extend(first, 200)
    assert store.table_trash.begin(second)


def test_purge_that_has_begun_keeps_the_table_from_coming_back(store: SqlPointerStore) -> None:
    dropped = drop(store)
    claim = store.table_trash.claim(100, 10)
    assert claim is not None
    assert store.table_trash.begin(claim)
    with pytest.raises(ConflictError, match="being deleted"):
        store.restore(dropped, T)
    store.table_trash.put_off(claim, 500, "disk full", begun=False)
    (kept,) = store.dropped_tables()
    assert (kept.problem, kept.keep_until_ms) == ("disk full", 500)
    assert store.restore(kept, T)


def test_of_many_servers_one_claims_a_table(store: SqlPointerStore) -> None:
    drop(store)
    claims: list[ClaimedPurge] = []
    together = threading.Barrier(4)

    def claim() -> None:
        together.wait()
        found = store.table_trash.claim(100, 1000)
        if found is not None:
            claims.append(found)

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claims) == 1


def test_forgotten_table_is_gone(store: SqlPointerStore) -> None:
    drop(store)
    claim = store.table_trash.claim(100, 10)
    assert claim is not None
    store.table_trash.forget(claim)
    assert store.dropped_tables() == []


LONG = "x" * 600
IN_THE_TRASH = (
    "s3://b/w/t/metadata/1.metadata.json",
    "s3a://b/w/t2/metadata/1.metadata.json",
    "S3://b/w/u/1.metadata.json",
    "s3://b/1.metadata.json",
    "s3://c/w/metadata/deeper/1.metadata.json",
    f"s3://c/{LONG}/a/metadata/1.metadata.json",
    "gcs://b/w/t/metadata/1.metadata.json",
    "wasbs://c@a.blob.core.windows.net/w/t/metadata/1.metadata.json",
    "abfss://c@a.dfs.core.windows.net/w/u/metadata/1.metadata.json",
    "file:///w/t/metadata/1.metadata.json",
    "file:/w/u/metadata/1.metadata.json",
    "file://localhost/w/v/metadata/1.metadata.json",
    "/w/a:b/metadata/1.metadata.json",
    "/w//x/metadata/1.metadata.json",
    "/w/y/../z/metadata/1.metadata.json",
    "file:///w/./q/metadata/1.metadata.json",
    "relative/t/metadata/1.metadata.json",
    "a:/t/metadata/1.metadata.json",
    "9a:/t/metadata/1.metadata.json",
    "a b:/t/metadata/1.metadata.json",
    "/metadata/1.metadata.json",
    "file:///w/é%_/metadata/1.metadata.json",
)
ASKED_ABOUT = (
    *(f"{scheme}://{bucket}{path}" for scheme in ("s3", "s3n", "gs") for bucket in "bc" for path in ("", "/w", "/w/t")),
    *(f"s3://b/w/{name}" for name in ("t/data", "t/metadata", "t/metadata/x", "t2/x", "u/x", "T", "tt", "t/met")),
    *(f"s3://c/{path}" for path in ("w/metadata", "w/metadata/deeper/x", LONG, f"{LONG}/a/b", f"{LONG}/b")),
    *(f"abfs://c@a.dfs.core.windows.net/{path}" for path in ("w", "w/t/data", "w/u", "x")),
    *(f"file://{path}" for path in ("/w", "/w/t", "/w/t/x", "/w/u", "/w/v/x", "/w/a:b", "/w/x", "/w/z/y", "/w/q")),
    *(f"file://{path}" for path in ("/w/é%_/x", "/w/é", "/elsewhere", str(Path("relative/t").resolve()))),
    *(f"file://{Path(path).resolve()}" for path in ("a:/t/x", "9a:/t", "a b:", ".")),
)


def keep(store: SqlPointerStore, *locations: str) -> None:
    with store.database.changing() as connection:
        for location in locations:
            store.table_trash.add(connection, DroppedTable(T, location, 1, 1, "ann", purges_files=True))


def test_dropped_tables_near_a_directory_are_found_however_they_are_spelled(store: SqlPointerStore) -> None:
    keep(store, *IN_THE_TRASH)
    homes = {one: canonical_directory(one.rpartition("/")[0].removesuffix("/metadata")) for one in IN_THE_TRASH}
    for asked in ASKED_ABOUT:
        directory = canonical_directory(asked)
        near = {dropped.metadata_location for dropped in store.table_trash.near([directory])}
        assert {one for one, home in homes.items() if overlap(home, directory)} <= near, directory
    found = {dropped.metadata_location for dropped in store.table_trash.near(["s3://b/w/t", "s3://c/x"])}
    assert IN_THE_TRASH[0] in found
    assert found.isdisjoint(
        {IN_THE_TRASH[1], IN_THE_TRASH[2], IN_THE_TRASH[4], IN_THE_TRASH[5], IN_THE_TRASH[9], IN_THE_TRASH[12]}
    )
    assert store.table_trash.near([]) == []


def test_dropped_tables_near_a_directory_are_found_by_an_index(store: SqlPointerStore) -> None:
    keep(store, *(f"s3://b/w/t{number}/metadata/1.metadata.json" for number in range(2000)))
    store.table_trash.near(["s3://b/new"])  # makes the index
    with store.database.writing() as connection:
        connection.exec_driver_sql("ANALYZE")
    with watched(store.database) as work:
        (found,) = store.table_trash.near(["s3://b/w/t77/data", "s3://elsewhere/x"])
    assert found.metadata_location == "s3://b/w/t77/metadata/1.metadata.json"
    lines = plans(store.database, work)
    assert any("bergline_bin_directory" in line for line in lines), lines
    assert not [line for line in lines if "Seq Scan on bergline_bin" in line or "SCAN bergline_bin" in line], lines


def test_database_without_a_bin_has_none_near(store: SqlPointerStore) -> None:
    if store.database.engine.dialect.name != "sqlite":
        pytest.skip("the database is shared by tests")
    with store.database.writing() as connection:
        DROPPED_TABLES.drop(connection)
    assert store.table_trash.near(["s3://b/w"]) == []
    with store.database.reading() as connection:
        assert not sa.inspect(connection).has_table(DROPPED_TABLES.name)
