"""Local engines: a query in Spark's dialect on Arrow tables."""

from pathlib import Path

import pyarrow as pa
import pytest

from bergline.cli.sql_shell.local_engines import LOCAL_ENGINES, is_installed, transpiled
from bergline.errors import SqlSyntaxError, UnsupportedError


@pytest.mark.parametrize("engine", LOCAL_ENGINES)
def test_back_quotes_and_functions_of_spark(engine: str) -> None:
    run = LOCAL_ENGINES[engine]
    table = pa.table({"a b": [1, None, 3], "s": ["x", "y", "z"]})
    found = run("SELECT coalesce(`a b`, 0) AS n, upper(s) AS u FROM t ORDER BY n DESC LIMIT 2", {"t": table})
    assert found.read_all().to_pylist() == [{"n": 3, "u": "Z"}, {"n": 1, "u": "X"}]


def test_dialect_is_translated_or_the_place_named() -> None:
    assert transpiled("SELECT `a` FROM t", "duckdb") == 'SELECT "a" FROM t'
    with pytest.raises(SqlSyntaxError):
        transpiled("SELECT (1 FROM t", "duckdb")


def test_installed_packages() -> None:
    assert (is_installed("polars"), is_installed("no_such_package")) == (True, False)


@pytest.mark.parametrize("engine", LOCAL_ENGINES)
@pytest.mark.parametrize("function", ["read_csv", "read_parquet"])
def test_files_are_not_read(engine: str, function: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(UnsupportedError, match="cannot run this"):
        LOCAL_ENGINES[engine](f"SELECT * FROM {function}('{tmp_path}/a.csv')", {})


@pytest.mark.parametrize("engine", LOCAL_ENGINES)
def test_query_that_is_nested_too_deeply_is_refused(engine: str) -> None:
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        LOCAL_ENGINES[engine](f"SELECT {'(' * 3000}1{')' * 3000}", {})
