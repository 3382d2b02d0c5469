"""A lake that has its pointers in S3 too: no database."""

from collections.abc import Iterator

import pytest

import bergline
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.errors import AuthenticationError, NotFoundError, StorageError, UnavailableError
from bergline.io import conditional_writes, open_store
from bergline.io.conditional_objects import ConditionalObjects, open_objects
from bergline.testing.pointer_store_suite import (
    ITEMS,
    ORDERS,
    NestedNamespacesSuite,
    PointerStoreSuite,
    ViewPointersSuite,
)
from support.fixtures.concurrency import run_at_once, run_for_each
from support.fixtures.rows import ORDERS as SCHEMA
from support.fixtures.rows import ids, order_rows
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import S3Server


@pytest.fixture
def objects(s3_server: S3Server, bucket: str) -> ConditionalObjects:
    return open_objects(f"{bucket}/lake/catalog", s3_server.properties)


@pytest.fixture
def store(objects: ConditionalObjects) -> ObjectPointerStore:
    return ObjectPointerStore(objects)


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def far_store(s3_server: S3Server, proxy: Proxy, store: ObjectPointerStore, bucket: str) -> ObjectPointerStore:
    """The same catalog behind a bad network; another writer has created tables in it."""
    for table in (ORDERS, ITEMS):
        store.create(table, "a")
    far = {**s3_server.properties, "s3.endpoint": proxy.endpoint}
    return ObjectPointerStore(open_objects(f"{bucket}/lake/catalog", far))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_store, "RETRY_SECONDS", 1)
    monkeypatch.setattr(conditional_writes, "RETRY_SECONDS", 1)


class OnTheServer:
    @pytest.fixture(autouse=True)
    def _objects(self, objects: ConditionalObjects) -> None:
        self._shared = objects

    def make_store(self) -> PointerStore:
        return ObjectPointerStore(self._shared)


class TestObjectPointerStore(OnTheServer, PointerStoreSuite):
    pass


class TestNamespacesInAnObjectStore(OnTheServer, NestedNamespacesSuite):
    pass


class TestViewsInAnObjectStore(OnTheServer, ViewPointersSuite):
    pass


def test_lake_is_one_address(s3_server: S3Server, bucket: str) -> None:
    with bergline.connect(f"{bucket}/lake", properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db", {"owner": "us"})
        orders = lake.create_table("db.orders", SCHEMA)
        orders.append(order_rows(0, 1))
        assert orders.metadata.location == f"{bucket}/lake/warehouse/db/orders"
    with bergline.connect(f"{bucket}/lake/", properties=s3_server.properties, create=True) as lake:
        assert lake.list_tables("db") == ["db.orders"]
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]


def test_lost_answer_to_a_swap_is_settled_by_the_bytes(proxy: Proxy, far_store: ObjectPointerStore) -> None:
    proxy.lose_answers_to("PUT", 1)
    assert far_store.swap(ORDERS, "a", "b")
    assert far_store.read(ORDERS) == "b"


def test_lost_answers_to_create_and_drop_are_settled_by_the_bytes(proxy: Proxy, far_store: ObjectPointerStore) -> None:
    proxy.lose_answers_to("PUT", 1)
    assert far_store.drop(ORDERS)
    proxy.lose_answers_to("PUT", 1)
    assert far_store.create(ORDERS, "x")
    assert far_store.read(ORDERS) == "x"


@pytest.mark.parametrize("number", range(6))
def test_lost_answer_to_any_request_of_a_swap_of_two_is_settled(
    proxy: Proxy, store: ObjectPointerStore, far_store: ObjectPointerStore, number: int
) -> None:
    proxy.lose_answers_to("PUT", 1, after=number)
    assert far_store.swap_all([PointerSwap(table, "a", "b") for table in (ORDERS, ITEMS)])
    assert [store.read(table) for table in (ORDERS, ITEMS)] == ["b", "b"]


@pytest.mark.usefixtures("impatient")
def test_swap_whose_answers_stay_away_is_settled_by_the_bytes(
    proxy: Proxy, store: ObjectPointerStore, far_store: ObjectPointerStore
) -> None:
    proxy.lose_answers_to("PUT", 1000)
    assert far_store.swap(ORDERS, "a", "b")
    assert store.read(ORDERS) == "b"


