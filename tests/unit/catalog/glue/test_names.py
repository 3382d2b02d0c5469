"""Names that AWS Glue can have."""

from collections.abc import Iterator

import pytest

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.settings import glue_settings
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, UnsupportedError
from support.servers.glue_server import GlueProxy

ORDERS = TableName(("db",), "orders")


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def store(glue: GlueProxy, waits: list[float]) -> Iterator[GluePointerStore]:
    opened = GluePointerStore(glue_settings("glue://", glue.properties), sleep=waits.append)
    opened.create_namespace(("db",), {})
    yield opened
    opened.close()


@pytest.fixture
def orders(store: GluePointerStore) -> TableName:
    store.create(ORDERS, "a")
    return ORDERS


def test_nested_namespaces_are_refused_and_hold_nothing(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    nested, inside = ("db", "raw"), TableName(("db", "raw"), "t")
    glue.calls.clear()
    for refused_call in (
        lambda: store.create_namespace(nested, {}),
        lambda: store.create(inside, "a"),
        lambda: store.rename(orders, inside),
    ):
        with pytest.raises(UnsupportedError, match=r"one level like `db`, found `db\.raw`"):
            refused_call()
    assert not store.namespace_exists(nested)
    assert not store.drop_namespace(nested)
    assert not store.update_namespace(nested, {"a": "b"}, ())
    assert store.namespace_properties(nested) is None
    assert (store.read(inside), store.list_names(nested), store.list_namespaces(("db",))) == (None, [], [])
    assert not glue.calls


@pytest.mark.parametrize("name", ["Orders", "my-table", "a b", "", "ü", "x" * 256, "tab\tle", "a.b"])
def test_new_names_follow_the_rules_of_glue(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, name: str
) -> None:
    glue.calls.clear()
    for call in (
        lambda: store.create(TableName(("db",), name), "a"),
        lambda: store.rename(orders, TableName(("db",), name)),
        lambda: store.create_namespace((name,), {}),
    ):
        with pytest.raises(InvalidInputError, match="lowercase letters, digits and underscores"):
            call()
    assert not glue.calls


def test_existing_names_are_read_whatever_they_are(glue: GlueProxy, store: GluePointerStore) -> None:
    glue.ask("CreateDatabase", DatabaseInput={"Name": "my-db"})
    store.create(theirs := TableName(("my-db",), "orders"), "a")
    assert store.swap(theirs, "a", "b")
    assert store.list_names(("my-db",)) == [theirs]


def test_names_are_not_checked_where_the_user_says_so(glue: GlueProxy) -> None:
    properties = {**glue.properties, "glue.skip-name-validation": "true"}
    store = GluePointerStore(glue_settings("glue://", properties))
    assert store.create_namespace(("my-db",), {})
    assert store.create(TableName(("my-db",), "my-table"), "a")
    with pytest.raises(InvalidInputError):
        store.create(TableName(("my-db",), "MyTable"), "a")
    store.close()
