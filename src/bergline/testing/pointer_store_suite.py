"""The contract of a PointerStore as tests: subclass, return a new store from `make_store`, and pytest runs them.

`PointerStoreSuite` is for every store, `ViewPointersSuite` for those with views, `NestedNamespacesSuite` for those with
nested namespaces that also exist by their contents.
"""

import threading
from abc import ABC, abstractmethod

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import Pointers, PointerStore, PointerSwap, StagedPointers
from bergline.errors import UnsupportedError

ORDERS = TableName(("db",), "orders")
ITEMS = TableName(("db",), "items")
_NAMESPACES = ("db", "other")


def new_pointer(pointers: Pointers, table: TableName, text: str, after: str | None = None) -> str:
    """A new pointer for a table, its first or one after another: any text, or what the store requires."""
    return pointers.stage(table, after, text.encode()) if isinstance(pointers, StagedPointers) else text


def created(pointers: Pointers, table: TableName, text: str) -> str:
    """Create a table and return its pointer."""
    pointer = new_pointer(pointers, table, text)
    assert pointers.create(table, pointer)
    return pointer


def swapped(pointers: Pointers, table: TableName, expected: str, text: str) -> str:
    """Swap a table's pointer and return the new one."""
    pointer = new_pointer(pointers, table, text, expected)
    assert pointers.swap(table, expected, pointer)
    return pointer


def refuses_renames(pointers: Pointers) -> bool:
    """Whether the store refuses renames."""
    if not isinstance(pointers, StagedPointers):
        return False
    with pytest.raises(UnsupportedError):
        pointers.rename(ORDERS, ITEMS)
    return True


