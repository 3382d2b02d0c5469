"""What the client sends, and what it makes of answers."""

import gzip
import json

import pytest

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import UnavailableError
from bergline.testing.catalog_suite import table_metadata
from support.servers.scripted_rest_server import Reply, RestScript, load_answer

pytestmark = pytest.mark.long

ORDERS = TableName(("db",), "orders")
TABLE = "/v1/namespaces/db/tables/orders"
LOAD = f"GET {TABLE}"


def loaded(location: str = "file:///lake/orders", number: int = 0) -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata(location), f"{location}/metadata/{number}.metadata.json")


def test_server_that_is_not_there_is_said_without_names_of_objects(server: RestScript) -> None:
    for uri, reason, hint in (
        ("http://127.0.0.1:9", "cannot reach http://127.0.0.1:9: connection refused", "is the server running"),
        (server.uri.replace("http:", "https:"), "SSL", "does not speak https"),
    ):
        with pytest.raises(UnavailableError, match=reason) as caught:
            RestCatalog(uri, {}, sleep=lambda _: None)
        assert "HTTP" not in str(caught.value)
        assert hint in caught.value.hints[0]


def test_compressed_answer_is_read(server: RestScript, catalog: RestCatalog) -> None:
    data = gzip.compress(json.dumps(load_answer(loaded())).encode())
    server.on(LOAD, Reply(body=data, headers={"Content-Encoding": "gzip"}))
    assert catalog.load_table(ORDERS).name == ORDERS
