"""Version files on a real S3 server."""

from collections.abc import Iterator

import pytest

import bergline
from bergline import Lake
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.errors import InvalidInputError, StorageError, UnsupportedError
from bergline.io import conditional_writes, open_store
from bergline.io.directories import directories_for
from bergline.io.object_store import ObjectStoreFileIO
from bergline.testing.pointer_store_suite import ORDERS, NestedNamespacesSuite, PointerStoreSuite
from support.fixtures.rows import ORDERS as SCHEMA
from support.fixtures.rows import ids, order_rows
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import S3Server


def make_store(properties: dict[str, str], warehouse: str) -> HadoopPointerStore:
    return HadoopPointerStore(ObjectStoreFileIO(properties), directories_for(warehouse, properties), warehouse)


class OnTheServer:
    @pytest.fixture(autouse=True)
    def _warehouse(self, s3_server: S3Server, bucket: str) -> None:
        self._properties, self._place = s3_server.properties, f"{bucket}/ware house"

    def make_store(self) -> PointerStore:
        return make_store(self._properties, self._place)


class TestVersionHintStore(OnTheServer, PointerStoreSuite):
    pass


class TestNamespacesOfAVersionHintStore(OnTheServer, NestedNamespacesSuite):
    pass


@pytest.fixture
def lake(s3_server: S3Server, bucket: str) -> Iterator[Lake]:
    with bergline.connect(f"version-hint:{bucket}/wh", properties=s3_server.properties, create=True) as opened:
        opened.create_namespace("db")
        yield opened


def test_table_is_created_appended_dropped_and_made_again(lake: Lake, bucket: str) -> None:
    orders = lake.create_table("db.orders", SCHEMA)
    other = lake.load_table("db.orders")
    orders.append(order_rows(0))
    other.append(order_rows(1))
    assert other.metadata_location == f"{bucket}/wh/db/orders/metadata/v3.metadata.json"
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]
    lake.drop_table("db.orders")
    assert (lake.list_tables("db"), lake.list_namespaces()) == ([], ["db"])
    lake.create_table("db.orders", SCHEMA).append(order_rows(2))
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [2]


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def far_properties(s3_server: S3Server, proxy: Proxy) -> dict[str, str]:
    return {**s3_server.properties, "s3.endpoint": proxy.endpoint}


@pytest.mark.parametrize("number", range(3))
def test_lost_answer_to_any_request_of_a_swap_is_settled(
    proxy: Proxy, far_properties: dict[str, str], bucket: str, number: int
) -> None:
    store = make_store(far_properties, bucket)
    first = store.stage(ORDERS, None, b"1")
    assert store.create(ORDERS, first)
    second = store.stage(ORDERS, first, b"2")
    proxy.lose_answers_to("PUT", 1, after=number)
    assert store.swap(ORDERS, first, second)
    assert store.read(ORDERS) == second


def test_swap_whose_answers_stay_away_is_in_doubt_and_the_same_again_settles_it(
    proxy: Proxy, far_properties: dict[str, str], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (open_store, conditional_writes):
        monkeypatch.setattr(module, "RETRY_SECONDS", 1)
    store = make_store(far_properties, bucket)
    first = store.stage(ORDERS, None, b"1")
    assert store.create(ORDERS, first)
    second = store.stage(ORDERS, first, b"2")
    proxy.lose_answers = 0
    proxy.lose_answers_to("PUT", 1000)
    proxy.lose_answers_to("GET", 1000, after=2)
    with pytest.raises(StorageError):
        store.swap(ORDERS, first, second)
    proxy.lose_answers_to("PUT", 0)
    proxy.lose_answers_to("GET", 0)
    assert store.landed(second)


class Overwriting(ObjectStoreFileIO):
    """Storage that takes every create for an order to overwrite."""

    def create(self, location: str, data: bytes) -> None:
        self.delete([location])
        super().create(location, data)


def test_store_that_overwrites_is_refused_unless_there_is_one_writer(s3_server: S3Server, bucket: str) -> None:
    io, directories = Overwriting(s3_server.properties), directories_for(bucket, s3_server.properties)
    store = HadoopPointerStore(io, directories, bucket)
    for write in (
        lambda: store.create_namespace(("db",), {}),
        lambda: store.create(ORDERS, store.stage(ORDERS, None, b"1")),
        lambda: store.drop(ORDERS),
    ):
        with pytest.raises(UnsupportedError, match="never creates a file twice") as caught:
            write()
        assert "version-hint.single-writer" in caught.value.hints[0]
    assert io.list(bucket) == []
    alone = HadoopPointerStore(io, directories, bucket, single_writer=True)
    assert alone.create(ORDERS, alone.stage(ORDERS, None, b"1"))
    assert store.read(ORDERS) == f"{bucket}/db/orders/metadata/v1.metadata.json"


def test_property_says_that_there_is_one_writer(s3_server: S3Server, bucket: str) -> None:
    place = f"version-hint:{bucket}/wh"
    told = {**s3_server.properties, "version-hint.single-writer": "true"}
    with bergline.connect(place, properties=told, create=True) as lake:
        lake.create_namespace("db")
    for wrong in ("yes", 1):
        with pytest.raises(InvalidInputError, match=r"version-hint\.single-writer"):
            bergline.connect(place, properties={**told, "version-hint.single-writer": wrong}, create=True)
