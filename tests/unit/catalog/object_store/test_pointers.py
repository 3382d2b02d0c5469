"""Single pointer objects."""

import obstore
import obstore.store
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.errors import FormatError
from bergline.io.conditional_objects import ConditionalObjects
from bergline.io.open_store import OpenStore
from bergline.testing.pointer_store_suite import ORDERS
from support.fixtures.concurrency import run_for_each


def objects_in_memory() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/lake/catalog")


@pytest.fixture
def objects() -> ConditionalObjects:
    return objects_in_memory()


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
