"""The bin of a SQL catalog, in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from many_tables import plans, watched

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.bin import ClaimedPurge
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import ConflictError
from bergline.lake.opening import CatalogConfig, open_catalog

T = TableName(("db",), "orders")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    """A store with namespace `db`."""
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    catalog: Any = open_catalog(
        CatalogConfig(uri, f"file://{tmp_path}", f"bin-{tmp_path.name}", {}, 10.0, (), 10**6, True)
    )
    catalog.create_namespace(("db",), {})
    yield catalog.store
    catalog.close()


def drop(store: SqlPointerStore, number: int = 1, keep_until_ms: int = 100) -> DroppedTable:
    """Put a table into the bin; the one that is found there."""
    dropped = DroppedTable(T, f"file:///t/{number}.metadata.json", number, keep_until_ms, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.bin.add(connection, dropped)
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
    with pytest.raises(ConflictError, match="no longer in the bin"):
        store.restore(dropped, T)
    assert store.read(T) is None


def test_taken_name_leaves_the_table_in_the_bin(store: SqlPointerStore) -> None:
    dropped = drop(store)
    store.create(T, "file:///t/new.metadata.json")
    assert not store.restore(dropped, T)
    assert store.dropped_tables() == [dropped]


def test_table_is_claimed_when_its_time_is_over_and_again_when_the_lease_is(store: SqlPointerStore) -> None:
    drop(store)
    assert store.bin.claim(99, 10) is None
    first = store.bin.claim(100, 10)
    assert isinstance(first, ClaimedPurge)
    assert store.bin.claim(109, 10) is None
    second = store.bin.claim(110, 10)
    assert second is not None
    assert not store.bin.begin(first)
    with pytest.raises(ConflictError, match="by another server"):
        store.bin.extend(first, 200)
    assert store.bin.begin(second)


def test_purge_that_has_begun_keeps_the_table_from_coming_back(store: SqlPointerStore) -> None:
    dropped = drop(store)
    claim = store.bin.claim(100, 10)
    assert claim is not None
    assert store.bin.begin(claim)
    with pytest.raises(ConflictError, match="being deleted"):
        store.restore(dropped, T)
    store.bin.put_off(claim, 500, "disk full", begun=False)
    (kept,) = store.dropped_tables()
    assert (kept.problem, kept.keep_until_ms) == ("disk full", 500)
    assert store.restore(kept, T)


def test_of_many_servers_one_claims_a_table(store: SqlPointerStore) -> None:
    drop(store)
    claims: list[ClaimedPurge] = []
    together = threading.Barrier(4)

    def claim() -> None:
        together.wait()
        found = store.bin.claim(100, 1000)
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
    claim = store.bin.claim(100, 10)
    assert claim is not None
    store.bin.forget(claim)
    assert store.dropped_tables() == []


def put(store: SqlPointerStore, name: str, metadata_location: str) -> None:
    dropped = DroppedTable(TableName(("db",), name), metadata_location, 1, 2, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.bin.add(connection, dropped)


def near(store: SqlPointerStore, *directories: str) -> list[str]:
    return sorted(dropped.name.name for dropped in store.bin.near(directories))


def test_dropped_tables_are_near_by_their_directories(store: SqlPointerStore) -> None:
    put(store, "a", "s3://b/x/a/metadata/1.metadata.json")
    put(store, "a2", "s3a://b/x/a2/metadata/1.metadata.json")
    put(store, "loose", "s3://b/y/1.metadata.json")
    put(store, "disk", "file:///z/t/metadata/1.metadata.json")
    assert near(store, "s3://b/x/a") == ["a"]
    assert near(store, "s3://b/x/a/in/it", "s3://b/none") == ["a"]
    assert near(store, "s3://b/x") == ["a", "a2"]
    assert near(store, "s3://b/x/a2/data") == ["a2"]
    assert near(store, "s3://b/y/deep/er") == ["loose"]
    assert near(store, "file:///z") == ["disk"]
    assert near(store, "s3://b/q", "s3://c") == []
    assert store.bin.names_with_metadata_in(["s3://b/x/a", "s3://b/none"]) == [TableName(("db",), "a")]
    assert store.bin.names_with_metadata_in([]) == []


def test_directory_that_is_not_on_record_may_be_near(store: SqlPointerStore) -> None:
    """Of rows of an older layout, of a backup, and where it is too long for an index."""
    put(store, "old", "s3://b/x/a/metadata/1.metadata.json")
    with store.database.changing() as connection:
        connection.exec_driver_sql("UPDATE bergline_bin SET home = NULL WHERE name = 'old'")
    put(store, "long", f"s3://b/{'文' * 900}/metadata/1.metadata.json")
    put(store, "new", "s3://b/x/b/metadata/1.metadata.json")
    assert near(store, "s3://b/none") == ["long", "old"]


def test_bin_of_many_is_searched_by_index(store: SqlPointerStore) -> None:
    columns = "catalog_name, namespace, name, metadata_location, principal, dropped_ms, keep_until_ms, purges_files"
    insert = sa.text(
        f"INSERT INTO bergline_bin ({columns}, claimed_until_ms, purge_begun, home, bergline_footprint_of) "
        "VALUES (:catalog, 'db', :name, :location, 'ann', 1, 2, true, 0, false, :home, :mark)"
    )
    rows = [
        {"name": f"t{n}", "location": f"s3://b/t{n}/metadata/1.json", "home": f"s3://b/t{n}/"} for n in range(20_000)
    ]
    with store.database.changing() as connection:
        name = store.catalog_name
        connection.execute(insert, [row | {"catalog": name, "mark": f"1 {name} {row['location']}"} for row in rows])
    if store.database.engine.dialect.name == "postgresql":
        with store.database.writing() as connection:
            connection.exec_driver_sql("ANALYZE bergline_bin")  # as autovacuum does
    kept = store.footprints()
    assert kept is not None
    with watched(store.database) as work:
        assert near(store, "s3://b/t77/data", "s3://b/new") == ["t77"]
        assert store.bin.names_with_metadata_in(["s3://b/t78"]) == [TableName(("db",), "t78")]
        assert len(kept.dropped(["s3://b/t9/metadata/1.json"], [TableName(("db",), "t8")])) == 2
        assert list(kept.unknown()) == []
    lines = plans(store.database, work)
    assert not [line for line in lines if line.startswith("SCAN bergline") or "Seq Scan on bergline_bin" in line], lines
    assert not [line for line in lines if line.endswith("(catalog_name=?)")], lines
    assert work.thousands <= 2
