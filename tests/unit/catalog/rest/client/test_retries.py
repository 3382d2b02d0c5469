"""What is sent again, and how long after."""

from email.utils import formatdate

import pytest
from scripted_rest_server import NO_ANSWER, Reply, RestScript, load_answer

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import StorageError, UnavailableError
from bergline.testing.catalog_suite import table_metadata

ORDERS = TableName(("db",), "orders")
LOAD = "GET /v1/namespaces/db/tables/orders"
LOADED = LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


@pytest.mark.parametrize("broken", [NO_ANSWER, Reply(500), Reply(502), Reply(503), Reply(504), Reply(429), Reply(524)])
def test_reading_is_tried_again(server: RestScript, catalog: RestCatalog, waits: list[float], broken: Reply) -> None:
    server.on(LOAD, broken, broken, broken, Reply(body=load_answer(LOADED)))
    assert catalog.load_table(ORDERS).name == ORDERS
    assert len(waits) == 3
    server.on(LOAD, broken)
    with pytest.raises((UnavailableError, StorageError)):
        catalog.load_table(ORDERS)


@pytest.mark.parametrize(("asked", "least", "most"), [("3", 3, 3), (formatdate(2e9), 30, 30), ("soon", 0, 1)])
def test_server_says_how_long_to_wait(
    server: RestScript, catalog: RestCatalog, waits: list[float], asked: str, least: float, most: float
) -> None:
    server.on(LOAD, Reply(503, headers={"Retry-After": asked}), Reply(body=load_answer(LOADED)))
    catalog.load_table(ORDERS)
    assert least <= waits[0] <= most
