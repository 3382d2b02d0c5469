"""Digests of metadata files in SQLite and PostgreSQL."""

import msgspec
import pytest
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_digests import digest_of
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.sql.digests import SqlDigests
from bergline.catalog.sql.security_layout import METADATA_DIGESTS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import MetadataChangedError

ORDERS, ITEMS = TableName(("db",), "orders"), TableName(("db",), "items")
A, B = "s3://b/orders/metadata/a.metadata.json", "s3://b/orders/metadata/b.metadata.json"


@pytest.fixture
def digests(store: SqlPointerStore) -> SqlDigests:
    found = store.digests
    found.remember(A, b"a")
    found.remember(B, b"b")
    assert store.create(ORDERS, A)
    return found


def kept(store: SqlPointerStore) -> set[str]:
    query = sa.select(METADATA_DIGESTS.c.metadata_location)
    with store.database.reading() as connection:
        return set(connection.execute(query.where(METADATA_DIGESTS.c.catalog_name == store.catalog_name)).scalars())


def test_a_pointer_has_the_digest_of_its_file_and_of_no_earlier_one(
    store: SqlPointerStore, digests: SqlDigests
) -> None:
    assert digests.find(A) == digest_of(b"a")
    assert not store.swap(ORDERS, B, A)
    assert kept(store) == {A}
    assert store.swap(ORDERS, A, B)
    assert kept(store) == {B}
    assert store.rename(ORDERS, ITEMS)
    digests.check(B, b"b")
    assert store.drop(ITEMS, B)
    assert kept(store) == set()


def test_a_change_that_is_rolled_back_moves_no_digest(store: SqlPointerStore, digests: SqlDigests) -> None:
    def fail(_: object) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.swap_all((PointerSwap(ORDERS, A, B),), fail)
    assert kept(store) == {A}
    digests.check(A, b"a")


def test_another_file_is_noticed_by_another_process(store: SqlPointerStore, digests: SqlDigests) -> None:
    other = SqlDigests(store.database, store.catalog_name, typed=True)
    other.check(A, b"a")
    noticed: list[tuple[str, ...]] = []
    other.noticed = lambda *what: noticed.append(what)
    for data in (b"b", b"a ", b""):
        with pytest.raises(MetadataChangedError, match=r"file of table `db\.orders` is not the one") as raised:
            other.check(A, data)
    assert A in str(raised.value)
    assert "bergline accept-metadata db.orders" in raised.value.hints[1]
    assert [what[:2] for what in noticed] == [("table/db/orders", A)] * 3
    with store.database.changing() as connection:
        other.accept(connection, A, b"b")
    digests.check(A, b"b")
    with pytest.raises(MetadataChangedError):
        digests.check(A, b"a")


def test_pointers_that_others_moved_are_not_checked(store: SqlPointerStore, digests: SqlDigests) -> None:
    other = SqlDigests(store.database, store.catalog_name, typed=True)
    with store.database.changing() as connection:  # as Java's JDBC catalog does
        connection.exec_driver_sql(f"UPDATE iceberg_tables SET metadata_location = '{B}' WHERE table_name = 'orders'")
    other.check(B, b"whatever")
    digests.check(B, b"whatever")


def test_files_of_what_is_in_the_trash_keep_theirs(store: SqlPointerStore, digests: SqlDigests) -> None:
    dropped = DroppedTable(ORDERS, A, 1, 2, "ann", purges_files=True, purge_begun=False, problem=None, bin_id=0)
    with store.before_commit(lambda connection, _: store.table_trash.add(connection, dropped)):
        assert store.drop(ORDERS, A)
    assert kept(store) == {A}
    with pytest.raises(MetadataChangedError, match=r"of table `db\.orders`"):
        digests.check(A, b"b")
    (found,) = store.table_trash.tables()
    assert store.restore(found, ITEMS)
    assert kept(store) == {A}
    again = msgspec.structs.replace(found, name=ITEMS)
    with store.before_commit(lambda connection, _: store.table_trash.add(connection, again)):
        assert store.drop(ITEMS, A)
    assert kept(store) == {A}
    claim = store.table_trash.claim(3, 1000)
    assert claim is not None
    store.table_trash.forget(claim)
    assert kept(store) == set()


def test_files_of_views_have_digests_too(store: SqlPointerStore, digests: SqlDigests) -> None:
    views, view = store.views, TableName(("db",), "big")
    assert views is not None
    assert views.create(view, B)
    assert kept(store) == {A, B}
    with pytest.raises(MetadataChangedError, match=r"of view `db\.big`"):
        digests.check(B, b"a")
    with store.before_commit(lambda connection, _: store.view_trash.add(connection, DroppedView(view, B, 1, 2, "ann"))):
        assert views.drop(view, B)
    assert kept(store) == {A, B}
    assert store.view_trash.forget_due(3) == 1
    assert kept(store) == {A}


def test_a_database_without_the_table_has_none_until_it_is_changed(store: SqlPointerStore) -> None:
    if store.database.engine.dialect.name != "sqlite":
        pytest.skip("the database is shared by tests")
    store.database.has_digests = False
    store.digests.remember(A, b"a")
    assert store.create(ORDERS, A)
    assert store.digests.find(A) is None
    store.database.has_digests = True
    assert store.digests.find(A) is None
