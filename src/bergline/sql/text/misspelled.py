"""Keywords with a typo: the error is at the keyword, and names the one that was meant.

Only the words that decide what a statement is are looked at, and those where reading it stopped.
"""

import functools
from collections.abc import Sequence

from bergline.errors import SqlSyntaxError, near_names
from bergline.sql.text.tokens import SqlText, Token, TokenKind, syntax_error

_FIRST = (
    *("ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CALL", "CLEAR", "COMMENT", "COMMIT", "CREATE", "DECLARE", "DELETE"),
    *("DESC", "DESCRIBE", "DFS", "DROP", "EXECUTE", "EXPLAIN", "EXPORT", "FROM", "GRANT", "IMPORT", "INSERT", "LIST"),
    *("LOAD", "LOCK", "MAP", "MERGE", "MSCK", "REDUCE", "REFRESH", "REPAIR", "REPLACE", "RESET", "REVOKE", "ROLLBACK"),
    *("SELECT", "SET", "SHOW", "START", "TABLE", "TRUNCATE", "UNCACHE", "UNLOCK", "UPDATE", "USE", "VALUES", "WITH"),
)
_MADE = ("TABLE", "VIEW", "NAMESPACE", "DATABASE", "SCHEMA")
_SECOND = {
    "ALTER": _MADE,
    "CREATE": (*_MADE, "EXTERNAL", "FUNCTION", "GLOBAL", "INDEX", "OR", "ROLE", "TEMP", "TEMPORARY"),
    "DELETE": ("FROM",),
    "DROP": (*_MADE, "FUNCTION", "INDEX", "ROLE", "TEMPORARY"),
    "INSERT": ("INTO", "OVERWRITE"),
    "MERGE": ("INTO",),
    "SHOW": (
        *("TABLES", "TABLE", "VIEWS", "NAMESPACES", "DATABASES", "SCHEMAS", "CATALOGS", "PROCEDURES", "CREATE", "ALL"),
        *("TBLPROPERTIES", "PARTITIONS", "COLUMNS", "CURRENT", "FUNCTIONS", "USER", "SYSTEM", "GRANT", "LOCKS", "ROLE"),
    ),
    "TRUNCATE": ("TABLE",),
}
_IN_QUERIES = (
    *("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "JOIN", "INNER", "LEFT", "RIGHT", "FULL"),
    *("CROSS", "UNION", "INTERSECT", "EXCEPT", "DISTINCT", "BETWEEN", "WINDOW", "OFFSET", "INTO", "VALUES"),
    *("LATERAL", "QUALIFY"),
)


def misspelled_head(sql: SqlText, heads: tuple[str, ...]) -> SqlSyntaxError | None:
    """The error of a first or second word that no statement has, and that looks like one that some have.

    `heads` are the words that statements of our own begin with, beside Spark's.
    """
    first, second = sql.tokens[0], sql.tokens[min(1, len(sql.tokens) - 1)]
    firsts, seconds = _words(heads)
    if first.kind is TokenKind.WORD and not first.is_word(*firsts):
        return _error(sql, first, firsts)
    expected = seconds.get(first.text.upper(), ())
    if expected and second.kind is TokenKind.WORD and not second.is_word(*expected):
        return _error(sql, second, expected)
    return None


def misspelled_before(sql: SqlText, line: int, column: int) -> SqlSyntaxError | None:
    """The error of the word at which reading a query stopped, or of the one before it."""
    tokens = sql.tokens
    place = sum(len(passed) + 1 for passed in sql.text.split("\n")[: line - 1]) + column
    stopped = [i for i, token in enumerate(tokens) if token.start < place and token.kind is TokenKind.WORD][-2:]
    if not stopped or tokens[stopped[-1]].is_word(*_IN_QUERIES):
        return None
    found = [_error(sql, tokens[i], _IN_QUERIES) for i in stopped if not _is_of_a_name(tokens, i)]
    return next((error for error in found if error is not None), None)


@functools.cache
def _words(heads: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The first words of all statements, and the second ones where not every word can follow."""
    split = [head.split() for head in heads]
    firsts = (*_FIRST, *(first for first, *_ in split))
    return firsts, {
        first: (*known, *(words[1] for words in split if words[0] == first and len(words) > 1))
        for first, known in _SECOND.items()
    }


def _is_of_a_name(tokens: Sequence[Token], position: int) -> bool:
    around = tokens[max(position - 1, 0)], tokens[min(position + 1, len(tokens) - 1)]
    return tokens[position].is_word(*_IN_QUERIES) or any(token.is_symbol(".") for token in around)


def _error(sql: SqlText, token: Token, known: tuple[str, ...]) -> SqlSyntaxError | None:
    near = near_names(token.text, known)[:1]
    return syntax_error(sql.text, token.start, f"expected `{near[0]}`, found `{token.text}`", near) if near else None
