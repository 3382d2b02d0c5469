"""The JSON objects of a catalog."""

import obstore
import obstore.store
import pytest

from bergline.catalog.object_store.format import (
    Entry,
    Held,
    Intent,
    NamespaceObject,
    ObjectKind,
    PointerObject,
    held_by,
    new_stamp,
    parse_pointer,
    render_sized,
)
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.errors import FormatError, UnsupportedError
from bergline.io.conditional_objects import ConditionalObjects
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import ITEMS, ORDERS


def objects_in_memory() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/lake/catalog")


@pytest.fixture
def objects() -> ConditionalObjects:
    return objects_in_memory()


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
    with pytest.raises(UnsupportedError, match=r"expected format version 2 of the catalog, found 7 in .*catalog.json"):
        ObjectPointerStore(objects)


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


@pytest.mark.parametrize("length", [1, 200, 350, 512, 1000])
@pytest.mark.parametrize(
    ("current", "intent", "held"),
    [
        (ObjectKind.TABLE, False, Held.TABLE),
        (ObjectKind.VIEW, False, Held.VIEW),
        (None, False, Held.NOTHING),
        (None, True, Held.UNDECIDED),
        (ObjectKind.TABLE, True, Held.UNDECIDED),
    ],
)
def test_size_says_what_an_object_holds(length: int, current: ObjectKind | None, intent: bool, held: Held) -> None:
    entry = None if current is None else Entry(current, "x" * length)
    pending = Intent("00000000-0000-0000-0000-000000000000", None) if intent else None
    value = PointerObject(stamp=new_stamp(), name=["db", "é" * length], current=entry, intent=pending)
    data = render_sized(value)
    assert held_by(len(data)) is held
    assert parse_pointer(data, "here") == value
    for properties, says in (({"a": "x" * length}, Held.NAMESPACE), ({}, Held.NAMESPACE), (None, Held.NOTHING)):
        namespace = NamespaceObject(stamp=new_stamp(), name=["db"], properties=properties)
        assert held_by(len(render_sized(namespace))) is says


@pytest.mark.parametrize("size", [0, 1, 2, 511, 516, 1023])
def test_other_sizes_say_nothing(size: int) -> None:
    assert held_by(size) is Held.UNDECIDED


def test_catalog_of_version_1_stays_as_it_is(objects: ConditionalObjects) -> None:
    objects.create("catalog.json", b'{"format-version": 1, "stamp": "s", "catalog": "bergline"}')
    store = ObjectPointerStore(objects)
    store.create(ORDERS, "a")
    store.create(ITEMS, "b")
    store.drop(ITEMS)
    stored = objects.read("pointers/db/orders.json")
    assert stored is not None
    assert stored.data.endswith(b"}\n")
    assert len(stored.data) < 512
    assert store.list_names(("db",)) == [ORDERS]
    mark = objects.read("catalog.json")
    assert mark is not None
    assert b'"format-version": 1' in mark.data
