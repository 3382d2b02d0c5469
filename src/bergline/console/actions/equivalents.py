"""The same action in Python, in SQL and on the command line, to be copied."""

import datetime as dt
import shlex
from collections.abc import Mapping

from bergline.catalog.identifiers import TableName
from bergline.quoting import dotted, quoted_text


def python_call(table: TableName, method: str, *arguments: object, **named: object) -> str:
    """A call on the table, with what is None left out."""
    given = [repr(a) for a in arguments] + [f"{k}={v!r}" for k, v in named.items() if v is not None]
    return f"lake.load_table({str(table)!r}).{method}({', '.join(given)})"


def alter(table: TableName, rest: str) -> str:
    """`ALTER TABLE`."""
    return f"ALTER TABLE {dotted((*table.namespace, table.name))} {rest}"


def call(procedure: str, table: TableName, **named: str | int | bool | dt.datetime | None) -> str:
    """`CALL system.…`, with what is None left out."""
    given: Mapping[str, object] = {"table": dotted((*table.namespace, table.name)), **named}
    parts = [f"{name} => {_literal(value)}" for name, value in given.items() if value is not None]
    return f"CALL system.{procedure}({', '.join(parts)})"


def command(*words: str, **options: object) -> str:
    """A command, with options that are None or False left out; a flag is True."""
    line = ["bergline", *words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            line.append(option)
        elif value is not None and value is not False:
            line += [option, str(value)]
    return shlex.join(line)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}+00:00'"
    return str(value) if isinstance(value, int) else quoted_text(str(value))
