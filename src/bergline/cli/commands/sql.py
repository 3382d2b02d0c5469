"""`bergline sql`: statements on Spark, from a prompt, an option, a file or a pipe."""

import contextlib
import importlib.util
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

import bergline.spark
from bergline.cli.opening import LakeOptions, open_lake, settings_of, with_lake
from bergline.cli.output.csv import csv_line
from bergline.cli.output.errors import show_error
from bergline.cli.output.rows import print_table
from bergline.cli.settings import ConnectArguments
from bergline.errors import InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.lake.lake import DEFAULT_CATALOG, DEFAULT_NAME
from bergline.sql.text.script import split_script

# Windows has none
_READLINE: Any = importlib.import_module("readline") if importlib.util.find_spec("readline") else None
_QUIET = {
    "spark.app.name": "bergline sql",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They write each error to stderr once more, as JSON."""
_SHOWN_ROWS = 100
_EXITS = {"\\q", "exit", "quit"}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_NO_JSON = ("void", "interval", "geometry", "geography")
_MOST_LOG = 2000


class OutputFormat(Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


app = typer.Typer()


@app.command()
@with_lake
def sql(
    options: LakeOptions,
    *,
    statements: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="Statements to run; may be repeated.")
    ] = None,
    files: Annotated[list[Path] | None, typer.Option("--file", "-f", help="A file to run; may be repeated.")] = None,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="How rows are printed; json is an object in each line.")
    ] = OutputFormat.TABLE,
    limit: Annotated[
        int | None, typer.Option(min=0, help="The most rows of a statement. \\[default: 100 in tables, else all]")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
    ] = None,
) -> None:
    """Run SQL on Spark: at a prompt, or statements from options, files or a pipe, until one fails."""
    given = [*(statements or ()), *map(_text_of, files or ())]
    is_prompt = not given and sys.stdin.isatty()
    if not given and not is_prompt:
        given = [sys.stdin.read()]
    texts = [text for script in given for text in _all_statements(script)]
    spark = _start({**_lake_conf(options.settings()), **settings_of(conf, "--conf")})
    shell = _Shell(spark, output, limit)
    if is_prompt:
        _prompt(shell)
    elif not all(shell.run(text) for text in texts):
        raise typer.Exit(1)


class _Shell:
    """Runs statements on a session and prints their rows."""

    def __init__(self, spark: Any, output: OutputFormat, limit: int | None) -> None:
        self._spark = spark
        self._output = output
        self._limit = limit

    def run(self, text: str, *, timed: bool = False) -> bool:
        """Whether a statement succeeded; its error is shown."""
        start = time.monotonic()
        try:
            frame = self._spark.sql(text)
            rows = self._print(frame) if frame.columns else None
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return False
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever a statement raises: the prompt goes on)
            show_error(error)
            return False
        if timed:
            found = "" if rows is None else f"{rows:,} row{'' if rows == 1 else 's'}, "
            sys.stderr.write(f"{found}{time.monotonic() - start:.1f} s\n")
        return True

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
        most = _SHOWN_ROWS if self._limit is None else self._limit
        found = texts.limit(most + 1).collect()
        right = [i for i, kind in enumerate(types) if kind.startswith(_NUMBERS)]
        print_table(names, [["NULL" if v is None else v for v in row] for row in found[:most]], right)
        if len(found) > most:
            sys.stdout.flush()
            sys.stderr.write(f"only the first {most:,} rows are shown: --limit takes more\n")
        return min(len(found), most)

    def _rows(self, frame: Any) -> Iterator[Any]:
        limited = frame if self._limit is None else frame.limit(self._limit)
        return limited.toLocalIterator(prefetchPartitions=True)  # type: ignore[no-any-return]


def _prompt(shell: _Shell) -> None:
    """Read statements, which may have several lines, and run each at its semicolon."""
    sys.stderr.write("Statements end with a semicolon; \\q or Ctrl-D ends the session.\n")
    pending = ""
    with _history():
        while True:
            try:
                line = input("    -> " if pending else "sql> ")
            except EOFError:
                sys.stderr.write("\n")
                return
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                pending = ""
                continue
            if not pending and line.strip().rstrip(";").strip().lower() in _EXITS:
                return
            pending = f"{pending}\n{line}" if pending else line
            with contextlib.suppress(SqlSyntaxError):  # a quote or comment that goes on in the next line
                found = split_script(pending)
                pending = found.rest
                for text in found.statements:
                    shell.run(text, timed=True)


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Lines of former prompts, where there is such a thing."""
    if _READLINE is None:
        yield
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "bergline" / "sql_history"
    with contextlib.suppress(OSError):
        _READLINE.read_history_file(file)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            _READLINE.set_history_length(1000)
            _READLINE.write_history_file(file)


def _start(conf: dict[str, str]) -> Any:
    """A session; what Spark's process writes to stderr meanwhile and later is shown only if it does not start."""
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
            raise UnsupportedError(
                "`bergline sql` needs PySpark", hints=["install the extra `spark`, as the documentation says"]
            ) from error
        except RuntimeError as error:
            log.seek(0)
            raise UnsupportedError(f"cannot start Spark: {error}\n{log.read()[-_MOST_LOG:]}".rstrip()) from error
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _lake_conf(lake: ConnectArguments) -> dict[str, str]:
    """The lake that is named, which must exist; none if none is: then Spark's configuration does."""
    if lake == ConnectArguments():
        return {}
    open_lake(lake).close()  # says what is wrong before Spark starts
    name = lake.name or DEFAULT_NAME
    prefix = f"spark.bergline.{name.replace('.', '_')}."
    conf = {f"property.{key}": value for key, value in lake.properties.items()}
    conf |= {"uri": lake.catalog or DEFAULT_CATALOG, "name": name, "default": "true"}
    if lake.warehouse is not None:
        conf["warehouse"] = lake.warehouse
    return {prefix + key: value for key, value in conf.items()}


def _all_statements(text: str) -> tuple[str, ...]:
    """The statements of a script; the last needs no semicolon."""
    found = split_script(text)
    return (*found.statements, found.rest) if found.rest else found.statements


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInputError(f"cannot read the file `{file}`: {reason}") from error


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
