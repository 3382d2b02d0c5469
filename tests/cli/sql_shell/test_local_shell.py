"""`bergline sql` without Spark: formats, limits, exit codes, and the engine that is chosen."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import new_table, open_lake
from support.processes.command_line import Terminal, run_here


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A lake with a table of six rows."""
    with open_lake(tmp_path) as lake:
        new_table(lake)
    return tmp_path


def sql(directory: Path, *arguments: str, engine: str = "duckdb", lines: str | None = None) -> Any:
    options = ("--engine", engine, "--catalog", f"sqlite:///{directory}/catalog.db")
    return run_here("sql", *arguments, *options, cwd=directory, stdin=None if lines is None else Terminal(lines))


def test_rows_as_table_csv_and_json(directory: Path) -> None:
    query = "SELECT id, region FROM db.orders WHERE id < 3 ORDER BY id"
    done = sql(directory, query, "--limit", "2")
    assert [line.split() for line in done.stdout.splitlines()] == [["id", "region"], ["0", "north"], ["1", "north"]]
    assert (done.returncode, done.stderr) == (0, "only the first 2 rows are shown: --limit takes more\n")
    assert sql(directory, query, "--format", "csv").stdout == "id,region\n0,north\n1,north\n2,south\n"
    rows = [json.loads(line) for line in sql(directory, "-e", query, "--json", engine="polars").stdout.splitlines()]
    assert rows[2] == {"id": 2, "region": "south"}


def test_statements_run_until_one_fails(directory: Path) -> None:
    done = sql(directory, "SELECT 1 AS a; INSERT INTO db.orders VALUES (1, 'x'); SELECT 2 AS b", "--json")
    assert (done.returncode, done.stdout) == (1, '{"a":1}\n')
    assert done.stderr.startswith("error: cannot run INSERT without Spark\nhint: ")


def test_without_java_the_best_local_engine_is_taken(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    done = sql(directory, "SELECT version() AS v", "--format", "csv", engine="auto")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith("v1.")


def test_settings_of_spark_are_refused(directory: Path) -> None:
    done = sql(directory, "SELECT 1", "--conf", "spark.x=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--conf" in done.stderr


def test_prompt_runs_statements_and_goes_on_after_an_error(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    done = sql(directory, "--format", "csv", lines="SELECT nope\nFROM db.orders;\nSELECT 1 AS one;\nquit\n")
    assert done.returncode == 0
    assert "one\n1\n" in done.stdout
    assert "This is duckdb" in done.stderr
    assert "error: DuckDB cannot run this" in done.stderr
    assert "1 row, " in done.stderr


def test_ref_of_the_lake_is_what_statements_see(directory: Path) -> None:
    with open_lake(directory) as lake:
        lake.branches.create("staging")
        lake.at("staging").load_table("db.orders").delete("id > 0")
    query = "SELECT count(*) AS n FROM db.orders"
    counts = [sql(directory, query, "--json", *ref).stdout for ref in (("--ref", "staging"), (), ("--ref", "main"))]
    assert counts == ['{"n":1}\n', '{"n":6}\n', '{"n":6}\n']
    done = sql(directory, query, "--ref", "stagin")
    assert done.returncode == 1
    assert done.stderr.startswith("error: no branch or tag `stagin` of the lake, and no table that has one")
