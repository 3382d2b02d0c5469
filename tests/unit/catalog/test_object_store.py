"""Pointers in an object store, here in memory; on a real server in tests/s3."""

import obstore
import obstore.store
import pytest

from bergline.catalog.object_store import ObjectPointerStore
from bergline.catalog.pointer_store import PointerStore
from bergline.io.conditional import ConditionalObjects
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import PointerStoreSuite, ViewPointersSuite


def objects_in_memory() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/lake/catalog")


class InMemory:
    @pytest.fixture(autouse=True)
    def _objects(self) -> None:
        self._shared = objects_in_memory()

    def make_store(self) -> PointerStore:
        return ObjectPointerStore(self._shared)


class TestObjectPointerStore(InMemory, PointerStoreSuite):
    pass


class TestViewsInAnObjectStore(InMemory, ViewPointersSuite):
    pass
