"""What is imported to start: only what is used, so that `bergline --help` and `connect` take a fraction of a second."""

import json
import subprocess
import sys
from pathlib import Path

import bergline

HEAVY = {
    "boto3",
    "duckdb",
    "jinja2",
    "numpy",
    "obstore",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "sqlglot",
    "starlette",
}
ALL = "import json, sys; print(); print(json.dumps(list(sys.modules)))"


def imported_by(program: str, directory: Path) -> set[str]:
    """The modules that a process of its own has imported at the end of a program."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{ALL}"], capture_output=True, text=True, check=True, cwd=directory
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "bergline"}


def test_importing_the_package_imports_errors_and_nothing_that_works(tmp_path: Path) -> None:
    found = imported_by("import bergline", tmp_path)
    assert own(found) == {"bergline", "bergline.errors", "bergline.notebook"}


def test_connecting_to_a_new_database_imports_no_engine_and_no_other_catalog(tmp_path: Path) -> None:
    program = "import bergline\nwith bergline.connect('sqlite:///catalog.db', create=True) as lake: lake.list_tables()"
    found = imported_by(program, tmp_path)
    assert "sqlalchemy" in found
    assert found & (HEAVY | {"psycopg", "rich", "typer", "urllib3"}) == set()
    assert len(own(found)) <= 102
    assert {
        name for name in own(found) if name.startswith(("bergline.scan", "bergline.datafiles", "bergline.sql"))
    } == set()


def test_connecting_to_a_database_that_is_there_does_not_wait_for_sqlalchemy(tmp_path: Path) -> None:
    bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True).close()
    found = imported_by("import bergline\nbergline.connect('sqlite:///catalog.db')", tmp_path)
    assert found & (HEAVY | {"asyncio", "psycopg", "rich", "sqlalchemy", "typer", "urllib3"}) == set()
    assert len(own(found)) <= 90
    assert len(found) <= 235


def test_help_imports_no_lake(tmp_path: Path) -> None:
    program = """
import contextlib
from bergline.cli.main import run
with contextlib.suppress(SystemExit):
    run(["--help"])
"""
    found = imported_by(program, tmp_path)
    assert "typer" in found
    assert found & (HEAVY | {"msgspec", "sqlalchemy"}) == set()
    assert len(own(found)) <= 10
