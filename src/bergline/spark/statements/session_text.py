"""A statement's text as Spark's parser reads it under the settings of a session, some of which change its meaning.

A setting is only looked up where the text has something that it affects.
"""

import re
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bergline.errors import SqlSyntaxError
from bergline.quoting import back_quoted
from bergline.spark.runtime.backend import SparkBackend
from bergline.sql.names.resolve import name_parts
from bergline.sql.text.tokens import PLAIN, Dialect, Edit, Name, SqlText, TokenKind

ValueOf = Callable[[str, str], str | None]
"""The value of a variable by the prefix before its colon, which may be empty, and its name.

None for one that stays in the text; LookupError if Spark refuses a text that has it.
"""
VARIABLE = "${"
"""What variables begin with."""
_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}", re.ASCII)
_SUBSTITUTE = "spark.sql.variable.substitute"
_ANSI, _DOUBLE_QUOTED = "spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers"
_ESCAPED, _CONSECUTIVE = "spark.sql.parser.escapedStringLiterals", "spark.sql.legacy.consecutiveStringLiterals.enabled"
_TIMESTAMP_TYPE = "spark.sql.timestampType"
_DEFINING = ("create", "alter", "replace")
_RAW = ("SET", "RESET", "ADD", "LIST")
"""Statements that take quotes for what they are."""
_SETTINGS = ("", "spark", "sparkconf", "hivevar", "hiveconf")
"""What may stand before the name of a setting, with a colon."""


def session_text(text: str, backend: SparkBackend) -> SqlText:
    """A text with values in place of variables, and back-quoted names in place of double-quoted ones."""
    text = _with_variables(text, backend)
    sql = SqlText(text, _dialect(text, backend.spark))
    if '"' in text and _is_on(backend.spark, _DOUBLE_QUOTED) and _is_on(backend.spark, _ANSI):
        return _back_quoted(sql)
    return sql


def session_name(text: str, backend: SparkBackend) -> Name:
    """The parts of a name that a method of the session was given."""
    is_special = isinstance(text, str) and (VARIABLE in text or '"' in text)
    return name_parts(session_text(text, backend).text if is_special else text)


def with_values(text: str, value_of: ValueOf) -> str:
    """The text with values in place of variables, whose own variables have theirs too; unknown ones stay.

    The text stays as it is where Spark refuses it, as for a variable that needs itself, and where the values would
    make up another variable: then it is not the same text for whoever reads it next.
    """
    try:
        once = _substituted(text, value_of, ())
        return once if _substituted(once, value_of, ()) == once else text
    except LookupError:
        return text


def _with_variables(text: str, backend: SparkBackend) -> str:
    if VARIABLE not in text or not _is_on(backend.spark, _SUBSTITUTE):
        return text

    def value_of(prefix: str, name: str) -> str | None:
        if prefix in _SETTINGS:
            return _set_value(backend.spark, name)
        return backend.process_variable(prefix, name) if prefix in {"env", "system"} else None

    return with_values(text, value_of)


def _substituted(text: str, value_of: ValueOf, within: tuple[tuple[str, str], ...]) -> str:
    def value(found: re.Match[str]) -> str:
        variable = found[1] or "", found[2]
        if variable in within:
            raise LookupError(f"variable {found[0]} needs itself")
        known = value_of(*variable)
        return found[0] if known is None else _substituted(known, value_of, (*within, variable))

    return _VARIABLE.sub(value, text)


def _dialect(text: str, spark: SparkSession) -> Dialect:
    folded = text.lower()
    defines = "timestamp" in folded and any(word in folded for word in _DEFINING)
    dialect = Dialect(
        keeps_backslashes="\\" in text and _is_on(spark, _ESCAPED),
        joins_strings=("''" in text or '""' in text) and _is_on(spark, _CONSECUTIVE),
        timestamp_ntz=defines and str(spark.conf.get(_TIMESTAMP_TYPE)).upper() == "TIMESTAMP_NTZ",
    )
    return PLAIN if dialect == PLAIN else dialect


def _back_quoted(sql: SqlText) -> SqlText:
    try:
        tokens = sql.tokens
    except SqlSyntaxError:
        return sql
    if tokens[0].is_word(*_RAW) and not tokens[1].is_word("VAR", "VARIABLE"):
        return sql
    quoted = [token for token in tokens if token.kind is TokenKind.STRING and token.text.startswith('"')]
    edits: list[Edit] = [(t.start, t.end, back_quoted(t.text[1:-1].replace('""', '"'))) for t in quoted]
    return sql.edited(edits)


def _is_on(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name)).lower() == "true"


def _set_value(spark: SparkSession, name: str) -> str:
    """The value of a setting, else empty text, as Spark has it; LookupError if the setting cannot be empty."""
    try:
        return str(spark.conf.get(name, ""))
    except PySparkException as error:
        raise LookupError(name) from error
