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


def command(verbs: str, *names: str, **options: object) -> str:
    """A command for some names; options that are None or False are left out, True is a flag, a list is repeated."""
    line = ["bergline", *verbs.split()]
    is_option_like = any(name.startswith("-") for name in names)
    given = [word for key, value in options.items() for word in _option(key, value)]
    line += [*given, "--", *names] if is_option_like else [*names, *given]
    return shlex.join(line)


def _option(key: str, value: object) -> list[str]:
    option = f"--{key.replace('_', '-')}"
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    if isinstance(value, list):
        return [word for one in value for word in _option(key, one)]
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}+00:00'"
    return str(value) if isinstance(value, int) else quoted_text(str(value))
