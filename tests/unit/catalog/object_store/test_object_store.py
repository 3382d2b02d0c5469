"""Pointers in an object store, here in memory; on a real server in tests/s3."""

import obstore
import obstore.store
import pytest
from concurrency import run_for_each

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.errors import FormatError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.io.conditional_objects import ConditionalObjects, StoredObject
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import (
    ITEMS,
    ORDERS,
    NestedNamespacesSuite,
    PointerStoreSuite,
    ViewPointersSuite,
)

ODD_NAMES = (".", "..", "a.b", "a/b", "a%2Fb", "%", "ü", "Ü", "a b", "", "#?", "a.json", "😀", "A", "a")


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


class TestNamespacesInAnObjectStore(InMemory, NestedNamespacesSuite):
    pass


class TestViewsInAnObjectStore(InMemory, ViewPointersSuite):
    pass


class TestNestedNamespacesInAnObjectStore(InMemory, NestedNamespacesSuite):
    pass


def test_catalog_that_is_missing_is_not_created_by_looking(objects: ConditionalObjects) -> None:
    with pytest.raises(NotFoundError, match=r"no catalog at `memory://here/lake/catalog`: no catalog\.json in it"):
        ObjectPointerStore(objects, create=False)
    assert objects.read("catalog.json") is None
    ObjectPointerStore(objects, create=True)
    assert ObjectPointerStore(objects, create=False).list_namespaces() == []


def test_any_name_is_a_key_and_no_two_share_one(objects: ConditionalObjects) -> None:
    store = ObjectPointerStore(objects)
    tables = [TableName(n, t) for t in ODD_NAMES if t for n in (("db",), ("db", "x"), ("a.b",), ("a", "b"), ("..",))]
    for table in tables:
        assert store.create(table, f"to {table!r}")
    for table in tables:
        assert store.read(table) == f"to {table!r}"
    for namespace in {t.namespace for t in tables}:
        assert store.list_names(namespace) == sorted(t for t in tables if t.namespace == namespace)
    assert store.list_namespaces() == [("..",), ("a",), ("a", "b"), ("a.b",), ("db",), ("db", "x")]


@pytest.mark.parametrize("name", ["x" * 241, "ü" * 100, "\ud800"])
def test_name_that_is_no_key_is_refused(objects: ConditionalObjects, name: str) -> None:
    store = ObjectPointerStore(objects)
    with pytest.raises(InvalidInputError, match="expected a name"):
        store.create(TableName(("db",), name), "a")
    with pytest.raises(InvalidInputError, match="expected a name"):
        store.create_namespace((name,), {})


def test_deep_namespace_over_the_longest_key_is_refused(objects: ConditionalObjects) -> None:
    with pytest.raises(InvalidInputError, match="800 with its namespace"):
        ObjectPointerStore(objects).create(TableName(("n" * 200,) * 4, "t"), "a")


def test_pointer_is_text_that_people_can_read(objects: ConditionalObjects) -> None:
    ObjectPointerStore(objects).create(ORDERS, "s3://bucket/metadata.json")
    stored = objects.read("pointers/db/orders.json")
    assert stored is not None
    lines = stored.data.decode().splitlines()
    assert '  "format-version": 1,' in lines
    assert '    "metadata-location": "s3://bucket/metadata.json"' in lines


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"{}", b'{"format-version": 0}', b'{"format-version": 1}', b"[" * 9999, b"x" * 2_000_000],
    ids=["empty", "no text", "list", "no version", "version 0", "nothing else", "deep", "large"],
)
def test_pointer_that_is_none_is_named(objects: ConditionalObjects, data: bytes) -> None:
    store = ObjectPointerStore(objects)
    store.create(ITEMS, "a")
    objects.create("pointers/db/orders.json", data)
    for use in (store.read, store.drop, lambda table: store.swap(table, "a", "b")):
        with pytest.raises(FormatError, match=r"memory://here/lake/catalog/pointers/db/orders.json"):
            use(ORDERS)
    assert store.list_names(("db",)) == [ITEMS, ORDERS]
    assert store.read(ITEMS) == "a"
    assert not store.drop_namespace(("db",))


def test_pointer_of_a_newer_version_is_refused(objects: ConditionalObjects) -> None:
    store = ObjectPointerStore(objects)
    objects.create("pointers/db/orders.json", b'{"format-version": 2, "anything": "else"}')
    with pytest.raises(UnsupportedError, match=r"found 2 in .*orders.json"):
        store.read(ORDERS)
    with pytest.raises(UnsupportedError, match=r"found 2 in .*orders.json"):
        store.create(ORDERS, "a")


def test_catalog_of_a_newer_version_is_refused(objects: ConditionalObjects) -> None:
    objects.create("catalog.json", b'{"format-version": 7}')
    with pytest.raises(UnsupportedError, match=r"expected format version 1 of the catalog, found 7 in .*catalog.json"):
        ObjectPointerStore(objects)


def test_objects_of_others_are_no_tables(objects: ConditionalObjects) -> None:
    store = ObjectPointerStore(objects)
    for name in ("pointers/README", "pointers/db/README.md", "pointers/db/a.b.json", "pointers/t.json", "namespaces/x"):
        objects.create(name, b"hello")
    assert store.list_namespaces() == []
    assert store.list_names(("db",)) == []


def test_intent_whose_commit_is_gone_is_an_error(objects: ConditionalObjects) -> None:
    store = ObjectPointerStore(objects)
    objects.create(
        "pointers/db/orders.json",
        b'{"format-version": 1, "stamp": "s", "name": ["db", "orders"], "current": null,'
        b' "intent": {"commit": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "becomes": null}}',
    )
    with pytest.raises(FormatError, match=r"commit 3f2504e0-.* of .*orders.json .* found none"):
        store.read(ORDERS)


def test_garbage_in_a_commit_or_a_namespace_is_named(objects: ConditionalObjects) -> None:
    store = ObjectPointerStore(objects)
    commit = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    objects.create(f"commits/{commit}.json", b'{"format-version": 1, "stamp": "s", "state": "perhaps", "members": []}')
    objects.create(
        "pointers/db/orders.json",
        b'{"format-version": 1, "stamp": "s", "name": ["db", "orders"], "current": null,'
        b' "intent": {"commit": "%s", "becomes": null}}' % commit.encode(),
    )
    for use in (store.read, store.drop):
        with pytest.raises(FormatError, match=f"commits/{commit}.json"):
            use(ORDERS)
    objects.create("namespaces/db.json", b"null")
    with pytest.raises(FormatError, match=r"namespaces/db\.json"):
        store.namespace_properties(("db",))


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


def test_one_of_many_renames_wins(objects: ConditionalObjects) -> None:
    ObjectPointerStore(objects).create(ORDERS, "a")
    winners: list[TableName] = []
    stores = [ObjectPointerStore(objects) for _ in range(8)]

    def race(number: int) -> None:
        if stores[number].rename(ORDERS, TableName(("db",), f"new-{number}")):
            winners.append(TableName(("db",), f"new-{number}"))

    run_for_each(race, range(8))
    assert ObjectPointerStore(objects).list_names(("db",)) == winners
    assert len(winners) == 1
