"""A query's text with lake tables replaced by named frames; everything else stays as it was written."""

from collections.abc import Iterable, Mapping

from bergline.sql.statements import Name, Query, TableUse


def rewrite_query(query: Query, frames: Mapping[TableUse, str], insertions: Iterable[tuple[int, int, str]] = ()) -> str:
    """The text for an engine that replaces `{name}` by a frame; other braces are doubled."""
    edits = [(use.start, use.end, _reference(use, frame)) for use, frame in frames.items()]
    edits += [(starts[0], starts[keep], "") for name, starts in query.columns if (keep := _qualifier(name, frames))]
    edits += [(start, end, _escape(text)) for start, end, text in insertions]
    pieces, position = [], 0
    for start, end, text in sorted(edits):
        pieces += [_escape(query.text[position:start]), text]
        position = end
    return "".join([*pieces, _escape(query.text[position:])])


def _qualifier(column: Name, frames: Mapping[TableUse, str]) -> int:
    """How many leading parts of a column to drop: the alias of a replaced table has only its name's last part."""
    for length in range(len(column) - 1, 1, -1):
        if any(use.add_alias and _folded(use.name[-length:]) == _folded(column[:length]) for use in frames):
            return length - 1
    return 0


def _reference(use: TableUse, frame: str) -> str:
    alias = use.name[-1].replace("`", "``")
    return f"{{{frame}}} AS `{_escape(alias)}`" if use.add_alias else f"{{{frame}}}"


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _folded(name: Name) -> Name:
    """Column names ignore case in Spark, and so do the table names in front of them."""
    return tuple(part.casefold() for part in name)
