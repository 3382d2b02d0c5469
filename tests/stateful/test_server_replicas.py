"""Two `bergline serve` on one PostgreSQL whose connections break: nothing told is lost, nothing loaded is stale."""

import http.client
import itertools
import json
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from support.fixtures.concurrency import LONG_S, AtOnce, run_for_each
from support.fixtures.seeds import seeded_random
from support.proxies.postgres_proxy import PostgresProxy, postgres_proxy
from support.servers.asgi_client import SCHEMA, AsgiResponse, set_branch, snapshot
from support.servers.bergline_server import BerglineServer

pytestmark = pytest.mark.server
TABLE = "/v1/namespaces/db/tables/orders"
COMMITS = max(6, int(os.environ.get("BERGLINE_EXAMPLES", "0")) // 10)
SERVER_FAILS = 500
UNSURE = {
    (503, "ServiceUnavailableException"),
    (500, "CommitStateUnknownException"),
    (504, "CommitStateUnknownException"),
}
IDS = itertools.count(1)


class Replicas:
    """Two servers; a change whose outcome nobody knows is sent again with its key, to the other one."""

    def __init__(self, uris: tuple[str, str]) -> None:
        self._hosts = [urlsplit(uri).netloc for uri in uris]

    def send(self, which: int, method: str, path: str, body: Any = None, key: str | None = None) -> AsgiResponse:
        connection = http.client.HTTPConnection(self._hosts[which % 2], timeout=LONG_S)
        headers = {"Idempotency-Key": key} if key else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        response = AsgiResponse(answer.status, [(k.lower(), v) for k, v in answer.getheaders()], answer.read())
        connection.close()
        return response

    def sure(self, which: int, method: str, path: str, body: Any = None) -> AsgiResponse:
        """The first answer that is no failure of the server."""
        key, end = str(uuid4()), time.monotonic() + LONG_S
        while time.monotonic() < end:
            response = self.send(which, method, path, body, None if method == "GET" else key)
            if response.status < SERVER_FAILS:
                return response
            assert response.error in UNSURE
            which += 1
            time.sleep(0.02)
        raise AssertionError(response)


@pytest.fixture(scope="module")
def proxy(postgres: str) -> Iterator[tuple[PostgresProxy, str]]:
    with postgres_proxy(postgres) as both:
        yield both


@pytest.fixture(scope="module")
def replicas(proxy: tuple[PostgresProxy, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    place = tmp_path_factory.mktemp("replicas")
    options = ("--catalog", proxy[1], "--warehouse", str(place / "warehouse"), "--name", uuid4().hex)
    with BerglineServer(place, *options) as one, BerglineServer(place, *options) as other:
        yield Replicas((one.uri, other.uri))


def write(replicas: Replicas, writer: int, response: dict[int, int], errors: list[str]) -> None:
    """Commits to the writer's own branch, or to `main`, through one server after the other."""
    dice, done = seeded_random(writer), 0
    while done < COMMITS:
        here = dice.randrange(2)
        metadata = replicas.sure(here, "GET", TABLE).json["metadata"]
        ref = dice.choice(["main", f"own{writer}"])
        head = metadata["refs"].get(ref, {}).get("snapshot-id")
        made = next(IDS)
        body = {
            "requirements": [{"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": head}],
            "updates": [snapshot(made, metadata["last-sequence-number"] + 1, head), set_branch(ref, made)],
        }
        answer = replicas.sure(here, "POST", TABLE, body)
        response[made] = answer.status
        if answer.status not in {200, 409}:
            errors.append(str(answer))
        if response[made] != 200:
            continue
        done += 1
        seen = replicas.sure(here + 1, "GET", TABLE)
        if made not in {s["snapshot-id"] for s in seen.json["metadata"]["snapshots"]}:
            errors.append(f"{made} is not there on the other server")


def test_nothing_is_lost_or_stale_while_connections_to_the_database_break(
    replicas: Replicas, proxy: tuple[PostgresProxy, str]
) -> None:
    assert replicas.sure(0, "POST", "/v1/namespaces", {"namespace": ["db"]}).status == 200
    quick = {"commit.status-check.min-wait-ms": "20", "commit.status-check.num-retries": "20"}
    body = {"name": "orders", "schema": SCHEMA, "properties": quick}
    assert replicas.sure(1, "POST", "/v1/namespaces/db/tables", body).status == 200
    response: dict[int, int] = {}
    errors: list[str] = []
    writers = AtOnce(*(partial(write, replicas, n, response, errors) for n in range(4)))
    dice = seeded_random(8)
    fates = ["before", "amid", "after"]
    proxy[0].cut = lambda data: dice.choice(fates) if b"COMMIT\0" in data and dice.random() < 0.2 else None
    writers.start()
    end = time.monotonic() + LONG_S
    while len(response) < COMMITS:
        assert time.monotonic() < end, errors
        time.sleep(0.02)
    proxy[0].shut()
    time.sleep(0.5)
    proxy[0].is_shut = False
    writers.join()
    proxy[0].cut = lambda _: None
    both = [replicas.sure(which, "GET", TABLE) for which in range(2)]
    assert both[0].json == both[1].json
    assert both[0].headers["etag"] == both[1].headers["etag"]
    there = {s["snapshot-id"] for s in both[0].json["metadata"]["snapshots"]}
    assert errors == []
    assert {made for made, status in response.items() if status == 200} == there
    assert set(response.values()) <= {200, 409}


def test_one_key_through_both_servers_at_once_happens_once(replicas: Replicas) -> None:
    assert replicas.sure(0, "POST", "/v1/namespaces", {"namespace": ["twins"]}).status == 200
    key, response = str(uuid4()), []
    body = {"name": "orders", "schema": SCHEMA}

    def create(which: int) -> None:
        response.append(replicas.send(which, "POST", "/v1/namespaces/twins/tables", body, key))

    run_for_each(create, range(20))
    assert [t.status for t in response] == [200] * 20
    assert len({t.json["metadata-location"] for t in response}) == 1
