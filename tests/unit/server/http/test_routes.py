"""Endpoints are found by the path as it came."""

import re

import pytest
from starlette.routing import Match, Route

from bergline.catalog.rest.protocol.endpoints import LOAD_TABLE
from bergline.governance.endpoints import ENDPOINTS
from bergline.server.http.routes import endpoints_by_path
from support.servers.asgi_client import AsgiClient


@pytest.mark.parametrize("path", ["/v1", "/v1/nothing", "/v2/config", "//v1/config", "/v1/namespaces/", "/v1/%63"])
def test_unknown_paths_are_not_found(client: AsgiClient, path: str) -> None:
    assert client("GET", path).status in {404, 400}


def test_wrong_methods_are_named(client: AsgiClient) -> None:
    response = client("PUT", "/v1/namespaces")
    assert response.status == 405
    assert response.headers["allow"] == "GET, POST"


def test_address_that_holds_v1_already_is_said_to(client: AsgiClient) -> None:
    assert client("GET", "/v1/v1/config").message.endswith("; the address that clients are given ends before /v1")
    assert client("GET", "/v1/nothing").message == "no endpoint at /v1/nothing"


def test_path_is_matched_before_it_is_decoded() -> None:
    names = [
        route.matches({"type": "http", "method": "GET", "path": "/v1/namespaces/a%2Fb/tables/t"})[1]["path_params"]
        for path, endpoints in endpoints_by_path(ENDPOINTS).items()
        if LOAD_TABLE in endpoints.values()
        for route in (Route(path, endpoint=object),)
    ]
    assert names == [{"namespace": "a%2Fb", "table": "t"}]


def test_every_endpoint_is_found_by_its_own_path() -> None:
    routes = [(Route(path, endpoint=object), known) for path, known in endpoints_by_path(ENDPOINTS).items()]
    for endpoint in ENDPOINTS:
        path = re.sub(r"/\{prefix\}", "", endpoint.path)
        scope = {"type": "http", "method": endpoint.method, "path": re.sub(r"\{[^}]*\}", "x%2Fy", path)}
        found = [known for route, known in routes if route.matches(scope)[0] is Match.FULL]
        assert [known[endpoint.method] for known in found] == [endpoint]
