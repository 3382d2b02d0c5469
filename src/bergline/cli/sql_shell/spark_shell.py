"""Statements on a Spark session of their own, and their rows."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import bergline.spark
from bergline.cli.opening import open_lake
from bergline.cli.output.csv import csv_line
from bergline.cli.output.rows import print_table
from bergline.cli.settings import ConnectArguments
from bergline.cli.sql_shell.shell import SHOWN_ROWS, OutputFormat, say_that_more_follow
from bergline.errors import UnsupportedError
from bergline.extras import install_hint
from bergline.lake.lake import DEFAULT_CATALOG, DEFAULT_NAME

_QUIET = {
    "spark.app.name": "bergline sql",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers that write each error to stderr once more, as JSON."""
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_NO_JSON = ("void", "interval", "geometry", "geography")
_MOST_LOG = 2000


class SparkStatements:
    """Runs statements on a session and prints their rows."""

    def __init__(self, spark: Any, output: OutputFormat, limit: int | None) -> None:
        self._spark = spark
        self._output = output
        self._limit = limit

    def run(self, text: str) -> int | None:
        """Run a statement; returns how many rows were printed, if it has any."""
        frame = self._spark.sql(text)
        return self._print(frame) if frame.columns else None

    def _print(self, frame: Any) -> int:
        names = frame.columns
        columns = [f"c{i}" for i in range(len(names))]
        types = [kind for _, kind in frame.dtypes]
        placed = frame.toDF(*columns)
        if self._output is OutputFormat.JSON:
            fields = ", ".join(
                f"'{_escaped(n)}', {_json_value(c, t)}" for n, c, t in zip(names, columns, types, strict=True)
            )
            rows = placed.selectExpr(f"to_json(named_struct({fields}), map('ignoreNullFields', 'false'))")
            return _write_lines(row[0] for row in self._rows(rows))
        texts = placed.selectExpr(*(_text_value(c, t) for c, t in zip(columns, types, strict=True)))
        if self._output is OutputFormat.CSV:
            sys.stdout.write(csv_line(names) + "\n")
            return _write_lines(csv_line(row) for row in self._rows(texts))
        most = SHOWN_ROWS if self._limit is None else self._limit
        found = texts.limit(most + 1).collect()
        right = [i for i, kind in enumerate(types) if kind.startswith(_NUMBERS)]
        print_table(names, [["NULL" if v is None else v for v in row] for row in found[:most]], right)
        if len(found) > most:
            say_that_more_follow(most)
        return min(len(found), most)

    def _rows(self, frame: Any) -> Iterator[Any]:
        limited = frame if self._limit is None else frame.limit(self._limit)
        return limited.toLocalIterator(prefetchPartitions=True)  # type: ignore[no-any-return]


def start_spark(conf: dict[str, str]) -> Any:
    """Start a session; what Spark's process writes to stderr is shown only if it does not start."""
    for logger in _PYSPARK_LOGGERS:
        logging.getLogger(logger).disabled = True
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        sys.stderr.flush()
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            return bergline.spark.session(config={**_QUIET, **conf})
        except ModuleNotFoundError as error:
            if error.name != "pyspark":
                raise
            raise UnsupportedError("`bergline sql` needs PySpark", hints=[install_hint("spark")]) from error
        except RuntimeError as error:
            log.seek(0)
            raise UnsupportedError(f"cannot start Spark: {error}\n{log.read()[-_MOST_LOG:]}".rstrip()) from error
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def lake_conf(lake: ConnectArguments) -> dict[str, str]:
    """The settings of the named lake, which must exist; empty if none is named: then Spark's configuration applies."""
    if lake == ConnectArguments():
        return {}
    open_lake(lake).close()  # reports what is wrong before Spark starts
    name = lake.name or DEFAULT_NAME
    prefix = f"spark.bergline.{name.replace('.', '_')}."
    conf = {f"property.{key}": value for key, value in lake.properties.items()}
    conf |= {"uri": lake.catalog or DEFAULT_CATALOG, "name": name, "default": "true"}
    conf |= {key: value for key, value in (("warehouse", lake.warehouse), ("ref", lake.ref)) if value is not None}
    return {prefix + key: value for key, value in conf.items()}


def _write_lines(lines: Iterable[str]) -> int:
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007
        sys.stdout.write(f"{line}\n")
    return count


def _text_value(column: str, kind: str) -> str:
    return f"hex({column})" if kind == "binary" else f"CAST({column} AS STRING)"


def _json_value(column: str, kind: str) -> str:
    return f"CAST({column} AS STRING)" if kind.startswith(_NO_JSON) else column


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
