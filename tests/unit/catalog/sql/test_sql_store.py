"""Every store passes the same suite."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.testing.pointer_store_suite import NestedNamespacesSuite, PointerStoreSuite, ViewPointersSuite

pytestmark = pytest.mark.long
PARTS = ("a", "b", "-", "!", "c-x", "Z", "é", "ab", "a b", "~", "%", "_", "/")


class _Sqlite:
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> None:
        self._database = str(tmp_path / "catalog.db")

    def make_store(self) -> PointerStore:
        return SqlitePointerStore(self._database)


class _Postgres:
    @pytest.fixture(autouse=True)
    def _catalog(self, postgres: str) -> Iterator[None]:
        self._uri, self._name = postgres, uuid4().hex
        self._stores: list[PointerStore] = []
        yield
        for store in self._stores:
            store.close()

    def make_store(self) -> PointerStore:
        self._stores.append(PostgresPointerStore(self._uri, catalog_name=self._name))
        return self._stores[-1]


class TestSqlitePointerStore(_Sqlite, PointerStoreSuite): ...


class TestPostgresPointerStore(_Postgres, PointerStoreSuite): ...


class TestSqliteViews(_Sqlite, ViewPointersSuite): ...


class TestPostgresViews(_Postgres, ViewPointersSuite): ...


class TestSqliteNestedNamespaces(_Sqlite, NestedNamespacesSuite): ...


class TestPostgresNestedNamespaces(_Postgres, NestedNamespacesSuite): ...


def pages(store: SqlPointerStore, below: Namespace, most: int) -> list[Namespace]:
    """The namespaces of all pages, one page after the other."""
    found: list[Namespace] = []
    mark = None
    for number in itertools.count():
        assert number < 1000
        page = store.namespaces_after(below, mark, most)
        assert len(page.namespaces) <= most
        found += page.namespaces
        mark = page.mark
        if mark is None:
            return found
    return found


@pytest.mark.parametrize("in_byte_order", [True, False])
def test_pages_of_namespaces_have_each_once(
    store: SqlPointerStore, in_byte_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they have properties, tables, or only namespaces below them, in whichever order a database has them."""
    if not in_byte_order:
        monkeypatch.setattr(type(store.database), "sorts_by_bytes", in_byte_order)
    chance = random.Random(4)  # noqa: S311
    for _ in range(60):
        namespace = tuple(chance.choice(PARTS) + chance.choice(PARTS) for _ in range(chance.randint(1, 3)))
        if chance.random() < 0.5:
            store.create_namespace(namespace, {})
        else:
            store.create(TableName(namespace, "t"), "p")
    everything = store.list_namespaces()
    for below in [(), *chance.sample(everything, 8), ("nope",)]:
        children = [n for n in store.list_namespaces(below) if len(n) == len(below) + 1]
        for most in (1, 3, 1000):
            found = pages(store, below, most)
            assert sorted(found) == children
    for namespace in everything:
        assert store.namespace_exists(namespace)
        longer = (*namespace[:-1], f"{namespace[-1]}x")
        assert store.namespace_exists(longer) == (longer in everything)


def test_namespace_is_not_dropped_while_anything_is_below_it(store: SqlPointerStore) -> None:
    store.create_namespace(("a",), {})
    store.create_namespace(("a-b",), {})
    store.create(TableName(("a", "b"), "t"), "p")
    assert not store.drop_namespace(("a",))
    assert store.drop(TableName(("a", "b"), "t"))
    assert store.drop_namespace(("a",))
    assert store.list_namespaces() == [("a-b",)]


def test_namespaces_next_to_one_are_found_on_both_sides(store: SqlPointerStore) -> None:
    for name in ("a", "b", "d", "e"):
        store.create_namespace((name,), {})
    store.create(TableName(("c", "in"), "t"), "p")
    assert store.namespaces_around(("c",), 1) == [("b",), ("c",), ("c", "in")]
