"""Statements that are refused on lake tables, with what to do instead."""

import msgspec

from bergline.errors import BerglineError, NotFoundError, UnsupportedError
from bergline.sql.names.resolve import Lakes
from bergline.sql.queries.query import OtherStatement
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import Name, SqlText

_CACHE_HINT = "spark.table(…).cache() keeps the rows of a frame, CACHE TABLE v AS SELECT … those of a temporary view"
_DEFAULT_HINT = "docs/reference/statements.md lists what runs on lake tables"
_LEADING_WORDS = ("FROM", "INTO", "TABLE", "LAZY")


class _Refused(msgspec.Struct, frozen=True):
    """A statement that Spark runs on tables of its own."""

    has_subject: bool = False
    """Whether its first words are followed by the table that it is about."""
    hint: str = _DEFAULT_HINT
    message: str | None = None
    """The error's message, where it is not "cannot run … yet"."""


_REFUSED = {
    "ANALYZE": _Refused(has_subject=True),
    "CACHE": _Refused(
        has_subject=True,
        hint=_CACHE_HINT,
        message="cannot cache a lake's table by its name",
    ),
    "EXPLAIN": _Refused(),
    "LOAD": _Refused(),
    "MERGE": _Refused(
        has_subject=True,
        hint="MERGE INTO a lake's table takes any source; into other tables, a temporary view of the lake's rows",
    ),
    "MSCK": _Refused(),
    "REFRESH": _Refused(has_subject=True),
    "REPAIR": _Refused(),
    "UNCACHE": _Refused(has_subject=True),
}
"""By first word; those of our own statements come in addition."""


def read_other(sql: SqlText, own_words: frozenset[str]) -> OtherStatement:
    """A statement that we do not run; what is no statement at all is left to Spark to report."""
    keyword = sql.first_word
    if keyword not in _REFUSED and keyword not in own_words:
        return OtherStatement(keyword, ())
    refused = _REFUSED.get(keyword, _Refused())
    return OtherStatement(keyword, dotted_names(sql), subject=_subject(sql) if refused.has_subject else None)


def check_not_of_lakes(statement: OtherStatement, lakes: Lakes) -> None:
    """Refuse statements on lake tables that we do not run, instead of letting the engine say "table not found"."""
    name = next((n for n in statement.tables if _names_table(n, lakes)), None)
    if statement.subject is not None and lakes.owns(statement.subject):
        name = statement.subject
    if name is None:
        return
    if statement.error is not None:
        raise statement.error
    lakes.resolve_relation(name)
    refused = _REFUSED.get(statement.keyword, _Refused())
    raise UnsupportedError(
        refused.message or f"cannot run {statement.keyword} with `{'.'.join(name)}` yet",
        hints=[refused.hint],
        condition="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
    )


def _subject(sql: SqlText) -> Name | None:
    """The table that a statement is about: `MERGE INTO t`, `CACHE TABLE t`."""
    cursor = Cursor(sql)
    cursor.advance()
    while cursor.token.is_word(*_LEADING_WORDS):
        cursor.advance()
    try:
        return cursor.expect_dotted_name("a table name")
    except BerglineError:
        return None


def _names_table(name: Name, lakes: Lakes) -> bool:
    try:
        return lakes.resolve(name) is not None
    except NotFoundError:
        return False
