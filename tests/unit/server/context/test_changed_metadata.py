"""Metadata files that were exchanged behind the server's back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bergline.server.context.changed_metadata import METADATA_CHANGED
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.servers.asgi_client import AsgiClient, set_property

ORDERS = "/v1/namespaces/db/tables/orders"


@contextmanager
def started(tmp_path: Path) -> Iterator[tuple[AsgiClient, ServerContext]]:
    """A server that is started on a catalog, which other servers may have had before."""
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    with AsgiClient(context) as client:
        yield client, context
    context.catalog.close()


@pytest.fixture
def pointer(tmp_path: Path) -> Path:
    """The metadata file of a table that a server has made, and which has stopped since."""
    with started(tmp_path) as (client, _):
        client.namespace("db")
        client.table()
        client.commit(set_property("a", "old"))
        location: str = client("GET", ORDERS).json["metadata-location"]
    return Path(location.removeprefix("file://"))


def test_a_table_whose_metadata_file_was_exchanged_is_not_served(
    tmp_path: Path, pointer: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = pointer.read_bytes()
    pointer.write_bytes(before.replace(b'"old"', b'"new"'))
    with started(tmp_path) as (client, context):
        for _ in range(2):
            refused = client("GET", ORDERS)
            assert refused.error == (500, "MetadataChangedException")
            assert "the metadata file of table `db.orders` is not the one that was written" in refused.message
            assert "bergline accept-metadata db.orders" in refused.message
        assert client.commit(set_property("b", "c")).status == 500
        assert client("DELETE", ORDERS).status == 500  # its rules cannot be known
        assert client("POST", f"{ORDERS}/plan", {}).status == 500
        assert caplog.text.count("the metadata file of table/db/orders is not the one that was written") == 1
        noted = [entry for entry in context.records.audit() if entry.operation == METADATA_CHANGED]
        assert [(e.resource, e.metadata_location) for e in noted] == [("table/db/orders", f"file://{pointer}")]
        pointer.write_bytes(before)
        assert client("GET", ORDERS).json["metadata"]["properties"]["a"] == "old"
        assert client.commit(set_property("b", "c")).status == 200


def test_files_that_no_pointer_leads_to_are_not_looked_at(tmp_path: Path, pointer: Path) -> None:
    with started(tmp_path) as (client, _):
        assert client.commit(set_property("a", "newer")).status == 200
    pointer.write_bytes(b"{}")
    with started(tmp_path) as (client, _):
        assert client("GET", ORDERS).status == 200
