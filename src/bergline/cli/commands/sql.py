"""`bergline sql`: statements on Spark, or without it on DuckDB or polars; at a prompt, or from arguments and files."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bergline.cli.opening import LakeOptions, open_lake, settings_of, with_lake
from bergline.cli.settings import ConnectArguments
from bergline.cli.sql_shell.completion import Completion
from bergline.cli.sql_shell.local_engines import LOCAL_ENGINES, is_installed
from bergline.cli.sql_shell.local_shell import LocalStatements
from bergline.cli.sql_shell.local_sql import LocalSql
from bergline.cli.sql_shell.prompt import run_prompt
from bergline.cli.sql_shell.shell import OutputFormat, Statements, run_shown
from bergline.cli.sql_shell.spark_shell import SparkStatements, lake_conf, start_spark
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.lake.lake import DEFAULT_NAME
from bergline.sql.text.script import split_script


class SqlEngine(Enum):
    """The engine that runs statements."""

    AUTO = "auto"
    SPARK = "spark"
    DUCKDB = "duckdb"
    POLARS = "polars"


app = typer.Typer()


@app.command()
@with_lake
def sql(
    options: LakeOptions,
    statement: Annotated[
        str | None, typer.Argument(help="Statements to run, before those of options; without any, a prompt.")
    ] = None,
    *,
    statements: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="Statements to run; may be repeated.")
    ] = None,
    files: Annotated[list[Path] | None, typer.Option("--file", "-f", help="A file to run; may be repeated.")] = None,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="How rows are printed; json is one object per line.")
    ] = OutputFormat.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=0, max=2**31 - 1, help="The most rows of a statement. \\[default: 100 in tables, else all]"),
    ] = None,
    ref: Annotated[
        str | None,
        typer.Option(help="A branch or tag of the whole lake, or a time such as 2026-11-01T00:00:00Z, that is seen."),
    ] = None,
    engine: Annotated[
        SqlEngine,
        typer.Option(help="auto is Spark where it is installed, else DuckDB or polars, which run SELECT."),
    ] = SqlEngine.AUTO,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
    ] = None,
) -> None:
    """Run SQL: at a prompt, or statements from an argument, options, files or a pipe, until one fails."""
    given = [*([] if statement is None else [statement]), *(statements or ()), *map(_text_of, files or ())]
    is_prompt = not given and sys.stdin.isatty()
    if not given and not is_prompt:
        given = [sys.stdin.read()]
    texts = [text for script in given for text in _all_statements(script)]
    settings = msgspec.structs.replace(options.settings(), ref=ref)
    chosen = _chosen(engine)
    if chosen != "spark" and conf:
        raise InvalidInputError(f"expected no --conf, which is for Spark, with {chosen}")
    with _statements(
        chosen, settings, settings_of(conf, "--conf"), OutputFormat.JSON if as_json else output, limit
    ) as run:
        if is_prompt:
            _prompt(run, chosen, settings)
        elif not all(run_shown(run, text) for text in texts):
            raise typer.Exit(1)


@contextlib.contextmanager
def _statements(
    engine: str, settings: ConnectArguments, conf: dict[str, str], output: OutputFormat, limit: int | None
) -> Iterator[Statements]:
    if engine == "spark":
        all_conf = {**lake_conf(settings), **conf}
        if output is not OutputFormat.JSON:
            local = next(name for name in LOCAL_ENGINES if is_installed(name))
            sys.stderr.write(f"starting Spark …, which --engine {local} does not need for SELECT\n")
            sys.stderr.flush()
        yield SparkStatements(start_spark(all_conf), output, limit)
        return
    with open_lake(settings) as lake:
        yield LocalStatements(LocalSql(lake, settings.name or DEFAULT_NAME, engine), output, limit)


def _prompt(run: Statements, engine: str, settings: ConnectArguments) -> None:
    if engine != "spark":
        sys.stderr.write(f"This is {engine}, for SELECT and for statements about refs, tables and namespaces.\n")
    completion = Completion(lambda: open_lake(settings))
    try:
        run_prompt(lambda text: run_shown(run, text, timed=True), completion)
    finally:
        completion.close()


def _chosen(engine: SqlEngine) -> str:
    """The requested engine, or the best one that is installed."""
    if engine is SqlEngine.AUTO:
        if is_installed("pyspark") and _has_java():
            return "spark"
        return next(name for name in LOCAL_ENGINES if is_installed(name))  # polars is always installed
    if engine is not SqlEngine.SPARK and not is_installed(engine.value):
        raise UnsupportedError(f"{engine.value} is not installed", hints=[f"pip install {engine.value}"])
    return str(engine.value)


def _has_java() -> bool:
    """Whether Spark can start here, or runs elsewhere."""
    return bool(os.environ.get("JAVA_HOME") or os.environ.get("SPARK_REMOTE") or shutil.which("java"))


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
