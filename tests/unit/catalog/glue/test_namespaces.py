"""Namespaces as databases of AWS Glue."""

from collections.abc import Iterator

import pytest

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.settings import glue_settings
from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError
from support.servers.glue_server import GlueProxy


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def store(glue: GlueProxy, waits: list[float]) -> Iterator[GluePointerStore]:
    opened = GluePointerStore(glue_settings("glue://", glue.properties), sleep=waits.append)
    opened.create_namespace(("db",), {})
    yield opened
    opened.close()


def test_table_needs_its_namespace(store: GluePointerStore) -> None:
    with pytest.raises(NotFoundError, match="no namespace `nope`"):
        store.create(TableName(("nope",), "orders"), "a")


def test_comment_and_location_of_a_namespace_stand_where_java_keeps_them(
    glue: GlueProxy, store: GluePointerStore
) -> None:
    store.create_namespace(("sales",), {"comment": "ours", "location": "s3://b/sales", "owner": "us"})
    database = glue.ask("GetDatabase", Name="sales")["Database"]
    assert (database["Description"], database["LocationUri"], database["Parameters"]) == (
        "ours",
        "s3://b/sales",
        {"owner": "us"},
    )
    store.update_namespace(("sales",), {"owner": "them"}, {"comment"})
    assert store.namespace_properties(("sales",)) == {"location": "s3://b/sales", "owner": "them"}
