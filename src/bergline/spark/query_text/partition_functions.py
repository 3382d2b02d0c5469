"""`system.bucket(…)` and the like: Iceberg's partition transforms as functions in queries."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bergline.errors import UnsupportedError
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.tokens import Name, SqlText, Token

FUNCTION_PREFIX: Final = "bergline_system_"
"""What the functions are called in the text that an engine gets which has them."""
_SYSTEM = "system"
_FUNCTIONS = {"bucket", "truncate", "years", "months", "days", "hours", "iceberg_version"}
_HINTS = [
    "write Spark's own year(c), trunc(c, 'MONTH'), to_date(c), date_trunc('HOUR', c), substring(c, 1, n)",
    "a write puts rows into their partitions by itself",
]


class _Call(NamedTuple):
    name: Name
    start: int
    end: int


def with_partition_functions(sql: SqlText, lakes: Lakes) -> SqlText:
    """The text in which functions of the lakes have names that the engine knows; UnsupportedError if it has none."""
    calls = _lake_calls(sql, lakes)
    if calls and not lakes.engine.has_partition_functions:
        raise _refused(calls[0])
    return sql.edited((call.start, call.end, f"{FUNCTION_PREFIX}{call.name[-1].lower()}") for call in calls)


def check_no_partition_functions(sql: SqlText, lakes: Lakes) -> None:
    """UnsupportedError if a query still calls one: there are statements in which they are not known."""
    if calls := _lake_calls(sql, lakes):
        raise _refused(calls[0])


def _refused(call: _Call) -> UnsupportedError:
    return UnsupportedError(f"cannot call `{'.'.join(call.name)}` here", hints=_HINTS)


def _lake_calls(sql: SqlText, lakes: Lakes) -> list[_Call]:
    if _SYSTEM not in sql.text.lower():
        return []
    found = []
    for call in _calls(sql.tokens):
        *catalog, namespace, function = call.name
        is_ours = namespace.lower() == _SYSTEM and function.lower() in _FUNCTIONS
        if is_ours and (lakes.has(catalog[0]) if catalog else _SYSTEM not in lakes.engine.namespaces()):
            found.append(call)
    return found


def _calls(tokens: Sequence[Token]) -> Iterator[_Call]:
    """Names of two or three parts before a parenthesis."""
    for place, token in enumerate(tokens):
        if token.is_symbol("("):
            first = place - 1
            while first >= 2 and tokens[first - 1].is_symbol("."):  # noqa: PLR2004
                first -= 2
            parts = tuple(part.value for part in tokens[max(first, 0) : place : 2])
            if len(parts) in {2, 3}:
                yield _Call(parts, tokens[first].start, tokens[place - 1].end)
