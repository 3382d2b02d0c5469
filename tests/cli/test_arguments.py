"""States as people type them, and completion by what the lake has."""

import datetime as dt
import os
from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.cli.arguments import parse_state
from support.fixtures.rows import order_rows
from support.processes.command_line import run_here


def test_a_state_is_a_ref_an_id_or_a_time(orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("2026-01-31")
    orders.refs.create_tag("77")
    assert parse_state(orders, "main") == "main"
    assert parse_state(orders, "77") == "77"
    assert parse_state(orders, "78") == 78
    assert parse_state(orders, "2026-01-31") == "2026-01-31"
    moment = dt.datetime(2026, 1, 30, 12, tzinfo=dt.UTC)
    assert parse_state(orders, "2026-01-30T12:00Z") == moment
    assert parse_state(orders, "2026-01-30 13:00+01:00") == moment
    assert parse_state(orders, "2026-01-30x") == "2026-01-30x"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("bergline re", ["read", "refs", "restore", "revoke"]),
        ("bergline table sh", ["show"]),
        ("bergline refs db.o", ["db.orders"]),
        ("bergline branch drop db.orders st", ["staging"]),
        ("bergline read db.orders --at v", ["v1"]),
        ("bergline read db.nothing --at v", []),
    ],
)
def test_names_are_completed(
    words: str, found: list[str], tmp_path: Path, lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bergline.toml").write_text('catalog = "sqlite:///catalog.db"')
    orders.append(order_rows(1)).refs.create_tag("v1")
    orders.refs.create_branch("staging")
    monkeypatch.setenv("_BERGLINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    done = run_here(cwd=tmp_path)
    assert (sorted(done.stdout.split()), done.stderr) == (found, "")


def test_completion_where_there_is_no_lake_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("_BERGLINE_COMPLETE", "complete_bash"),
        ("COMP_WORDS", "bergline refs d"),
        ("COMP_CWORD", "2"),
    ):
        monkeypatch.setenv(name, value)
    assert os.environ["COMP_CWORD"] == "2"
    done = run_here(cwd=tmp_path)
    assert (done.stdout.strip(), done.stderr, list(tmp_path.iterdir())) == ("", "", [])
