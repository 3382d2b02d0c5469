"""Error responses: which error they mean, and whether they are certain."""

import pytest

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import (
    AuthenticationError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from bergline.testing.catalog_suite import append, table_metadata
from support.servers.scripted_rest_server import Reply, RestScript, load_answer, refused

pytestmark = pytest.mark.long


ORDERS = TableName(("db",), "orders")


TABLE = "/v1/namespaces/db/tables/orders"


LOAD = f"GET {TABLE}"
COMMIT = "POST /v1/namespaces/db/tables/orders"


def test_page_that_was_not_found_is_no_table_that_was_not_found(server: RestScript, catalog: RestCatalog) -> None:
    server.on(LOAD, Reply(404, b"<html>default backend - 404</html>"))
    with pytest.raises(UnavailableError, match="without an error of the protocol") as caught:
        catalog.load_table(ORDERS)
    assert "a proxy in between" in caught.value.hints[0]


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(400, "BadRequestException"), InvalidInputError),
        (refused(401, "NotAuthorizedException"), AuthenticationError),
        (refused(403, "ForbiddenException"), RefusedError),
        (refused(404, "NoSuchTableException"), NotFoundError),
        (refused(406, "UnsupportedOperationException"), UnsupportedError),
    ],
)
def test_refusals_are_our_errors(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, reply: Reply, error: type[Exception]
) -> None:
    server.on(COMMIT, reply)
    server.on(LOAD, shown(base))
    with pytest.raises(error):
        catalog.commit((append(base),))
    assert len(server.sent(COMMIT)) == 1
