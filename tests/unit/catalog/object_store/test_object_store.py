"""Pointers in an object store, here in memory; on a real server in tests/s3."""

import obstore
import obstore.store
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.errors import NotFoundError, UnsupportedError
from bergline.io.conditional_objects import ConditionalObjects, StoredObject
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import PointerStoreSuite, ViewPointersSuite
from support.fixtures.concurrency import run_for_each


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


class TestObjectPointerStore(InMemory, PointerStoreSuite):
    pass


class TestViewsInAnObjectStore(InMemory, ViewPointersSuite):
    pass


def test_catalog_that_is_missing_is_not_created_by_looking(objects: ConditionalObjects) -> None:
    with pytest.raises(NotFoundError, match=r"no catalog at `memory://here/lake/catalog`: no catalog\.json in it"):
        ObjectPointerStore(objects, create=False)
    assert objects.read("catalog.json") is None
    ObjectPointerStore(objects, create=True)
    assert ObjectPointerStore(objects, create=False).list_namespaces() == []


class Forgetful(ConditionalObjects):
    """A store that overwrites whatever it is asked to."""

    def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
        now = self.read(name)
        return super().replace(name, now or found, data)


def test_store_that_does_not_keep_to_conditions_is_refused() -> None:
    memory = obstore.store.MemoryStore()
    forgetful = Forgetful(OpenStore(obstore, memory, memory), "memory://here/lake")
    with pytest.raises(UnsupportedError, match=r"expected a store that writes under conditions .*memory://here/lake"):
        ObjectPointerStore(forgetful)
    assert list(obstore.list(memory).collect()) == []


def test_writers_of_pairs_lose_nothing(objects: ConditionalObjects) -> None:
    tables = [TableName(("db",), name) for name in ("a", "b", "c")]
    for table in tables:
        ObjectPointerStore(objects).create(table, "0")

    def count_both(number: int) -> None:
        store = ObjectPointerStore(objects)
        pair = [t for t in tables if t is not tables[number % 3]]
        for _ in range(5):
            while True:
                found = [store.read(t) or "" for t in pair]
                swaps = [PointerSwap(t, f, str(int(f) + 1)) for t, f in zip(pair, found, strict=True)]
                if store.swap_all(swaps[:: 1 if number % 2 else -1]):
                    break

    run_for_each(count_both, range(8))
    store = ObjectPointerStore(objects)
    assert [store.read(t) for t in tables] == ["25", "25", "30"]
    assert objects.names("commits") == []
