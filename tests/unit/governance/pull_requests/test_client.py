"""Pull requests through a proxy that loses responses."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.errors import CommitUnknownError, UnsupportedError
from bergline.governance.pull_requests.model import PullRequestState
from bergline.server.opening import open_server
from support.proxies.response_proxy import AnsweringProxy, Fate
from support.servers.scripted_rest_server import RestScript
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long
LOST = Fate("now", "nothing")
NEVER = Fate("never", "nothing")


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[AnsweringProxy]:
    """A server without idempotency keys, with a table and a branch `work`."""
    opened = open_server(f"sqlite:///{tmp_path}/catalog.db")
    lake = Lake(opened.catalog, "lake")
    lake.create_namespace("db")
    table = lake.create_table("db.orders", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}), branch="work")
    with on_socket(opened) as port, AnsweringProxy(f"http://127.0.0.1:{port}") as running:
        running.keys = False
        yield running
    opened.catalog.close()


def test_lost_responses_are_settled_by_the_pull_request(proxy: AnsweringProxy) -> None:
    with bergline.connect(proxy.uri) as lake:
        proxy.meet([LOST])
        request = lake.pull_requests.open("work", title="Rows")
        assert request.number == 1
        with pytest.raises(CommitUnknownError, match="cannot find out whether pull request `1` was changed"):
            request.comment("once")
        assert [entry.text for entry in request.look().comments] == ["once"]
        assert request.publish().state is PullRequestState.PUBLISHED
        assert lake.load_table("db.orders").scan().to_arrow().num_rows == 2


def test_publish_that_never_arrived_is_not_said_to_be_done(proxy: AnsweringProxy) -> None:
    with bergline.connect(proxy.uri) as lake:
        request = lake.pull_requests.open("work")
        proxy.meet([NEVER])
        with pytest.raises(CommitUnknownError):
            request.publish()
        assert request.look().record.state is PullRequestState.OPEN


def test_other_servers_have_none() -> None:
    with (
        RestScript(endpoints=[]) as server,
        bergline.connect(server.uri) as lake,
        pytest.raises(UnsupportedError, match="the server has none"),
    ):
        lake.pull_requests.list()