class _PointersSuite(ABC):
    """The tests for pointers of every kind."""

    @abstractmethod
    def make_store(self) -> PointerStore:
        """The store under test; called again it must open the same store."""

    @abstractmethod
    def make_pointers(self) -> Pointers:
        """The pointers under test."""

    def test_read_of_unknown_table_is_none(self) -> None:
        assert self.make_pointers().read(ORDERS) is None

    def test_create_gives_the_pointer_once(self) -> None:
        store, other = self.make_pointers(), self.make_pointers()
        a, b = new_pointer(store, ORDERS, "a"), new_pointer(other, ORDERS, "b")
        assert store.create(ORDERS, a)
        assert not other.create(ORDERS, b)
        assert store.read(ORDERS) == a

    def test_swap_moves_the_pointer_when_expected_is_current(self) -> None:
        store = self.make_pointers()
        a = created(store, ORDERS, "a")
        b = new_pointer(store, ORDERS, "b", a)
        assert store.swap(ORDERS, a, b)
        assert store.read(ORDERS) == b

    def test_swap_fails_when_expected_is_stale(self) -> None:
        store = self.make_pointers()
        a = created(store, ORDERS, "a")
        b = swapped(store, ORDERS, a, "b")
        assert not store.swap(ORDERS, a, new_pointer(store, ORDERS, "c", a))
        assert store.read(ORDERS) == b

    def test_swap_of_unknown_table_fails(self) -> None:
        store = self.make_pointers()
        a = created(store, ORDERS, "a")
        store.drop(ORDERS)
        assert not store.swap(ORDERS, a, new_pointer(store, ORDERS, "b", a))
        assert store.read(ORDERS) is None

    def test_identical_swap_again_fails_and_changes_nothing(self) -> None:
        store = self.make_pointers()
        a = created(store, ORDERS, "a")
        b = swapped(store, ORDERS, a, "b")
        assert not store.swap(ORDERS, a, new_pointer(store, ORDERS, "b", a))
        assert store.read(ORDERS) == b

    def test_one_of_many_swaps_from_one_pointer_wins(self) -> None:
        start = created(self.make_pointers(), ORDERS, "start")
        barrier, winners = threading.Barrier(8), []

        def race(number: int) -> None:
            store = self.make_pointers()
            new = new_pointer(store, ORDERS, f"new-{number}", start)
            barrier.wait()
            if store.swap(ORDERS, start, new):
                winners.append(new)

        threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert winners == [self.make_pointers().read(ORDERS)]

    def test_several_pointers_move_together_or_not_at_all(self) -> None:
        store = self.make_pointers()
        if not store.atomic_tables:
            return
        store.create(ORDERS, "a")
        store.create(ITEMS, "x")
        assert not store.swap_all([PointerSwap(ORDERS, "a", "b"), PointerSwap(ITEMS, "stale", "y")])
        assert not store.swap_all([PointerSwap(ITEMS, "x", "y"), PointerSwap(TableName(("db",), "nope"), "a", "b")])
        assert (store.read(ORDERS), store.read(ITEMS)) == ("a", "x")
        assert store.swap_all([PointerSwap(ORDERS, "a", "b"), PointerSwap(ITEMS, "x", "y")])
        assert (store.read(ORDERS), store.read(ITEMS)) == ("b", "y")

    def test_pointers_come_into_being_with_others_that_move_or_not_at_all(self) -> None:
        store = self.make_pointers()
        if not store.atomic_tables:
            return
        store.create(ORDERS, "a")
        new = PointerSwap(ITEMS, None, "x")
        assert not store.swap_all([PointerSwap(ORDERS, "stale", "b"), new])
        assert store.read(ITEMS) is None
        assert store.swap_all([PointerSwap(ORDERS, "a", "b"), new])
        assert (store.read(ORDERS), store.read(ITEMS)) == ("b", "x")
        assert not store.swap_all([PointerSwap(ORDERS, "b", "c"), PointerSwap(ITEMS, None, "y")])
        assert (store.read(ORDERS), store.read(ITEMS)) == ("b", "x")

    def test_one_of_many_swaps_of_the_same_tables_wins(self) -> None:
        if not (first := self.make_pointers()).atomic_tables:
            return
        for table in (ORDERS, ITEMS):
            first.create(table, "start")
        barrier, winners = threading.Barrier(8), []

        def race(number: int) -> None:
            store = self.make_pointers()
            swaps = [PointerSwap(table, "start", f"new-{number}") for table in (ORDERS, ITEMS)]
            barrier.wait()
            if store.swap_all(swaps if number % 2 else swaps[::-1]):
                winners.append(f"new-{number}")

        threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = self.make_pointers()
        assert winners * 2 == [store.read(ORDERS), store.read(ITEMS)]

    def test_drop_removes_the_pointer_once(self) -> None:
        store = self.make_pointers()
        created(store, ORDERS, "a")
        assert store.drop(ORDERS)
        assert not store.drop(ORDERS)
        assert store.read(ORDERS) is None

    def test_drop_of_an_expected_pointer_leaves_another(self) -> None:
        store = self.make_pointers()
        a = created(store, ORDERS, "a")
        b = swapped(store, ORDERS, a, "b")
        assert not store.drop(ORDERS, a)
        assert store.read(ORDERS) == b
        assert store.drop(ORDERS, b)
        assert store.read(ORDERS) is None

    def test_renamed_table_keeps_its_pointer(self) -> None:
        store, moved = self.make_pointers(), TableName(("other",), "moved")
        if refuses_renames(store):
            return
        store.create(ORDERS, "a")
        assert store.rename(ORDERS, moved)
        assert (store.read(ORDERS), store.read(moved)) == (None, "a")
        assert store.swap(moved, "a", "b")
        assert not store.swap(ORDERS, "b", "c")
        assert store.create(ORDERS, "x")

    def test_table_is_not_renamed_to_a_taken_name_or_from_an_unknown_one(self) -> None:
        store = self.make_pointers()
        if refuses_renames(store):
            return
        store.create(ORDERS, "a")
        store.create(ITEMS, "b")
        assert not store.rename(ORDERS, ITEMS)
        assert not store.rename(ORDERS, ORDERS)
        assert not store.rename(TableName(("db",), "nope"), TableName(("db",), "new"))
        assert (store.read(ORDERS), store.read(ITEMS)) == ("a", "b")

    def test_tables_are_listed_in_order_and_by_namespace(self) -> None:
        store = self.make_pointers()
        for table in (ORDERS, ITEMS, TableName(("other",), "far")):
            created(store, table, "a")
        assert store.list_names(("db",)) == [ITEMS, ORDERS]


