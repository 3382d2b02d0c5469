"""Health, readiness, metrics."""

from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient


def test_pages_of_the_server_are_only_read(client: AsgiClient) -> None:
    for path in ("/health", "/ready", "/metrics", "/openapi.json"):
        assert client("HEAD", path).status == 200
        response = client("DELETE", path)
        assert response.error == (405, "UnsupportedOperationException")
        assert response.headers["allow"] == "GET, HEAD"


def test_health_readiness_and_metrics(client: AsgiClient, context: ServerContext) -> None:
    assert client("GET", "/health").json == {"status": "ok"}
    assert client("GET", "/ready").json == {"status": "ready"}
    client("GET", "/v1/namespaces")
    text = client("GET", "/metrics").body.decode()
    assert 'bergline_requests_total{operation="list_namespaces",status="200"} 1' in text
    assert 'bergline_request_seconds_count{operation="list_namespaces"} 1' in text
    context.catalog.close()
    assert client("GET", "/ready").status == 400
    assert client("GET", "/health").status == 200
