"""Where the server lets tables write."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.server.handlers.context import ServerContext
from support.servers.asgi_client import SCHEMA, AsgiClient, set_property
from support.servers.granted_server import GrantedServer

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


def test_refused_purge_names_the_other_table_only_to_who_may_see_it(
    granted: GrantedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    granted.grant("create", "namespace db", "ann")
    mine = granted("ann", "POST", "/v1/namespaces/db/tables", {"name": "mine", "schema": SCHEMA}).json
    register = {"name": "secret", "metadata-location": mine["metadata-location"]}
    granted("root", "POST", "/v1/namespaces", {"namespace": ["other"]})
    assert granted("root", "POST", "/v1/namespaces/other/register", register).status == 200
    purge = "DELETE", "/v1/namespaces/db/tables/mine"
    hidden = granted("ann", *purge, query={"purgeRequested": "true"})
    assert hidden.error == (403, "ForbiddenException")
    assert hidden.message.startswith("cannot purge table `db.mine`: another table uses the same files; drop it")
    assert "`other.secret` uses the same files" in caplog.text
    assert "`other.secret` uses" in granted("root", *purge, query={"purgeRequested": "true"}).message
    granted.grant("read", "table other.secret", "ann")
    assert "`other.secret` uses" in granted("ann", *purge, query={"purgeRequested": "true"}).message
    assert granted("ann", "GET", "/v1/namespaces/db/tables/mine").status == 200


def test_refused_purge_says_nothing_of_a_table_that_cannot_be_read(granted: GrantedServer) -> None:
    granted.grant("create", "namespace db", "ann")
    mine = granted("ann", "POST", "/v1/namespaces/db/tables", {"name": "mine", "schema": SCHEMA}).json
    broken = f"{mine['metadata']['location']}/metadata/broken.metadata.json"
    granted.context.catalog.store.swap(TableName(("db",), "secret"), None, broken)
    refused = granted("ann", "DELETE", "/v1/namespaces/db/tables/mine", query={"purgeRequested": "true"})
    assert refused.status == 403
    assert "what another table or view uses cannot be read" in refused.message
    assert "secret" not in refused.message
    assert "broken" not in refused.message
