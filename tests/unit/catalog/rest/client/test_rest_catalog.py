"""The REST catalog as a whole."""

from pathlib import Path

import pytest

import bergline
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import ConflictError, UnavailableError
from bergline.format.metadata.table_metadata import SeenAt
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.scripted_rest_server import RestScript
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long


def test_closed_catalog_takes_no_calls(server: RestScript) -> None:
    catalog = RestCatalog(server.uri, {})
    catalog.close()
    with pytest.raises(UnavailableError, match="closed"):
        catalog.list_namespaces()


def test_rows_of_another_ref_of_the_lake_are_no_conflict(tmp_path: Path) -> None:
    context = open_server(new_catalog_uri(tmp_path / "catalog.db"))
    with on_socket(context) as port, bergline.connect(f"http://127.0.0.1:{port}") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        table.refs.create_branch("staging")
        with bergline.connect(f"http://127.0.0.1:{port}", warehouse="lake@staging") as staging:
            seen = staging.load_table("db.orders").append(order_rows(2))
            read = seen.scan()
            assert (seen.metadata.seen_at, table.metadata.seen_at) == (SeenAt("staging", is_branch=True), None)
            staging.load_table("db.orders").overwrite(table.refresh().scan())
            assert ids(staging.load_table("db.orders").scan().to_arrow()) == [1]
            with pytest.raises(ConflictError):
                table.refresh().overwrite(read, branch="staging")
    context.catalog.close()


@pytest.mark.parametrize("prefix", ["branch.~zz", "tag.", "time.never", "branch", "main"])
def test_other_servers_have_prefixes_of_their_own(server: RestScript, prefix: str) -> None:
    catalog = RestCatalog(server.uri, {"prefix": prefix})
    assert catalog.session.settings.text("prefix") == prefix
    catalog.close()
