"""`bergline sql`: statements from options, files and a prompt."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bergline import Table
from support.fixtures.rows import order_rows
from support.processes.command_line import run

PROGRAM = [sys.executable, "-c", "from bergline.cli.entry import main; main()", "sql"]
NO_CATALOG = "error: no catalog at `sqlite:///no.db`: no such file"
SCRIPT = """
-- what has no rows; prints nothing
CREATE TABLE db.copies AS SELECT id, ';' AS mark FROM db.orders;
INSERT INTO db.copies VALUES (9, NULL);
SELECT * FROM db.copies ORDER BY id
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_statements_of_options_and_files_run_until_one_fails(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    every = (
        "SELECT 1.5 AS `a'b`, X'CAFE' AS a, null AS n, array(1, null) AS l, DATE'2026-01-31' AS d, INTERVAL 1 DAY AS i"
    )
    failing = ("-f", str(tmp_path / "failing.sql"))
    (tmp_path / "failing.sql").write_text(f"{every}; SELECT no FROM db.orders; SELECT 2 AS never")
    script = ("-e", SCRIPT, "--format", "json")
    done = run("sql", "--catalog", f"sqlite:///{tmp_path}/catalog.db", *failing, *script, cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[:3] == [{"id": 1, "mark": ";"}, {"id": 2, "mark": ";"}, {"id": 9, "mark": None}]
    types = {"a'b": 1.5, "a": "yv4=", "n": None, "l": [1, None], "d": "2026-01-31", "i": "INTERVAL '1' DAY"}
    assert lines[3:] == [types]
    assert done.returncode == 1
    first, *more = done.stderr.splitlines()
    assert first.startswith("error: [UNRESOLVED_COLUMN.WITH_SUGGESTION]")
    assert more == []


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_prompt_goes_on_after_errors_and_over_lines(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1))
    terminal, end = pty.openpty()
    command = [*PROGRAM, "--name", "lake", "--catalog", f"sqlite:///{tmp_path}/catalog.db", "--limit", "2"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, cwd=tmp_path, env=environment)
    os.close(end)
    try:
        seen = read_until(terminal, "sql> ")
        assert "WARN" not in seen
        assert "starting Spark …" in seen
        shown = say(terminal, "SELECT id, 'a;\n' AS t, null AS x\nFROM db.orders -- ;\n;")
        assert "NULL" in shown
        assert "1 row, " in shown
        assert "error: [TABLE_OR_VIEW_NOT_FOUND] no table `db.nothing`" in say(terminal, "SELECT * FROM db.nothing;")
        shown = say(terminal, "SELECT id FROM range(5);")
        assert "only the first 2 rows are shown" in shown
        assert "2 rows," in shown
        os.write(terminal, b"\\q\n")
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert "FROM db.nothing" in (tmp_path / "state" / "bergline" / "sql_history").read_text()


def say(terminal: int, text: str) -> str:
    os.write(terminal, f"{text}\n".encode())
    return read_until(terminal, "\nsql> ")


def read_until(terminal: int, end: str) -> str:
    seen, until = "", time.monotonic() + 240
    while not seen.replace("\r", "").endswith(end):
        assert time.monotonic() < until, seen
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536).decode()
    return seen.replace("\r", "")


def test_what_is_wrong_is_said_before_spark_starts(tmp_path: Path) -> None:
    for arguments, code, error in (
        (["-e", "SELECT 'a"], 2, "error: expected a closing quote, found `'a` left open at line 1, column 8\n"),
        (
            ["-e", "SELECT 1", "--catalog", "sqlite:///no.db"],
            1,
            (
                "error: no catalog at `sqlite:///no.db`: no such file\n"
                "hint: name one with --catalog, BERGLINE_CATALOG or in bergline.toml\n"
                "hint: `bergline quickstart` creates one to play with, `bergline serve` an empty one\n"
            ),
        ),
    ):
        done = run("sql", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", error)
