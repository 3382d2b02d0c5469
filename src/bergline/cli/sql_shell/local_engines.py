"""DuckDB and polars as engines for a query on Arrow tables by name."""

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import sqlglot

from bergline.errors import SqlSyntaxError, UnsupportedError

RunLocally = Callable[[str, Mapping[str, pa.Table]], pa.RecordBatchReader]
"""Runs a query in Spark's dialect on tables by their names."""


def is_installed(engine: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(engine) is not None


def run_duckdb(query: str, tables: Mapping[str, pa.Table]) -> pa.RecordBatchReader:
    """Run a query on DuckDB, which sees only these tables, no files and no Python variables."""
    import duckdb  # noqa: PLC0415  (needed only by those who have it)

    text = transpiled(query, "duckdb")
    with duckdb.connect(":memory:", config={"python_enable_replacements": False}) as connection:
        connection.execute("SET enable_external_access = false")
        for name, table in tables.items():
            connection.register(name, table)
        try:
            rows = connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            raise UnsupportedError(f"DuckDB cannot run this: {_first_line(error)}", hints=[_SPARK_HINT]) from error
    return rows.to_reader()


def run_polars(query: str, tables: Mapping[str, pa.Table]) -> pa.RecordBatchReader:
    """Run a query on polars, which supports less SQL; it sees only these tables, and no files."""
    import polars as pl  # noqa: PLC0415  (only when it runs)

    text = transpiled(query, "postgres")
    _check_no_functions(query)
    frames: dict[str, Any] = {name: pl.from_arrow(table) for name, table in tables.items()}
    try:
        with pl.SQLContext(frames=frames, eager=True) as context:
            rows = context.execute(text).to_arrow()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        message = f"polars cannot run this: {_first_line(error)}"
        raise UnsupportedError(message, hints=["pip install duckdb", _SPARK_HINT]) from error
    return rows.to_reader()


LOCAL_ENGINES: dict[str, RunLocally] = {"duckdb": run_duckdb, "polars": run_polars}
"""The engines, best first."""
_SPARK_HINT = "all of Spark's SQL needs Spark: `--engine spark`, with the extra `spark` of bergline and Java"


def transpiled(query: str, dialect: str) -> str:
    """A query of Spark's SQL in another dialect."""
    try:
        return sqlglot.transpile(query, read="spark", write=dialect)[0]
    except sqlglot.errors.ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise SqlSyntaxError(
            f"cannot read the query near `{place.get('highlight') or '?'}`",
            line=place.get("line") or 1,
            column=place.get("col") or 1,
        ) from error
    except RecursionError:
        raise UnsupportedError("cannot read the query: it is nested too deeply", hints=[_SPARK_HINT]) from None


def _check_no_functions(query: str) -> None:
    """Refuse table functions: those of polars read files."""
    for table in sqlglot.parse_one(query, read="spark").find_all(sqlglot.exp.Table):
        if isinstance(table.this, sqlglot.exp.Func):
            found = table.this.name if isinstance(table.this, sqlglot.exp.Anonymous) else table.this.sql_name()
            message = f"polars cannot run this: expected a table, found the function `{found.lower()}`"
            raise UnsupportedError(message, hints=["pip install duckdb", _SPARK_HINT])


def _first_line(error: BaseException) -> str:
    """The error message without the plan and query after it, which is not what the user wrote."""
    return next(iter(str(error).splitlines()), type(error).__name__)
