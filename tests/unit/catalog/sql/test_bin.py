"""The bin of a SQL catalog, in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog_files import new_catalog_uri

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
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
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
