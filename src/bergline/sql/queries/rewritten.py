"""A query's text with lake tables replaced by named frames; everything else stays as it was written."""

from collections.abc import Iterable, Mapping

import msgspec

from bergline.errors import UnsupportedError
from bergline.quoting import back_quoted
from bergline.sql.queries.query import Query, TableUse
from bergline.sql.text.composed import CopiedText, written_place
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
