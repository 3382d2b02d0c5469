"""Text that an engine gets in place of what the user wrote, and where each part of it was written, for errors.

A query is rewritten with named frames in place of lake tables; a new one is composed from parts of a statement.
"""

from collections.abc import Iterable, Mapping

import msgspec

from bergline.errors import UnsupportedError
from bergline.quoting import back_quoted
from bergline.sql.queries.query import CopiedText, Query, TableUse
from bergline.sql.text.tokens import Edit, Name, SqlText


class RewrittenQuery(msgspec.Struct, frozen=True):
    """A query as it was written, and the edits to it, with frames as `{name}`."""

    sql: SqlText
    edits: tuple[Edit, ...]
    statement: str = ""
    """The statement that the query is part of, if any."""
    start: int = 0
    """Where it begins in the statement."""
    parts: tuple[CopiedText, ...] = ()
    """Where its parts were written in the statement, if it was composed of them."""

    @property
    def text(self) -> str:
        """The text for an engine that replaces `{name}` by a frame; other braces are doubled."""
        pieces, position = [], 0
        for start, end, text in self.edits:
            pieces += [escaped(self.sql.text[position:start]), text]
            position = end
        return "".join([*pieces, escaped(self.sql.text[position:])])

    @property
    def shown(self) -> str:
        """The text as the user wrote it."""
        return self.statement or self.sql.text

    def shown_place(self, place: int, names: Mapping[str, str]) -> tuple[int, int]:
        """First and last index, in the text as written, of an offset in the text in which frames have these names."""
        shift = 0
        for start, end, text in self.edits:
            length = len(text.format_map(names))
            if place < start + shift:
                break
            if place < start + shift + length:
                return self._written(start), self._written(max(start, end - 1))
            shift += length - (end - start)
        found = self._written(min(max(place - shift, 0), len(self.sql.text)))
        return found, found

    def _written(self, place: int) -> int:
        """The offset in the statement of one in the query."""
        return written_place(self.parts, place) if self.parts else place + self.start


class ComposedText(msgspec.Struct, frozen=True):
    """A text, and which parts of it stand in the statement."""

    text: str
    parts: tuple[CopiedText, ...]


class Composer:
    """Collects the pieces of a text."""

    def __init__(self, statement: SqlText) -> None:
        self._statement = statement
        self._pieces: list[str] = []
        self.length = 0
        """Of the text so far."""
        self._parts: list[CopiedText] = []

    def add(self, text: str) -> None:
        """Words that the statement does not have."""
        self._pieces.append(text)
        self.length += len(text)

    def quote(self, start: int, end: int, edits: tuple[Edit, ...] = ()) -> None:
        """A part of the statement, with edits, by offsets in the statement."""
        for edit_start, edit_end, text in sorted(e for e in edits if start <= e[0] and e[1] <= end):
            self._copy(start, edit_start)
            self.add(text)
            start = edit_end
        self._copy(start, end)

    def result(self) -> ComposedText:
        """All of it."""
        return ComposedText("".join(self._pieces), tuple(self._parts))

    def _copy(self, start: int, end: int) -> None:
        if start < end:
            self._parts.append((self.length, self.length + end - start, start))
            self.add(self._statement.text[start:end])


def rewrite_query(
    query: Query,
    frames: Mapping[TableUse, str],
    insertions: Iterable[Edit] = (),
) -> RewrittenQuery:
    """The query with frames in place of its tables."""
    edits = [(use.start, use.end, _reference(use, frame)) for use, frame in frames.items()]
    edits += [edit for name, starts in query.columns if (edit := column_edit(name, starts, frames))]
    edits += [(start, end, escaped(text)) for start, end, text in insertions]
    return RewrittenQuery(query.sql, tuple(sorted(edits)), *query.within, query.parts)


def column_edit(column: Name, starts: tuple[int, ...], uses: Iterable[TableUse]) -> Edit | None:
    """A column without the parts of its table's name that the alias of a replaced table does not have."""
    for length in range(len(column) - 1, 1, -1):
        for use in uses:
            if not use.add_alias or _folded(use.name[-length:]) != _folded(column[:length]):
                continue
            match use.alias:
                case "last":
                    return starts[0], starts[length - 1], ""
                case "whole":
                    return starts[0], starts[length], f"{_alias(use)}."
            raise UnsupportedError(
                f"cannot tell `{'.'.join(column)}` from columns of another `{use.name[-1]}` in the query",
                hints=["give the tables aliases, as in `FROM db.orders AS o`"],
            )
    return None


def written_place(parts: tuple[CopiedText, ...], place: int) -> int:
    """The offset in the statement of one in the composed text; between parts, where the nearest one before it ends."""
    found = parts[0][2] if parts else place
    for start, end, written in parts:
        if place < start:
            break
        found = written + min(place, end) - start
    return found


def parameter_order(text: SqlText, parts: tuple[CopiedText, ...], statement: SqlText) -> list[int]:
    """Which of the statement's `?` each `?` of a composed text is, by number."""
    numbers = {token.start: i for i, token in enumerate(token for token in statement.tokens if token.is_symbol("?"))}
    return [numbers[written_place(parts, token.start)] for token in text.tokens if token.is_symbol("?")]


def _reference(use: TableUse, frame: str) -> str:
    return f"{{{frame}}} AS {_alias(use)}" if use.add_alias else f"{{{frame}}}"


def _alias(use: TableUse) -> str:
    name = ".".join(use.name) if use.alias == "whole" else use.name[-1]
    return escaped(back_quoted(name))


def escaped(text: str) -> str:
    """Text with braces doubled, for an engine that replaces `{name}`."""
    return text.replace("{", "{{").replace("}", "}}")


def _folded(name: Name) -> Name:
    """Column names ignore case in Spark, and so do the table names in front of them."""
    return tuple(part.casefold() for part in name)
