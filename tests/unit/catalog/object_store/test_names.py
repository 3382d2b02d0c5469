"""Object keys of names."""

import obstore
import obstore.store
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.errors import InvalidInputError
from bergline.io.conditional_objects import ConditionalObjects
from bergline.io.open_store import OpenStore

ODD_NAMES = (".", "..", "a.b", "a/b", "a%2Fb", "%", "ü", "Ü", "a b", "", "#?", "a.json", "😀", "A", "a")


def objects_in_memory() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/lake/catalog")


@pytest.fixture
def objects() -> ConditionalObjects:
    return objects_in_memory()


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