@pytest.mark.usefixtures("impatient")
def test_swap_whose_settling_read_fails_is_in_doubt(
    proxy: Proxy, store: ObjectPointerStore, far_store: ObjectPointerStore
) -> None:
    proxy.lose_answers_to("PUT", 1)
    proxy.lose_answers_to("GET", 1000, after=1)
    with pytest.raises(StorageError):
        far_store.swap(ORDERS, "a", "b")
    assert store.read(ORDERS) == "b"


@pytest.mark.usefixtures("impatient")
def test_store_that_is_gone_is_unavailable(s3_server: S3Server, store: ObjectPointerStore) -> None:
    store.create(ORDERS, "a")
    s3_server.stop()
    try:
        for use in (store.read, store.drop, lambda table: store.swap(table, "a", "b")):
            with pytest.raises(UnavailableError, match="cannot be reached"):
                use(ORDERS)
    finally:
        s3_server.start()
    assert store.read(ORDERS) == "a"


def test_catalog_that_is_missing_is_not_created_by_looking(s3_server: S3Server, bucket: str) -> None:
    with pytest.raises(NotFoundError, match=f"no catalog at `{bucket}/lake/catalog`: no catalog.json in it"):
        bergline.connect(f"{bucket}/lake", properties=s3_server.properties)
    bergline.connect(f"{bucket}/lake", properties=s3_server.properties, create=True).close()
    with bergline.connect(f"{bucket}/lake", properties=s3_server.properties) as lake:
        assert lake.list_namespaces() == []


def test_catalog_without_bucket_or_with_wrong_keys_is_one_error(s3_server: S3Server, bucket: str) -> None:
    with pytest.raises(NotFoundError, match="no bucket for s3://none-such"):
        bergline.connect("s3://none-such/lake", properties=s3_server.properties, create=True)
    wrong = {**s3_server.properties, "s3.secret-access-key": "not-the-secret"}
    with pytest.raises(AuthenticationError, match=f"{bucket}/lake/catalog/catalog.json"):
        bergline.connect(f"{bucket}/lake", properties=wrong, create=True)


def test_writers_of_one_table_lose_nothing(objects: ConditionalObjects, store: ObjectPointerStore) -> None:
    store.create(ORDERS, "0")

    def count() -> None:
        own = ObjectPointerStore(objects)
        for _ in range(5):
            while True:
                found = own.read(ORDERS) or ""
                if own.swap(ORDERS, found, str(int(found) + 1)):
                    break

    run_at_once(*[count] * 8)
    assert store.read(ORDERS) == "40"


def test_several_tables_are_committed_together_beside_other_writers(s3_server: S3Server, bucket: str) -> None:
    def connect() -> bergline.Lake:
        return bergline.connect(f"{bucket}/lake", properties=s3_server.properties, create=True)

    with connect() as lake:
        lake.create_namespace("db")
        for name in ("orders", "items"):
            lake.create_table(f"db.{name}", SCHEMA)

    def append(number: int) -> None:
        with connect() as own:
            for step in range(2):
                if number % 2:
                    with own.transaction() as both:
                        for name in ("orders", "items"):
                            both.load_table(f"db.{name}").append(order_rows(10 * number + step))
                else:
                    own.load_table("db.orders").append(order_rows(10 * number + step))

    run_for_each(append, range(4))
    with connect() as lake:
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1, 10, 11, 20, 21, 30, 31]
        assert ids(lake.load_table("db.items").scan().to_arrow()) == [10, 11, 30, 31]
        assert [f for f in lake.catalog.io.list(f"{bucket}/lake/catalog") if "/commits/" in f] == []


@pytest.mark.parametrize("number", range(6))
def test_lost_answer_to_any_request_of_an_append_leaves_it_committed_once(
    s3_server: S3Server, proxy: Proxy, bucket: str, number: int
) -> None:
    far = {**s3_server.properties, "s3.endpoint": proxy.endpoint}
    with bergline.connect(f"{bucket}/lake", properties=far, create=True) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", SCHEMA)
        proxy.lose_answers_to("PUT", 1, after=number)
        orders.append(order_rows(0, 1))
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]
        assert len(orders.metadata.snapshots) == 1
