"""Text put together from parts of a statement and words of our own, which knows where each part was written."""

import msgspec

from bergline.sql.text.tokens import Edit, SqlText

CopiedText = tuple[int, int, int]
"""Where a part begins and ends in the composed text, and where it begins in the statement."""


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
