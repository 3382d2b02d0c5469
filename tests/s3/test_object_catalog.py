"""A lake that has its pointers in S3 too: no database."""

import pytest
from rows import ORDERS, ids, order_rows
from s3_server import S3Server

import bergline
from bergline.catalog.object_store import ObjectPointerStore
from bergline.catalog.pointer_store import PointerStore
from bergline.io.conditional import ConditionalObjects, open_objects
from bergline.testing.pointer_store_suite import PointerStoreSuite, ViewPointersSuite


@pytest.fixture
def objects(s3_server: S3Server, bucket: str) -> ConditionalObjects:
    return open_objects(f"{bucket}/lake/catalog", s3_server.properties)


class OnTheServer:
    @pytest.fixture(autouse=True)
    def _objects(self, objects: ConditionalObjects) -> None:
        self._shared = objects

    def make_store(self) -> PointerStore:
        return ObjectPointerStore(self._shared)


class TestObjectPointerStore(OnTheServer, PointerStoreSuite):
    pass


class TestViewsInAnObjectStore(OnTheServer, ViewPointersSuite):
    pass


def test_lake_is_one_address(s3_server: S3Server, bucket: str) -> None:
    with bergline.connect(f"{bucket}/lake", properties=s3_server.properties) as lake:
        lake.create_namespace("db", {"owner": "us"})
        orders = lake.create_table("db.orders", ORDERS)
        orders.append(order_rows(0, 1))
        assert orders.metadata.location == f"{bucket}/lake/warehouse/db/orders"
    with bergline.connect(f"{bucket}/lake/", properties=s3_server.properties) as lake:
        assert lake.list_tables("db") == ["db.orders"]
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]
