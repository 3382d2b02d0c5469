"""Statements as tests give them: as text, read or run on a lake without an engine."""

import pyarrow as pa
import pytest

from bergline import Lake
from bergline.sql.analyze import Statement, analyze
from bergline.sql.names.engine_context import NoEngine
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.call import CallProcedure, parse_call
from bergline.sql.statements.registry import run_statement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText


def meaning(text: str) -> Statement:
    """What a statement means."""
    return analyze(SqlText(text))


def parsed_call(text: str) -> CallProcedure | None:
    """What a CALL means; None for another statement."""
    cursor = Cursor(SqlText(text))
    return parse_call(cursor) if cursor.accept("CALL") else None


def run_text(lake: Lake, text: str, **others: Lake) -> pa.Table | None:
    """The rows of a statement on a lake; None if it is not about the lake."""
    statement = meaning(text)
    assert isinstance(statement, LakeStatement), statement
    return run_statement(statement, Lakes({"lake": lake, **others}, "lake"))


def rows_of(lake: Lake, text: str) -> list[dict[str, object]] | None:
    """The same as Python values."""
    rows = run_text(lake, text)
    return None if rows is None else rows.to_pylist()


class Session:
    """Runs statements one after the other; USE counts for those after it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._current = Current()

    def __call__(self, text: str) -> list[tuple[object, ...]] | None:
        lakes = Lakes({"lake": self._lake}, "lake", self._current, NoEngine("Europe/Berlin"))
        statement = meaning(text)
        assert isinstance(statement, LakeStatement), statement
        rows = run_statement(statement, lakes)
        return None if rows is None else [tuple(row.values()) for row in rows.to_pylist()]


def check_unreadable(text: str, message: str, subjects: set[tuple[str, ...]]) -> None:
    """What cannot be read keeps its error and its subject."""
    statement = meaning(text)
    assert isinstance(statement, OtherStatement)
    assert statement.subject in subjects
    assert statement.error is not None
    with pytest.raises(type(statement.error), match=message.replace("(", r"\(").replace(")", r"\)")):
        raise statement.error
