"""Names that a table or a view has already."""

import pytest

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import AlreadyExistsError, CommitUnknownError
from bergline.testing.catalog_suite import table_metadata
from support.servers.scripted_rest_server import Reply, RestScript, load_answer, refused

pytestmark = pytest.mark.long


ORDERS = TableName(("db",), "orders")


TABLE = "/v1/namespaces/db/tables/orders"


LOAD, COMMIT = f"GET {TABLE}", f"POST {TABLE}"


REGISTER = "POST /v1/namespaces/db/register"


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


def test_name_that_is_taken_and_cannot_be_seen_is_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(409, "AlreadyExistsException"))
    server.on(LOAD, refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="cannot find out whether"):
        catalog.create_table(base.name, base.metadata)


def test_name_that_is_taken_is_not_registered_again(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(LOAD, shown(base))
    with pytest.raises(AlreadyExistsError):
        catalog.register_table(ORDERS, base.metadata_location)
    assert server.sent(REGISTER) == []
