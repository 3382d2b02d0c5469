"""The peers that judge us: PyIceberg, DuckDB, and the official Iceberg Spark runtime in a process of its own."""

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from bergline.lazy_module import LazyModule
from support.paths import PROCESSES

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.catalog import sql as pyiceberg_sql
else:  # every run of tests imports this module, and most need none of them
    duckdb = LazyModule("duckdb")
    pyiceberg_sql = LazyModule("pyiceberg.catalog.sql")

_PROGRAM = PROCESSES / "official_runtime_process.py"
_BUSY_S = 60
"""So long peers wait for a writer to let go of an SQLite database; left alone, 3 and 5 seconds: a process may stall."""


class OfficialError(Exception):
    """What the official runtime raised: its class name and message."""


class OfficialRuntime:
    """Sends SQL as JSON lines to `official_runtime_process.py` and reads rows back; `packages` are of Maven."""

    def __init__(self, log: Path, *packages: str) -> None:
        self._log = log
        self._packages = packages

    def __enter__(self) -> Self:
        self._errors = self._log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), *self._packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=self._log.parent,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=60)
        self._process.kill()  # it has told all that it was asked; how long it takes to end is not what is tested
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def use_catalog(self, database: Path | str, warehouse: Path, name: str) -> None:
        """Open a catalog that others write to and make it current; nothing of it is cached.

        The database is an SQLite file, or a JDBC address.
        """
        self._ask(
            {
                "catalog": name,
                "options": {
                    "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
                    "uri": database
                    if isinstance(database, str)
                    else f"jdbc:sqlite:{database}?busy_timeout={_BUSY_S}000",
                    "warehouse": str(warehouse),
                    "jdbc.schema-version": "V1",
                    "cache-enabled": "false",
                },
            }
        )

    def open_catalog(self, name: str, options: dict[str, str]) -> None:
        """Open any catalog and make it current."""
        self._ask({"catalog": name, "options": options})

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return [tuple(row) for row in self._ask({"sql": text})["rows"]]

    def python(self, code: str, **names: Any) -> Any:
        """Run Python in the runtime's process for Java's own API; the code finds `spark`, `jvm` and `names`.

        What the code assigns to `result` comes back, through JSON.
        """
        return self._ask({"python": code, "names": names})["result"]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            pytest.fail(f"the official runtime ended: {self._log.read_text()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise OfficialError(answer["error"])
        return answer


def needs_java() -> None:
    """Skip, by name, on a machine without Java."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        pytest.skip("needs Java 17: none found on this machine")


def pyiceberg_catalog(database: Path, warehouse: Path, name: str) -> "pyiceberg_sql.SqlCatalog":
    """PyIceberg on the same SQLite catalog."""
    return pyiceberg_sql.SqlCatalog(
        name, uri=f"sqlite:///{database}?timeout={_BUSY_S}", warehouse=f"file://{warehouse}"
    )


def duckdb_connection() -> "duckdb.DuckDBPyConnection":
    """DuckDB with its Iceberg extension, which is in packages of its own."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("httpfs", "avro", "iceberg"):
        home = Path(str(importlib.import_module(f"duckdb_extension_{name}").__file__)).parent
        connection.execute(f"LOAD '{next(home.rglob('*.duckdb_extension'))}'")
    return connection
