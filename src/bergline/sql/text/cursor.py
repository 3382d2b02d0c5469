"""A cursor over tokens, for the parsers of Iceberg's own statements."""

import re
from collections.abc import Iterable
from typing import NoReturn

from bergline.errors import near_names
from bergline.sql.text.tokens import Name, SqlText, Token, TokenKind, syntax_error

_KEYWORD = re.compile(r"\b[A-Z]{2,}\b")
"""A keyword in the text of an error."""


class Cursor:
    """Walks over tokens; `expect` methods raise SqlSyntaxError with what was expected and found."""

    def __init__(self, sql: SqlText) -> None:
        self.sql = sql
        self._tokens = sql.tokens
        self._position = 0
        self.subject: Name | None = None
        """The table or namespace that the statement is about, once it has been parsed: errors belong to it."""

    @property
    def token(self) -> Token:
        """The current token."""
        return self._tokens[self._position]

    @property
    def following(self) -> Token:
        """The token after it."""
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Take the current token."""
        token = self.token
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def accept(self, *words: str) -> bool:
        """Take these keywords if all of them come next."""
        ahead = self._tokens[self._position : self._position + len(words)]
        if len(ahead) < len(words) or not all(t.is_word(w) for t, w in zip(ahead, words, strict=True)):
            return False
        self._position += len(words)
        return True

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol if it comes next."""
        found = self.token.is_symbol(symbol)
        if found:
            self.advance()
        return found

    def expect(self, *words: str) -> None:
        """Take these keywords."""
        for word in words:
            if not self.accept(word):
                self.fail(f"`{word}`")

    def expect_symbol(self, symbol: str) -> None:
        """Take this symbol."""
        if not self.accept_symbol(symbol):
            self.fail(f"`{symbol}`")

    def expect_name(self, what: str) -> str:
        """Take a plain or back-quoted name."""
        if self.token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            self.fail(what)
        return self.advance().value

    def expect_dotted_name(self, what: str) -> Name:
        """Take a name of one or more parts."""
        parts = [self.expect_name(what)]
        while self.accept_symbol("."):
            parts.append(self.expect_name(what))
        return tuple(parts)

    def expect_subject(self, what: str) -> Name:
        """Take the name of the table or namespace that the statement is about."""
        self.subject = self.expect_dotted_name(what)
        return self.subject

    def expect_text(self, what: str) -> str:
        """Take a quoted string; adjacent strings are joined."""
        pieces: list[str] = []
        while self.token.kind is TokenKind.STRING:
            pieces.append(self.advance().value)
        return "".join(pieces) if pieces else self.fail(what)

    def expect_one_of(self, *words: str) -> str:
        """Take one of these keywords."""
        if not self.token.is_word(*words):
            self.fail(alternatives(words))
        return self.advance().text.upper()

    def expect_whole_number(self) -> int:
        """Take a whole number."""
        if self.token.kind is not TokenKind.NUMBER or not self.token.text.isdecimal():
            self.fail("a whole number")
        return int(self.advance().text)

    def expect_end(self, *otherwise: str) -> None:
        """Require the end of the statement; a semicolon may come before it."""
        self.accept_symbol(";")
        if self.token.kind is not TokenKind.END:
            self.fail(", ".join([*otherwise, "the end of the statement"]))

    def rest(self) -> SqlText:
        """The text from the current token to the end, without a trailing semicolon."""
        return self.sql.part(self.token.start).without_semicolon()

    def is_at(self, *words: str) -> bool:
        """Whether these keywords come next."""
        position = self._position
        found = self.accept(*words)
        self._position = position
        return found

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left but perhaps a semicolon."""
        ahead = self.following if self.token.is_symbol(";") else self.token
        return ahead.kind is TokenKind.END

    @property
    def is_at_name(self) -> bool:
        """Whether a plain or back-quoted name comes next."""
        return self.token.kind in {TokenKind.WORD, TokenKind.QUOTED}

    def fail(self, expected: str, condition: str | None = None) -> NoReturn:
        """Raise what was expected here; a condition of Spark's, if it is not the usual one."""
        found = f"`{self.token.text}`" if self.token.text else "the end of the statement"
        meant = _KEYWORD.findall(expected) if self.token.kind is TokenKind.WORD else ()
        message = f"expected {expected}, found {found}"
        raise syntax_error(
            self.sql.text, self.token.start, message, near_names(self.token.text, meant), condition=condition
        )


def alternatives(words: Iterable[str]) -> str:
    """Keywords in the form in which errors list them."""
    return ", ".join(f"`{word}`" for word in words)
