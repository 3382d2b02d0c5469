"""A query's text with lake tables replaced by named frames; everything else stays as it was written."""

from collections.abc import Mapping

from bergline.sql.statements import Query, TableUse


def rewrite_query(query: Query, frames: Mapping[TableUse, str]) -> str:
    """The text for an engine that replaces `{name}` by a frame; other braces are doubled."""
    replaced = {use.name for use in frames}
    edits = [(use.start, use.end, _reference(use, frame)) for use, frame in frames.items()]
    edits += [(start, end, "") for name, start, end in query.qualifiers if name in replaced]
    pieces, position = [], 0
    for start, end, text in sorted(edits):
        pieces += [_escape(query.text[position:start]), text]
        position = end
    return "".join([*pieces, _escape(query.text[position:])])


def _reference(use: TableUse, frame: str) -> str:
    alias = use.name[-1].replace("`", "``")
    return f"{{{frame}}} AS `{_escape(alias)}`" if use.add_alias else f"{{{frame}}}"


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
