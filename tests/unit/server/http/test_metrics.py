"""Counts and durations for Prometheus."""

import pytest

from bergline.server.http.metrics import Metrics
from support.servers.asgi_client import AsgiClient

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _db(client: AsgiClient) -> None:
    client.namespace("db")


def test_reports_of_clients_are_counted_by_kind(client: AsgiClient) -> None:
    client.table()
    name = "bergline_client_reports_total"

    def counted() -> list[str]:
        lines = client("GET", "/metrics").body.decode().splitlines()
        return [line.removeprefix(name) for line in lines if line.startswith(name)]

    assert counted() == ['{kind="scan"} 0', '{kind="commit"} 0', '{kind="other"} 0']
    for kind in ("scan-report", "commit-report", "scan-report", 'any"text\n', "other"):
        assert client("POST", f"{ORDERS}/metrics", {"report-type": kind}).status == 204
    assert client("POST", "/v1/namespaces/db/tables/none/metrics", {"report-type": "scan-report"}).status == 404
    assert client("POST", f"{ORDERS}/metrics", {"report-type": 1}).status == 400
    assert counted() == ['{kind="scan"} 2', '{kind="commit"} 1', '{kind="other"} 2']


def test_durations_are_counted_in_every_bucket_above_them() -> None:
    metrics = Metrics()
    metrics.count("load_table", 200, 0.002)
    metrics.count("load_table", 404, 60.0)
    lines = metrics.render({"load_cache_hits_total": 3}).splitlines()
    assert 'bergline_requests_total{operation="load_table",status="404"} 1' in lines
    bucket = 'bergline_request_seconds_bucket{operation="load_table",le='
    found = [line.removeprefix(bucket) for line in lines if line.startswith(bucket)]
    assert (found[0], found[1], found[-2], found[-1]) == ('"0.001"} 0', '"0.0025"} 1', '"30.0"} 1', '"+Inf"} 2')
    assert lines[-2:] == ["# TYPE bergline_load_cache_hits_total counter", "bergline_load_cache_hits_total 3"]
