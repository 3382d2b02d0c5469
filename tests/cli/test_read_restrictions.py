"""The commands and the console on a table whose REST catalog restricts its readers: they show none of its values."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import bergline
from bergline.console.page import Source
from bergline.console.pages.registry import PAGES
from bergline.errors import BerglineError
from support.processes.command_line import run_here
from support.proxies.restricted_server import restricted_server
from support.proxies.restricting_proxy import MASKS, ROW_FILTER, RestrictingProxy

pytestmark = pytest.mark.long
REFUSED = "its catalog demands a row filter and column masks of its readers"
SHOWS_ROWS = [
    "read db.people",
    "read db.people --at work --json",
    "read db.people -o rows.parquet",
    "table files db.people",
    "table partitions db.people",
    "table inspect db.people files",
    "table inspect db.people entries",
    "table inspect db.people manifests",
    "branch diff db.people main work",
    "compact db.people",
    'sql "SELECT * FROM db.people"',
    'sql "SELECT count(*) FROM db.people"',
    'sql "SHOW PARTITIONS db.people"',
]
SHOWS_METADATA = [
    "table show db.people",
    "table schema db.people",
    "table list",
    "table inspect db.people snapshots",
    "refs db.people",
    "log db.people",
    "explain-expiry db.people",
    "check",
]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestrictingProxy]:
    with restricted_server(tmp_path_factory.mktemp("restricted")) as running:
        running.restrictions = ROW_FILTER | MASKS
        yield running


def _arguments(command: str) -> list[str]:
    before, quote, text = command.partition('"')
    return [*before.split(), *([text.rstrip('"')] if quote else [])]


@pytest.mark.parametrize("command", SHOWS_ROWS)
def test_commands_that_show_rows_or_bounds_are_refused(command: str, proxy: RestrictingProxy, tmp_path: Path) -> None:
    done = run_here(*_arguments(command), "--catalog", proxy.uri, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert REFUSED in done.stderr.replace("\n", " ")
    assert "-secret" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", SHOWS_METADATA)
def test_commands_about_metadata_work(command: str, proxy: RestrictingProxy, tmp_path: Path) -> None:
    done = run_here(*_arguments(command), "--catalog", proxy.uri, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "-secret" not in done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("query", [{}, {"ref": "work"}, {"from": "main", "to": "work"}])
def test_no_page_shows_values(page: str, query: dict[str, str], proxy: RestrictingProxy) -> None:
    with bergline.connect(proxy.uri) as lake:
        snapshot = str(lake.load_table("db.people").metadata.current_snapshot_id)
        source = Source(lake, 1_900_000_000_000, "ann", may_change=True)
        try:
            shown = msgspec.json.encode(
                PAGES[page].handler(source, {"name": "db.people", "id": snapshot, **query}).values
            )
        except BerglineError as error:
            shown = json.dumps([error.message, error.hints]).encode()
    assert b"-secret" not in shown
    if page in {"table/rows", "table/files"} or (page == "table/difference" and "from" in query):
        assert REFUSED.encode() in shown
