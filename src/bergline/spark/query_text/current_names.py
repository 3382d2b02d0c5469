"""`current_catalog()`, `current_database()` and `current_schema()`: the engine knows its own values only."""

from collections.abc import Sequence

from bergline.quoting import dotted, quoted_text
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.tokens import SqlText, Token, TokenKind

_CATALOG = "current_catalog"
_NAMESPACE = "current_schema"
_MEANINGS = {_CATALOG: _CATALOG, "current_database": _NAMESPACE, _NAMESPACE: _NAMESPACE}
_AFTER_LIST = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "LIMIT", "LATERAL")
_AFTER_ITEM = (*_AFTER_LIST, "UNION", "EXCEPT", "INTERSECT", "MINUS")
_LENGTH = 3


def with_current_names(sql: SqlText, lakes: Lakes) -> SqlText:
    """The text with the lake and namespace in use in place of the calls; before any USE, as it is."""
    if lakes.current.lake is None or not any(name in sql.text.lower() for name in _MEANINGS):
        return sql
    values = {_CATALOG: lakes.default_name, _NAMESPACE: dotted(lakes.current.namespace)}
    tokens, edits = sql.tokens, []
    for place in _calls(tokens):
        meaning = _MEANINGS[tokens[place].value.lower()]
        value = quoted_text(values[meaning])
        named = f"{value} AS `{meaning}()`" if _is_item(tokens, place) else value
        edits.append((tokens[place].start, tokens[place + _LENGTH - 1].end, named))
    return sql.edited(edits)


def _calls(tokens: Sequence[Token]) -> list[int]:
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
