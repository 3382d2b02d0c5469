"""A query's text with lake tables replaced by named frames; everything else stays as it was written."""

from collections.abc import Iterable, Mapping

from bergline.errors import UnsupportedError
from bergline.sql.statements import Name, Query, TableUse


def rewrite_query(query: Query, frames: Mapping[TableUse, str], insertions: Iterable[tuple[int, int, str]] = ()) -> str:
    """The text for an engine that replaces `{name}` by a frame; other braces are doubled."""
    edits = [(use.start, use.end, _reference(use, frame)) for use, frame in frames.items()]
    edits += [edit for name, starts in query.columns if (edit := _column_edit(name, starts, frames))]
    edits += [(start, end, escaped(text)) for start, end, text in insertions]
    pieces, position = [], 0
    for start, end, text in sorted(edits):
        pieces += [escaped(query.text[position:start]), text]
        position = end
    return "".join([*pieces, escaped(query.text[position:])])


def _column_edit(column: Name, starts: tuple[int, ...], frames: Mapping[TableUse, str]) -> tuple[int, int, str] | None:
    """A column without the parts of its table's name that the alias of a replaced table does not have."""
    for length in range(len(column) - 1, 1, -1):
        for use in frames:
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
    return f"`{escaped(name.replace('`', '``'))}`"


def escaped(text: str) -> str:
    """Text in which braces are braces, for an engine that replaces `{name}`."""
    return text.replace("{", "{{").replace("}", "}}")


def _folded(name: Name) -> Name:
    """Column names ignore case in Spark, and so do the table names in front of them."""
    return tuple(part.casefold() for part in name)
