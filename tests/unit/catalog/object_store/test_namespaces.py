"""Namespaces as objects."""

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import obstore
import obstore.store
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store.format import (
    CommitObject,
    Entry,
    Intent,
    ObjectKind,
    PointerObject,
    State,
    new_stamp,
    render,
    render_sized,
)
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.errors import NotFoundError
from bergline.io.conditional_objects import ConditionalObjects, StoredObject
from bergline.io.memory import MemoryFileIO
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import ITEMS, ORDERS, NestedNamespacesSuite


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


class TestNestedNamespacesInACatalogOfVersion1(InMemory, NestedNamespacesSuite):
    def make_store(self) -> PointerStore:
        self._shared.create("catalog.json", b'{"format-version": 1, "stamp": "s", "catalog": "bergline"}')
        return super().make_store()


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


class CountedApi:
    """obstore, and how often it was asked for an object or for a page of a listing."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return getattr(obstore, name)(*arguments, **options)

        return call

    def list(self, *arguments: Any, **options: Any) -> Any:
        for page in obstore.list(*arguments, **options):
            self.calls["page"] += 1
            yield page


class Many:
    """A catalog with very many names, and the requests to it."""

    def __init__(self, names: int) -> None:
        self.api, memory = CountedApi(), obstore.store.MemoryStore()
        self.store = ObjectPointerStore(ConditionalObjects(OpenStore(self.api, memory, memory), "memory://here/lake"))
        self.store.create_namespace(("db",), {})
        table, view = (render_sized(_pointer(kind)) for kind in ObjectKind)
        gone = render_sized(_pointer(None))
        for number in range(names):
            data = (table, view, gone)[number % 3]
            obstore.put(memory, f"lake/pointers/db/t{number:06}.json", data)

    def requests(self, ask: Callable[[], object]) -> Counter[str]:
        self.api.calls.clear()
        with contextlib.suppress(NotFoundError):
            ask()
        return Counter(self.api.calls)


def _pointer(kind: ObjectKind | None) -> PointerObject:
    entry = None if kind is None else Entry(kind, "s3://b/t/metadata/1.metadata.json")
    return PointerObject(stamp=new_stamp(), name=["db", "t"], current=entry)


@pytest.fixture(scope="module")
def many() -> Many:
    return Many(30_000)


@pytest.mark.long
def test_listing_reads_no_object(many: Many) -> None:
    assert len(many.store.list_names(("db",))) == len(many.store.views.list_names(("db",))) == 10_000
    assert many.requests(lambda: many.store.list_names(("db",))) == {"list_with_delimiter": 1}
    assert many.requests(many.store.list_namespaces)["get"] == 0
    assert many.store.list_namespaces() == [("db",)]


@pytest.mark.long
def test_missing_name_takes_a_page_of_two_listings(many: Many) -> None:
    catalog = PointerCatalog(many.store, MemoryFileIO(), "memory://warehouse")
    with pytest.raises(NotFoundError) as caught:
        catalog.load_table(TableName(("db",), "t015000x"))
    assert "db.t015000" in caught.value.near
    asked = many.requests(lambda: catalog.load_table(TableName(("db",), "t015000x")))
    assert asked == {"page": 2, "get": 3}  # the name as a table and as a view, and the namespace


@pytest.mark.long
def test_missing_namespace_lists_no_tables(many: Many) -> None:
    catalog = PointerCatalog(many.store, MemoryFileIO(), "memory://warehouse")
    asked = many.requests(lambda: catalog.list_tables(("dbb",)))
    assert asked["page"] == 0
    assert asked.total() <= 4
    with pytest.raises(NotFoundError) as caught:
        catalog.list_tables(("dbb",))
    assert list(caught.value.near) == ["db"]


@pytest.mark.long
def test_names_are_created_and_dropped_without_a_listing(many: Many) -> None:
    new = TableName(("db",), "new")
    asked = many.requests(lambda: (many.store.create(new, "a"), many.store.drop(new)))
    assert asked == {"get": 2, "put": 2}
    assert many.requests(lambda: many.store.drop_namespace(("db",)))["page"] == 1
    assert many.store.namespace_exists(("db",))


def test_name_with_an_intent_is_read(objects: ConditionalObjects) -> None:
    """A rename that ended half way: one object must be read to know whether it holds a table."""
    store = ObjectPointerStore(objects)
    store.create(ORDERS, "a")
    store.create(ITEMS, "b")
    commit = new_stamp()
    record = CommitObject(stamp=new_stamp(), state=State.COMMITTED, members=[])
    objects.create(f"commits/{commit}.json", render(record))
    seen = store._pointers.settled(ORDERS)
    store._pointers.write(seen, seen.entry, Intent(commit, None))
    assert store.list_names(("db",)) == [ITEMS]
