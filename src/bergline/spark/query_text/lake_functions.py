"""Functions whose meaning the lakes know, in the text that Spark gets.

These are `current_catalog()`, `current_database()` and `current_schema()`, of which Spark knows only its own values,
and Iceberg's partition transforms, like `system.bucket(…)`.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bergline.errors import UnsupportedError
from bergline.quoting import dotted, quoted_text
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.tokens import Name, SqlText, Token, TokenKind

FUNCTION_PREFIX: Final = "bergline_system_"
"""What the names of partition transforms begin with in the text for an engine that has them."""
_CATALOG = "current_catalog"
_NAMESPACE = "current_schema"
_MEANINGS = {_CATALOG: _CATALOG, "current_database": _NAMESPACE, _NAMESPACE: _NAMESPACE}
_AFTER_LIST = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "LIMIT", "LATERAL")
_AFTER_ITEM = (*_AFTER_LIST, "UNION", "EXCEPT", "INTERSECT", "MINUS")
_LENGTH = 3
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


def with_lake_functions(sql: SqlText, lakes: Lakes) -> SqlText:
    """The text in words that the engine knows."""
    return with_partition_functions(with_current_names(sql, lakes), lakes)


def with_current_names(sql: SqlText, lakes: Lakes) -> SqlText:
    """The text with the lake and namespace in use in place of the calls; before any USE, as it is."""
    if lakes.current.lake is None or not any(name in sql.text.lower() for name in _MEANINGS):
        return sql
    values = {_CATALOG: lakes.default_name, _NAMESPACE: dotted(lakes.current.namespace)}
    tokens, edits = sql.tokens, []
    for place in _current_calls(tokens):
        meaning = _MEANINGS[tokens[place].value.lower()]
        value = quoted_text(values[meaning])
        named = f"{value} AS `{meaning}()`" if _is_item(tokens, place) else value
        edits.append((tokens[place].start, tokens[place + _LENGTH - 1].end, named))
    return sql.edited(edits)


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


def _current_calls(tokens: Sequence[Token]) -> list[int]:
    """The positions of calls without arguments that are not qualified."""
    return [
        place
        for place, token in enumerate(tokens[:-_LENGTH])
        if token.kind is TokenKind.WORD
        and token.value.lower() in _MEANINGS
        and tokens[place + 1].is_symbol("(")
        and tokens[place + 2].is_symbol(")")
        and not (place and tokens[place - 1].is_symbol("."))
    ]


def _is_item(tokens: Sequence[Token], place: int) -> bool:
    """Whether a call is a whole item of a SELECT list without an alias: its column keeps the name that Spark gives."""
    after = tokens[place + _LENGTH]
    closes = after.kind is TokenKind.END or after.is_word(*_AFTER_ITEM) or any(map(after.is_symbol, ",);"))
    return closes and _is_in_list(tokens, place)


def _is_in_list(tokens: Sequence[Token], place: int) -> bool:
    """Whether the item begins here, and SELECT stands before it outside of brackets that are closed again."""
    before = tokens[place - 1]
    if not (before.is_word("SELECT", "DISTINCT", "ALL") or before.is_symbol(",")):
        return False
    depth = 0
    for token in reversed(tokens[:place]):
        depth += token.is_symbol(")") - token.is_symbol("(")
        if depth < 0 or (depth == 0 and token.is_word(*_AFTER_LIST)):
            return False
        if depth == 0 and token.is_word("SELECT"):
            return True
    return False


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
