"""The contract of a PointerStore as tests: subclass, return a new store from `make_store`, and pytest runs them."""

import threading
from abc import ABC, abstractmethod

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer_store import PointerStore, PointerSwap

ORDERS = TableName(("db",), "orders")
ITEMS = TableName(("db",), "items")


class PointerStoreSuite(ABC):
    """What every store must do; `make_store` may be called several times and must then open the same store."""

    @abstractmethod
    def make_store(self) -> PointerStore:
        """The store under test."""

    def test_read_of_unknown_table_is_none(self) -> None:
        """No row, no pointer."""
        assert self.make_store().read(ORDERS) is None

    def test_create_gives_the_pointer_once(self) -> None:
        """The second create is refused and changes nothing."""
        store = self.make_store()
        assert store.create(ORDERS, "a")
        assert not store.create(ORDERS, "b")
        assert store.read(ORDERS) == "a"

    def test_swap_moves_the_pointer_when_expected_is_current(self) -> None:
        """The compare-and-swap."""
        store = self.make_store()
        store.create(ORDERS, "a")
        assert store.swap(ORDERS, "a", "b")
        assert store.read(ORDERS) == "b"

    def test_swap_fails_when_expected_is_stale(self) -> None:
        """The loser changes nothing."""
        store = self.make_store()
        store.create(ORDERS, "a")
        store.swap(ORDERS, "a", "b")
        assert not store.swap(ORDERS, "a", "c")
        assert store.read(ORDERS) == "b"

    def test_swap_of_unknown_table_fails(self) -> None:
        """A swap never creates."""
        store = self.make_store()
        assert not store.swap(ORDERS, "a", "b")
        assert store.read(ORDERS) is None

    def test_identical_swap_again_fails_and_changes_nothing(self) -> None:
        """What settling a lost answer relies on."""
        store = self.make_store()
        store.create(ORDERS, "a")
        assert store.swap(ORDERS, "a", "b")
        assert not store.swap(ORDERS, "a", "b")
        assert store.read(ORDERS) == "b"

    def test_one_of_many_swaps_from_one_pointer_wins(self) -> None:
        """Eight threads, one winner, and its value stays."""
        self.make_store().create(ORDERS, "start")
        barrier, winners = threading.Barrier(8), []

        def race(number: int) -> None:
            store = self.make_store()
            barrier.wait()
            if store.swap(ORDERS, "start", f"new-{number}"):
                winners.append(f"new-{number}")
            store.close()

        threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert winners == [self.make_store().read(ORDERS)]

    def test_several_pointers_move_together_or_not_at_all(self) -> None:
        """One stale pointer holds all of them."""
        store = self.make_store()
        if not store.atomic_tables:
            return
        store.create(ORDERS, "a")
        store.create(ITEMS, "x")
        assert not store.swap_all([PointerSwap(ORDERS, "a", "b"), PointerSwap(ITEMS, "stale", "y")])
        assert not store.swap_all([PointerSwap(ITEMS, "x", "y"), PointerSwap(TableName(("db",), "nope"), "a", "b")])
        assert (store.read(ORDERS), store.read(ITEMS)) == ("a", "x")
        assert store.swap_all([PointerSwap(ORDERS, "a", "b"), PointerSwap(ITEMS, "x", "y")])
        assert (store.read(ORDERS), store.read(ITEMS)) == ("b", "y")

    def test_one_of_many_swaps_of_the_same_tables_wins(self) -> None:
        """Eight threads name the tables in both orders; both pointers are the winner's."""
        if not (first := self.make_store()).atomic_tables:
            return
        for table in (ORDERS, ITEMS):
            first.create(table, "start")
        barrier, winners = threading.Barrier(8), []

        def race(number: int) -> None:
            store = self.make_store()
            swaps = [PointerSwap(table, "start", f"new-{number}") for table in (ORDERS, ITEMS)]
            barrier.wait()
            if store.swap_all(swaps if number % 2 else swaps[::-1]):
                winners.append(f"new-{number}")
            store.close()

        threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = self.make_store()
        assert winners * 2 == [store.read(ORDERS), store.read(ITEMS)]

    def test_drop_removes_the_pointer_once(self) -> None:
        """The second drop finds nothing."""
        store = self.make_store()
        store.create(ORDERS, "a")
        assert store.drop(ORDERS)
        assert not store.drop(ORDERS)
        assert store.read(ORDERS) is None

    def test_renamed_table_keeps_its_pointer(self) -> None:
        """The old name is free again, in any namespace."""
        store, moved = self.make_store(), TableName(("db", "raw"), "moved")
        store.create(ORDERS, "a")
        assert store.rename(ORDERS, moved)
        assert (store.read(ORDERS), store.read(moved)) == (None, "a")
        assert store.swap(moved, "a", "b")
        assert not store.swap(ORDERS, "b", "c")
        assert store.create(ORDERS, "x")

    def test_table_is_not_renamed_to_a_taken_name_or_from_an_unknown_one(self) -> None:
        """Nothing changes then."""
        store = self.make_store()
        store.create(ORDERS, "a")
        store.create(ITEMS, "b")
        assert not store.rename(ORDERS, ITEMS)
        assert not store.rename(ORDERS, ORDERS)
        assert not store.rename(TableName(("db",), "nope"), TableName(("db",), "new"))
        assert (store.read(ORDERS), store.read(ITEMS)) == ("a", "b")

    def test_tables_are_listed_in_order_and_by_namespace(self) -> None:
        """Only the namespace's own tables."""
        store = self.make_store()
        for table in (ORDERS, ITEMS, TableName(("db", "raw"), "deep"), TableName(("other",), "far")):
            store.create(table, "a")
        assert store.list_tables(("db",)) == [ITEMS, ORDERS]

    def test_namespace_is_created_once(self) -> None:
        """The second create is refused."""
        store = self.make_store()
        assert not store.namespace_exists(("db",))
        assert store.create_namespace(("db",), {"owner": "us"})
        assert not store.create_namespace(("db",), {})
        assert store.namespace_exists(("db",))

    def test_namespace_exists_while_anything_is_in_it(self) -> None:
        """Tables and nested namespaces imply their parents, but not names that merely begin alike."""
        store = self.make_store()
        store.create_namespace(("a_b", "c"), {})
        store.create(TableName(("x",), "t"), "p")
        assert store.namespace_exists(("a_b",))
        assert store.namespace_exists(("x",))
        assert not store.namespace_exists(("a",))
        assert not store.namespace_exists(("axb",))
        assert store.list_namespaces() == [("a_b",), ("a_b", "c"), ("x",)]

    def test_namespace_with_content_is_not_dropped(self) -> None:
        """Empty it first."""
        store = self.make_store()
        store.create_namespace(("db",), {})
        store.create(ORDERS, "a")
        assert not store.drop_namespace(("db",))
        store.drop(ORDERS)
        assert store.drop_namespace(("db",))
        assert not store.namespace_exists(("db",))
