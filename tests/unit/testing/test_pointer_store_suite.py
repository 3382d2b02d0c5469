"""The suite for pointer stores finds stores that break the contract."""

import pytest

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.testing.pointer_store_suite import PointerStoreSuite


class NotComparing(MemoryPointerStore):
    def swap(self, table: TableName, expected: str, new: str) -> bool:
        found = self.read(table)
        return found is not None and super().swap(table, found, new)


class Creating(MemoryPointerStore):
    def swap(self, table: TableName, expected: str, new: str) -> bool:
        return super().swap(table, expected, new) or self.create(table, new)


class Overwriting(MemoryPointerStore):
    def create(self, table: TableName, pointer: str) -> bool:
        self.drop(table)
        return super().create(table, pointer)


class Unsorted(MemoryPointerStore):
    def list_names(self, namespace: Namespace) -> list[TableName]:
        return super().list_names(namespace)[::-1]


def suite(kind: type[MemoryPointerStore]) -> PointerStoreSuite:
    store = kind()

    class Suite(PointerStoreSuite):
        def make_store(self) -> PointerStore:
            return store

    return Suite()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (NotComparing, "test_swap_fails_when_expected_is_stale"),
        (Creating, "test_swap_of_unknown_table_fails"),
        (Overwriting, "test_create_gives_the_pointer_once"),
        (Unsorted, "test_tables_are_listed_in_order_and_by_namespace"),
    ],
)
def test_broken_store_fails_and_a_right_one_passes(kind: type[MemoryPointerStore], test: str) -> None:
    getattr(suite(MemoryPointerStore), test)()
    with pytest.raises(AssertionError):
        getattr(suite(kind), test)()
