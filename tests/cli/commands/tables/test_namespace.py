"""`bergline namespace`."""

import contextlib
import json
import sqlite3
from pathlib import Path

from bergline import Lake, Table
from support.processes.command_line import Command, Terminal


def test_namespaces_are_created_listed_and_dropped(bl: Command, lake: Lake) -> None:
    done = bl("namespace", "create", "db.raw", "--set", "comment=as it comes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "created namespace `db.raw`\n", "")
    assert bl("namespace", "create", "db.raw").returncode == 1
    assert bl("namespace", "create", "db.raw", "--if-not-exists").returncode == 0
    assert "comment=as it comes" in bl("namespace", "list").stdout
    (raw,) = json.loads(bl("namespace", "list", "--below", "db", "--json").stdout)
    assert raw == {"namespace": "db.raw", "properties": {"comment": "as it comes"}}
    done = bl("namespace", "drop", "db.raw")
    assert (done.returncode, lake.namespace_exists("db.raw")) == (2, True)
    done = bl("namespace", "drop", "db.raw", stdin=Terminal("y\n"))
    assert (done.returncode, done.stdout) == (0, "dropped namespace `db.raw`\n")
    assert not lake.namespace_exists("db.raw")


def test_namespace_with_tables_stays(bl: Command, lake: Lake, orders: Table) -> None:
    done = bl("namespace", "drop", "db", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: " in done.stderr
    assert lake.namespace_exists("db")
    done = bl("namespace", "drop", "dc", "--yes")
    assert (done.returncode, "drop namespace" in done.stderr) == (1, False)


def test_namespace_that_cannot_be_read_does_not_hide_the_others(bl: Command, tmp_path: Path, lake: Lake) -> None:
    lake.create_namespace("other", {"owner": "ann"})
    with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
        connection.execute("INSERT INTO iceberg_tables VALUES ('lake', 'a..b', 't', 'file:///none', NULL, 'TABLE')")
    done = bl("namespace", "list")
    assert done.returncode == 1
    assert "owner=ann" in done.stdout
    assert "error: cannot show the properties of namespace `a..b`: " in done.stderr
