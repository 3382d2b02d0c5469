"""Local engines: a query in Spark's dialect on Arrow tables."""

import pyarrow as pa
import pytest

from bergline.cli.sql_shell.local_engines import LOCAL_ENGINES, is_installed, transpiled
from bergline.errors import SqlSyntaxError


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