class ViewPointersSuite(_PointersSuite):
    """The same for pointers of views, which share their names with tables."""

    def make_pointers(self) -> Pointers:
        """The views of the store."""
        views = self.make_store().views
        assert views is not None
        return views

    def test_name_of_a_table_is_taken_for_views_and_the_other_way_round(self) -> None:
        store, views = self.make_store(), self.make_pointers()
        store.create(ORDERS, "t")
        views.create(ITEMS, "v")
        assert not views.create(ORDERS, "x")
        assert not store.create(ITEMS, "x")
        assert not views.rename(ITEMS, ORDERS)
        assert not store.rename(ORDERS, ITEMS)
        assert (store.read(ORDERS), views.read(ITEMS)) == ("t", "v")

    def test_view_is_no_table_and_table_no_view(self) -> None:
        store, views = self.make_store(), self.make_pointers()
        store.create(ORDERS, "t")
        views.create(ITEMS, "v")
        assert (store.read(ITEMS), views.read(ORDERS)) == (None, None)
        assert (store.list_names(("db",)), views.list_names(("db",))) == ([ORDERS], [ITEMS])
        assert not store.swap(ITEMS, "v", "x")
        assert not views.swap(ORDERS, "t", "x")
        assert not store.drop(ITEMS)
        assert not views.drop(ORDERS)
        assert not store.rename(ITEMS, TableName(("db",), "new"))
        assert (store.read(ORDERS), views.read(ITEMS)) == ("t", "v")

    def test_name_is_free_for_the_other_kind_after_a_drop(self) -> None:
        store, views = self.make_store(), self.make_pointers()
        views.create(ORDERS, "v")
        views.drop(ORDERS)
        assert store.create(ORDERS, "t")
        assert (store.read(ORDERS), views.read(ORDERS)) == ("t", None)

    def test_namespace_with_a_view_is_not_dropped(self) -> None:
        store, views = self.make_store(), self.make_pointers()
        store.create_namespace(("db",), {})
        views.create(ORDERS, "v")
        assert not store.drop_namespace(("db",))
        views.drop(ORDERS)
        assert store.drop_namespace(("db",))


class PointerStoreSuite(_PointersSuite):
    """The tests for every store; `make_store` may be called several times and must then open the same store."""

    def make_pointers(self) -> Pointers:
        """The tables of the store, whose namespaces exist."""
        store = self.make_store()
        for name in _NAMESPACES:
            store.create_namespace((name,), {})
        return store

    def test_namespace_is_created_once(self) -> None:
        store = self.make_store()
        assert not store.namespace_exists(("db",))
        assert store.create_namespace(("db",), {"owner": "us"})
        assert not store.create_namespace(("db",), {})
        assert store.namespace_exists(("db",))

    def test_namespace_with_content_is_not_dropped(self) -> None:
        store = self.make_store()
        store.create_namespace(("db",), {})
        created(store, ORDERS, "a")
        assert not store.drop_namespace(("db",))
        store.drop(ORDERS)
        assert store.drop_namespace(("db",))
        assert not store.namespace_exists(("db",))

    def test_namespaces_are_listed_in_order(self) -> None:
        store = self.make_store()
        for name in ("b", "ab", "a"):
            store.create_namespace((name,), {})
        assert store.list_namespaces() == [("a",), ("ab",), ("b",)]
        assert store.list_namespaces(("a",)) == []
        assert store.list_namespaces(("nope",)) == []

    def test_namespace_keeps_its_properties(self) -> None:
        store = self.make_store()
        store.create_namespace(("db",), {"owner": "us", "empty": ""})
        store.create_namespace(("bare",), {})
        assert self.make_store().namespace_properties(("db",)) == {"owner": "us", "empty": ""}
        assert store.namespace_properties(("bare",)) == {}
        assert store.namespace_properties(("nope",)) is None

    def test_properties_of_a_namespace_are_changed_and_removed(self) -> None:
        store = self.make_store()
        store.create_namespace(("db",), {"a": "1", "b": "2", "c": "3"})
        assert store.update_namespace(("db",), {"a": "new", "d": "4"}, {"b", "nope"})
        assert store.namespace_properties(("db",)) == {"a": "new", "c": "3", "d": "4"}
        assert not store.update_namespace(("nope",), {"a": "1"}, frozenset())
        assert not store.namespace_exists(("nope",))

    def test_namespace_outlives_its_last_property(self) -> None:
        store = self.make_store()
        store.create_namespace(("db",), {"a": "1"})
        assert store.update_namespace(("db",), {}, {"a"})
        assert store.namespace_properties(("db",)) == {}
        assert store.namespace_exists(("db",))


