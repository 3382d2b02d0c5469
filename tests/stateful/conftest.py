"""Writers for all tests here, the catalogs that they share, and what their runs took."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.processes.writers import Writers

WRITERS = 8
_RUNS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def writers() -> Iterator[Writers]:
    """Writers in processes of their own, ready to go."""
    with Writers(WRITERS) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Arguments of `connect` for a new lake that many processes can open."""
    match request.param:
        case "sqlite":
            return {"uri": f"sqlite:///{tmp_path}/catalog.db"}
        case "postgres":
            uri = request.getfixturevalue("postgres")
            return {"uri": uri, "warehouse": str(tmp_path / "warehouse"), "name": uuid.uuid4().hex}
        case "s3":
            bucket, server = request.getfixturevalue("bucket"), request.getfixturevalue("s3_server")
            return {"uri": f"{bucket}/lake", "properties": server.properties}
        case "version files":
            return {"uri": f"file://{tmp_path}/lake"}
        case kind:
            pytest.fail(f"no such catalog: {kind}")


@pytest.fixture
def took(request: pytest.FixtureRequest) -> Any:
    """Takes what a run took, to be shown at the end."""
    runs = request.config.stash.setdefault(_RUNS, [])
    return lambda what: runs.append(f"{request.node.name}: {what}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The figures of the runs that many writers took part in."""
    if runs := config.stash.get(_RUNS, []):
        terminalreporter.section("writers at the same time")
        for run in runs:
            terminalreporter.write_line(run)
