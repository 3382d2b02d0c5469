"""Namespaces as objects."""

import obstore
import obstore.store
import pytest

from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.io.conditional_objects import ConditionalObjects, StoredObject
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import ORDERS, NestedNamespacesSuite


def objects_in_memory() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/lake/catalog")


@pytest.fixture
def objects() -> ConditionalObjects:
    return objects_in_memory()


class InMemory:
    @pytest.fixture(autouse=True)
    def _objects(self, objects: ConditionalObjects) -> None:
        self._shared = objects

    def make_store(self) -> PointerStore:
        return ObjectPointerStore(self._shared)


class TestNamespacesInAnObjectStore(InMemory, NestedNamespacesSuite):
    pass


class TestNestedNamespacesInAnObjectStore(InMemory, NestedNamespacesSuite):
    pass


def test_dropped_tables_leave_no_namespace(objects: ConditionalObjects) -> None:
    store = ObjectPointerStore(objects)
    store.create(ORDERS, "a")
    store.create_namespace(("db", "below"), {"a": "1"})
    store.drop(ORDERS)
    store.drop_namespace(("db", "below"))
    assert store.list_namespaces() == []
    assert not store.namespace_exists(("db",))
    assert store.create_namespace(("db", "below"), {})
    assert store.namespace_properties(("db", "below")) == {}


def test_table_created_while_its_namespace_is_dropped_keeps_it(objects: ConditionalObjects) -> None:
    class Meanwhile(ConditionalObjects):
        def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
            if name == "namespaces/db.json":
                other.create(ORDERS, "a")
            return super().replace(name, found, data)

    other = ObjectPointerStore(objects)
    other.create_namespace(("db",), {"owner": "us"})
    store = ObjectPointerStore(Meanwhile(objects._store, objects.directory))
    assert not store.drop_namespace(("db",))
    assert store.namespace_properties(("db",)) == {"owner": "us"}
    assert store.read(ORDERS) == "a"