class NestedNamespacesSuite(ABC):
    """Nested namespaces, which exist while they contain anything."""

    @abstractmethod
    def make_store(self) -> PointerStore:
        """The store under test; called again it must open the same store."""

    def test_namespace_exists_while_anything_is_in_it(self) -> None:
        store = self.make_store()
        store.create_namespace(("a_b", "c"), {})
        created(store, TableName(("x",), "t"), "p")
        assert store.namespace_exists(("a_b",))
        assert store.namespace_exists(("x",))
        assert not store.namespace_exists(("a",))
        assert not store.namespace_exists(("axb",))
        assert not store.namespace_exists(("A_b",))
        assert store.list_namespaces() == [("a_b",), ("a_b", "c"), ("x",)]

    def test_tables_of_nested_namespaces_are_listed_there_alone(self) -> None:
        store, deep = self.make_store(), TableName(("db", "raw"), "deep")
        for table in (ORDERS, deep):
            created(store, table, "a")
        assert store.list_names(("db",)) == [ORDERS]
        assert store.list_names(("db", "raw")) == [deep]

    def test_table_is_renamed_into_a_namespace_that_is_not_there_yet(self) -> None:
        store, moved = self.make_store(), TableName(("db", "raw"), "moved")
        if refuses_renames(store):
            return
        store.create(ORDERS, "a")
        assert store.rename(ORDERS, moved)
        assert (store.read(ORDERS), store.read(moved)) == (None, "a")
        assert store.namespace_exists(("db", "raw"))

    def test_namespaces_are_listed_below_one(self) -> None:
        store = self.make_store()
        for namespace in (("a",), ("a", "b", "c"), ("ab",), ("d",)):
            store.create_namespace(namespace, {})
        assert store.list_namespaces(("a",)) == [("a", "b"), ("a", "b", "c")]
        assert store.list_namespaces(("d",)) == []
        assert store.list_namespaces(("nope",)) == []
        assert store.list_namespaces() == [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("d",)]

    def test_namespace_that_exists_by_its_content_has_no_properties(self) -> None:
        store = self.make_store()
        store.create_namespace(("bare", "below"), {})
        assert store.namespace_properties(("bare",)) == {}
        assert store.namespace_properties(("bare", "below")) == {}

    def test_namespace_that_existed_by_its_content_stays_once_it_has_a_property(self) -> None:
        store = self.make_store()
        created(store, ORDERS, "a")
        assert store.update_namespace(("db",), {"a": "1"}, frozenset())
        store.drop(ORDERS)
        assert store.namespace_properties(("db",)) == {"a": "1"}

    def test_properties_set_at_once_are_all_kept(self) -> None:
        self.make_store().create_namespace(("db",), {})
        barrier = threading.Barrier(8)

        def set_own(number: int) -> None:
            store = self.make_store()
            barrier.wait()
            assert store.update_namespace(("db",), {f"k{number}": "v", "all": str(number)}, frozenset())
            store.close()

        threads = [threading.Thread(target=set_own, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = self.make_store().namespace_properties(("db",)) or {}
        assert {k for k, v in found.items() if v == "v"} == {f"k{n}" for n in range(8)}
        assert found["all"] in map(str, range(8))
