"""A statement that needs no engine: the words that it begins with, its parser and its runner."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from bergline.sql.names.resolve import Lakes
from bergline.sql.text.cursor import Cursor

NO_ROWS = pa.table({})


class LakeStatement(msgspec.Struct, frozen=True):
    """A statement that needs no engine: it runs on lakes and returns Arrow rows."""


S = TypeVar("S", bound=LakeStatement)


def _moves_none(_: LakeStatement) -> str | None:
    return None


class StatementKind(msgspec.Struct, Generic[S], frozen=True):
    """Everything the package knows about a kind of statement; `registry.py` lists the kinds."""

    variants: tuple[type[S], ...]
    """What its parsers return."""
    parsers: Mapping[str, Callable[[Cursor], S | None]]
    """By the words that the statement begins with: each parses what follows them, None if it is another statement."""
    run: Callable[[S, Lakes], pa.Table | None]
    """Its rows; None if it is about something that is not a lake's."""
    ref_move: Callable[[S], str | None] = _moves_none
    """Which move or drop of a ref the statement is, in words for an error; None if it moves none.

    Pipelines refuse such statements: what they do would stay if an audit fails.
    """
