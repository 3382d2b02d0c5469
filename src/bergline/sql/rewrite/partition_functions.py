"""`system.bucket(…)` and other functions of the official runtime that we do not have."""

from collections.abc import Iterator, Sequence

from bergline.errors import UnsupportedError
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.tokens import Name, SqlText, Token

_SYSTEM = "system"
_FUNCTIONS = {"bucket", "truncate", "years", "months", "days", "hours", "iceberg_version"}
_HINTS = [
    "write Spark's own year(c), trunc(c, 'MONTH'), to_date(c), date_trunc('HOUR', c), substring(c, 1, n)",
    "a write puts rows into their partitions by itself",
]


def check_no_partition_functions(sql: SqlText, lakes: Lakes) -> None:
    """UnsupportedError if a query calls a function that only the official runtime has."""
    if _SYSTEM not in sql.text.lower():
        return
    for name in _calls(sql.tokens):
        *catalog, namespace, function = name
        is_lakes = lakes.has(catalog[0]) if catalog else _SYSTEM not in lakes.engine.namespaces()
        if namespace.lower() == _SYSTEM and function.lower() in _FUNCTIONS and is_lakes:
            raise UnsupportedError(f"cannot call `{'.'.join(name)}` in a query yet", hints=_HINTS)


def _calls(tokens: Sequence[Token]) -> Iterator[Name]:
    """Names of two or three parts before a parenthesis."""
    for place, token in enumerate(tokens):
        if token.is_symbol("("):
            first = place - 1
            while first >= 2 and tokens[first - 1].is_symbol("."):  # noqa: PLR2004
                first -= 2
            parts = tuple(part.value for part in tokens[max(first, 0) : place : 2])
            if len(parts) in {2, 3}:
                yield parts
