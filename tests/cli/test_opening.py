"""The lake that a command looks at."""

from pathlib import Path

import pytest

from bergline import Table
from support.processes.command_line import run_here


@pytest.mark.parametrize(
    "command", ["table list", "refs db.t", "table inspect db.t history", "explain-expiry db.t", "audit list"]
)
def test_looking_where_there_is_no_lake_creates_none(tmp_path: Path, command: str) -> None:
    done = run_here(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: no catalog at `sqlite:///./lake/catalog.db`: no such file\n"
        "hint: name one with --catalog, BERGLINE_CATALOG or in bergline.toml\n"
        "hint: `bergline quickstart` creates one to play with, `bergline serve` an empty one\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_looking_by_a_name_that_the_database_does_not_have_is_an_error(tmp_path: Path, orders: Table) -> None:
    done = run_here("table", "list", "--catalog", f"sqlite:///{tmp_path}/catalog.db", "--name", "lak", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: no catalog `lak` in {tmp_path}/catalog.db, which has `lake`\n"
        "hint: did you mean `lake`?\nhint: name one with --name\n"
    )


@pytest.mark.parametrize("text", ["s3.endpoint", "=x"])
def test_property_without_a_value_is_refused_and_not_shown(tmp_path: Path, orders: Table, text: str) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    done = run_here("table", "list", "--catalog", uri, "--property", text, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: expected --property key=value, found another text\n")


def test_databases_whose_paths_resemble_a_missing_one_are_named(tmp_path: Path, orders: Table) -> None:
    for typed in ("catalogue.db", "catalog.dbx"):
        done = run_here("table", "list", "--catalog", f"sqlite:///{tmp_path}/{typed}", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"hint: did you mean `sqlite:///{tmp_path}/catalog.db`?\n" in done.stderr
    (tmp_path / "lake").mkdir()
    (tmp_path / "catalog.db").rename(tmp_path / "lake" / "catalog.db")
    done = run_here("table", "list", "--catalog", "sqlite:///lakes/catalog.db", cwd=tmp_path)
    assert "hint: did you mean `sqlite:///lake/catalog.db`?\n" in done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("lake")] == ["lake"]
