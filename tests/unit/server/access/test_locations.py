"""Where the server lets tables write."""

import pytest

from bergline.server.context.context import ServerContext
from support.servers.asgi_client import SCHEMA, AsgiClient, set_property

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _db(client: AsgiClient) -> None:
    client.namespace("db")


@pytest.mark.parametrize(
    "body",
    [
        {"location": "file:///etc/orders"},
        {"location": "/etc/orders"},
        {"location": "s3://elsewhere/orders"},
        {"location": "file:///etc/../etc"},
    ],
)
def test_places_outside_the_warehouse_are_refused(client: AsgiClient, body: dict[str, str]) -> None:
    response = client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA, **body})
    assert response.error == (403, "ForbiddenException")
    assert client("GET", "/v1/namespaces/db/tables").json["identifiers"] == []


def test_steps_out_of_the_warehouse_are_refused_everywhere(client: AsgiClient, context: ServerContext) -> None:
    client.table()
    out = f"{context.settings.warehouse}/../../out"
    forbidden = (403, "ForbiddenException")
    assert client.commit({"action": "set-location", "location": out}).error == forbidden
    assert client.commit(set_property("write.metadata.path", out)).error == forbidden
    register = {"name": "r", "metadata-location": f"{context.settings.warehouse}/../catalog.db"}
    assert client("POST", "/v1/namespaces/db/register", register).error == forbidden
    assert client("POST", "/v1/namespaces/db/properties", {"updates": {"location": out}}).error == forbidden
    assert client("POST", "/v1/namespaces", {"namespace": ["x"], "properties": {"location": out}}).error == forbidden
    assert client("GET", ORDERS).json["metadata"]["properties"].keys() == {"write.parquet.compression-codec"}


def test_only_metadata_files_are_registered(client: AsgiClient, context: ServerContext) -> None:
    home = context.settings.warehouse
    for name, status in (("", 400), ("/data.parquet", 400), ("/no.metadata.json", 404), ("/x.metadata.json/y", 400)):
        body = {"name": "x", "metadata-location": f"{home}{name}"}
        assert client("POST", "/v1/namespaces/db/register", body).status == status
    assert client("POST", "/v1/namespaces/db/register", {"name": "x", "metadata-location": "/etc/passwd"}).status == 403


def test_location_that_no_disk_can_have_is_refused(client: AsgiClient, context: ServerContext) -> None:
    for stage, more in ((True, "d" * 300), (False, "d" * 300), (True, "d/" * 3000), (False, "d/" * 3000)):
        place = f"{context.settings.warehouse}/{more}"
        body = {"name": "x", "schema": SCHEMA, "stage-create": stage, "location": place}
        assert client("POST", "/v1/namespaces/db/tables", body).error == (400, "IllegalArgumentException")
