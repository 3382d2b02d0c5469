"""Pages in a browser, and a server without tokens."""

import pytest

from bergline.server.access.authenticator import Authenticator
from bergline.server.app import Application
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient

CREATE = ("POST", "/v1/namespaces", {"namespace": ["db"]})


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "http://localhost:3000", "null", ""])
def test_pages_of_other_sites_change_nothing(client: AsgiClient, origin: str) -> None:
    response = client(*CREATE, headers={"Host": "localhost:8181", "Origin": origin})
    assert response.error == (403, "ForbiddenException")
    assert client("GET", "/v1/namespaces").json["namespaces"] == []


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8181", "a.localhost:1", "127.0.0.1:8181", "[::1]:8181", "10.0.0.7"]
)
def test_own_pages_and_programs_come_in(client: AsgiClient, host: str) -> None:
    assert client("GET", "/v1/config", headers={"Host": host}).status == 200
    assert client(*CREATE, headers={"Host": host, "Origin": f"http://{host}"}).status == 200


@pytest.mark.parametrize(
    "host", ["elsewhere.example:8181", "127.0.0.1.elsewhere.example", "localhost.example", "[x", ":1"]
)
def test_names_that_others_gave_this_machine_are_refused(client: AsgiClient, host: str) -> None:
    assert client("GET", "/v1/config", headers={"Host": host}).error == (403, "ForbiddenException")
    assert client("GET", "/health", headers={"Host": host}).status == 200


def test_every_name_is_right_where_everybody_may_come_in(context: ServerContext) -> None:
    with AsgiClient(context, Application(context, any_host=True)) as client:
        assert client("GET", "/v1/config", headers={"Host": "catalog:8181"}).status == 200
        assert client(*CREATE, headers={"Host": "catalog:8181", "Origin": "http://other"}).status == 403


def test_tokens_are_enough(context: ServerContext) -> None:
    context.records.tokens.create("ann", "bl_x", 0, None)
    context.authenticator = Authenticator(context.records)
    with AsgiClient(context) as client:
        headers = {"Host": "catalog.example", "Origin": "https://notebook.example", "Authorization": "Bearer bl_x"}
        assert client(*CREATE, headers=headers).status == 200
