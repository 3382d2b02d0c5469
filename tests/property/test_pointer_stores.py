"""Every store that holds views and nested namespaces gives the same answers to the same calls, in any order."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import Pointers, PointerStore, PointerSwap
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.postgres import PostgresDatabase
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqliteDatabase

NAMESPACES: list[Namespace] = [("a",), ("a", "b"), ("a", "b", "c"), ("a_b",), ("a%",), ("A",), ("é!",)]
NAMES = ["t", "T", "v v", "t%", "日本"]
POINTERS = ["p1", "p2", "p3"]

namespaces = st.sampled_from(NAMESPACES)
tables = st.builds(TableName, st.sampled_from(NAMESPACES[:4]), st.sampled_from(NAMES[:3]))
pointers = st.sampled_from(POINTERS)
properties = st.dictionaries(st.sampled_from(["k", "K", "l%"]), st.sampled_from(["", "x", "é"]), max_size=2)
swaps = st.lists(
    st.builds(PointerSwap, tables, pointers, pointers), min_size=1, max_size=3, unique_by=lambda s: s.table
)
Call = tuple[str, tuple[Any, ...]]


def call(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    return st.tuples(st.just(name), st.tuples(*arguments))


OF_POINTERS = st.one_of(
    call("read", tables),
    call("create", tables, pointers),
    call("create", tables, pointers),
    call("swap", tables, pointers, pointers),
    call("swap_all", swaps),
    call("drop", tables),
    call("drop", tables, pointers),
    call("rename", tables, tables),
    call("list_names", namespaces),
)
OF_NAMESPACES = st.one_of(
    call("create_namespace", namespaces, properties),
    call("drop_namespace", namespaces),
    call("namespace_exists", namespaces),
    call("namespace_properties", namespaces),
    call("update_namespace", namespaces, properties, st.sets(st.sampled_from(["k", "m"]), max_size=1)),
    call("list_namespaces"),
    call("list_namespaces", namespaces),
)
calls = st.lists(
    st.one_of(
        st.tuples(st.just("tables"), OF_POINTERS),
        st.tuples(st.just("views"), OF_POINTERS),
        st.tuples(st.just("tables"), OF_NAMESPACES),
    ),
    max_size=25,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlDatabase]:
    """A database for many catalogs."""
    opened: SqlDatabase
    if request.param == "sqlite":
        opened = SqliteDatabase(f"{tmp_path}/catalog.db", 30)
    else:
        opened = PostgresDatabase(request.getfixturevalue("postgres"))
    yield opened
    opened.close()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(calls)
def test_stores_answer_alike(database: SqlDatabase, made: list[tuple[str, Call]]) -> None:
    model, store = MemoryPointerStore(), SqlPointerStore(database, uuid4().hex)
    for kind, (name, arguments) in made:
        expected, found = (getattr(_part(s, kind), name)(*arguments) for s in (model, store))
        assert found == expected, (kind, name, arguments)


def _part(store: PointerStore, kind: str) -> Pointers:
    part = store if kind == "tables" else store.views
    assert part is not None
    return part
