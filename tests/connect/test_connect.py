"""The smoke set over Spark Connect, with a server in a process of its own."""

from collections.abc import Iterator

import pytest

from support.processes.smoke_checks import CHECKS
from support.processes.smoke_connect_checks import CONNECT_CHECKS
from support.processes.smoke_run import Results, run_smoke
from support.servers.connect_server import running_connect_server
from support.servers.peers import needs_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """What came of each check."""
    needs_java()
    with running_connect_server(tmp_path_factory.mktemp("connect-server")) as address:
        yield run_smoke(tmp_path_factory.mktemp("connect"), SPARK_REMOTE=address)


@pytest.mark.parametrize("check", [*CHECKS, *CONNECT_CHECKS])
def test_over_spark_connect(check: str, results: Results) -> None:
    assert results[check] is None, results[check]
