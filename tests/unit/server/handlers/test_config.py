"""The configuration that clients load first."""

from pathlib import Path

from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, SIGN_REQUEST, TRASH_ENDPOINTS
from bergline.governance.endpoints import ENDPOINTS
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.servers.asgi_client import AsgiClient

OWN = {"bergline.may-move": "true", "bergline.assert-ref-retention": "true"}


def test_config_lists_every_endpoint(client: AsgiClient) -> None:
    config = client("GET", "/v1/config").json
    assert config["endpoints"] == [
        str(e) for e in ENDPOINTS if e not in {*ALWAYS_THERE, *TRASH_ENDPOINTS, SIGN_REQUEST}
    ]
    assert (config["defaults"], config["overrides"]) == ({}, OWN)


def test_config_knows_its_warehouse_alone(client: AsgiClient, context: ServerContext) -> None:
    for warehouse in ("lake", "", context.settings.warehouse or ""):
        assert client("GET", "/v1/config", query={"warehouse": warehouse}).status == 200
    assert client("GET", "/v1/config", query={"warehouse": "other"}).error == (404, "NoSuchWarehouseException")


def test_advertised_separator_is_understood_beside_the_usual_one(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/catalog.db", separator="%2E", properties={"s3.region": "x"})
    with AsgiClient(context) as client:
        config = client("GET", "/v1/config").json
        assert config["overrides"] == {"namespace-separator": "%2E", **OWN}
        assert config["defaults"] == {"s3.region": "x"}
        client.namespace("a", "b")
        for path in ("a%1Fb", "a%2Eb", "a.b"):
            assert client("GET", f"/v1/namespaces/{path}").json["namespace"] == ["a", "b"]
    context.catalog.close()


def test_secrets_do_not_reach_clients(tmp_path: Path) -> None:
    secrets = {"s3.access-key-id": "me", "s3.secret-access-key": "hush", "s3.session-token": "t"}
    context = open_server(f"sqlite:///{tmp_path}/catalog.db", properties=secrets)
    with AsgiClient(context) as client:
        assert client("GET", "/v1/config").json["defaults"] == {}
    context.catalog.close()
