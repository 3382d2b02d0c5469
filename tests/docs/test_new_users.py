"""The pages for newcomers: their examples run, in the engines that they show."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bergline import Lake, connect
from bergline.cli.main import COMMANDS
from support.doc_examples import code_blocks, output_of_example, statements
from support.paths import ROOT
from support.processes.command_line import run_here
from support.servers.bergline_server import BerglineServer
from support.servers.peers import duckdb_connection


@pytest.mark.server
def test_first_table_in_five_minutes_and_a_second_engine_that_reads_it(tmp_path: Path) -> None:
    printed = output_of_example("guides/first-steps.md", tmp_path).splitlines()
    assert printed[0] == "2 3 1"
    assert "`staging` against `main`" in printed[1]
    assert printed[-2:] == ["[1, 3]", "[1, 2, 3]"]
    with BerglineServer(tmp_path / "first") as server:
        assert in_duckdb("guides/first-steps.md", server) == [("eu", 15.0)]


def test_commands_of_the_first_page_run(tmp_path: Path) -> None:
    lines = "".join(code_blocks("guides/first-steps.md", "sh")).splitlines()
    commands = [line for line in lines if re.match(r"bergline (?!ui|serve)|cd ", line)]
    assert len(commands) == 4
    script = "\n".join(["set -e", *commands])
    path = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],  # noqa: S607
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "experiment" in done.stdout
    assert "monday" in done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "guides").glob("*.md")), ids=lambda p: p.name)
def test_commands_in_guides_are_there(path: Path) -> None:
    shell = "".join(code_blocks(f"guides/{path.name}", "sh"))
    used = set(re.findall(r"^bergline ([a-z-]+)", shell, re.MULTILINE))
    used |= set(re.findall(r"`bergline ([a-z-]+)[^`\n]*`", path.read_text()))
    assert used <= set(COMMANDS)


@pytest.mark.server
def test_duckdb_creates_writes_and_reads_as_the_page_says(tmp_path: Path) -> None:
    with BerglineServer(tmp_path) as server:
        assert in_duckdb("guides/other-engines.md", server) == [("eu", 1), ("us", 1)]


def in_duckdb(name: str, server: BerglineServer) -> list[tuple[object, ...]]:
    """What the last statement of a page's first block of SQL returns in DuckDB."""
    with duckdb_connection() as connection:
        for statement in statements(code_blocks(name, "sql")[0]):
            found = connection.execute(statement.replace("http://127.0.0.1:8181", server.uri))
        return found.fetchall()


@pytest.mark.server
@pytest.mark.parametrize("engine", ["Trino", "Flink"])
def test_lines_of_the_page_are_those_that_the_server_prints(engine: str, tmp_path: Path) -> None:
    (trino,), (_, flink) = (code_blocks("guides/other-engines.md", language) for language in ("text", "sql"))
    with BerglineServer(tmp_path) as server:
        printed = server.connection_examples[engine].replace(server.uri, "http://127.0.0.1:8181")
    shown = {"Trino": trino, "Flink": flink}[engine]
    assert {line.strip() for line in printed.splitlines()} - {"fs.hadoop.enabled=true"} <= set(shown.splitlines())


def test_those_who_come_from_pyiceberg_go_on_with_their_tables(tmp_path: Path) -> None:
    assert output_of_example("guides/from-pyiceberg.md", tmp_path) == "[1, 2, 3]\n"


def test_a_table_of_another_catalog_is_registered(tmp_path: Path) -> None:
    assert output_of_example("guides/from-official-runtime.md", tmp_path) == "1\n"


@pytest.mark.spark
@pytest.mark.parametrize("name", ["from-official-runtime", "from-delta"])
def test_statements_for_those_who_come_run_on_spark(name: str, spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("db", if_not_exists=True)
    (example,) = code_blocks(f"guides/{name}.md", "sql")
    results = [spark.sql(statement).collect() for statement in statements(example)]
    if name == "from-delta":
        assert [results[4], results[-1]] == [[(2,)], [(2,)]]
    else:
        assert results[-2] == [(3,)]


def test_a_lake_is_restored_and_brought_forward(tmp_path: Path) -> None:
    said = [
        run_here(*shlex.split(line)[1:], cwd=tmp_path)
        for line in code_blocks("guides/production.md", "sh")[-1].splitlines()
    ]
    assert [done.returncode for done in said] == [0] * 6
    assert "1 of tables that moved on after the backup" in said[3].stdout
    assert "1 table brought forward to the newest metadata file" in said[4].stdout
    with (
        connect(f"sqlite:///{tmp_path}/prod/catalog.db") as lake,
        connect(f"sqlite:///{tmp_path}/rehearsal/catalog.db") as restored,
    ):
        assert restored.load_table("shop.orders").refs["main"] == lake.load_table("shop.orders").refs["main"]
