"""SQL text and its tokens with offsets: enough for Iceberg's own statements, and for editing other text in place."""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property

import msgspec

from bergline.errors import SqlSyntaxError
from bergline.quoting import without_back_quotes

Name = tuple[str, ...]
"""The parts of a name, without quotes."""
Edit = tuple[int, int, str]
"""Two offsets, and the text that replaces what is between them."""


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "text"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


class Token(msgspec.Struct, frozen=True):
    """A piece of SQL; `value` is without quotes and escapes, `text` as written."""

    kind: TokenKind
    text: str
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_symbol(self, symbol: str) -> bool:
        """Whether it is this symbol."""
        return self.kind is TokenKind.SYMBOL and self.text == symbol


class Dialect(msgspec.Struct, frozen=True):
    """What the settings of a session make of a text; without one, Spark's defaults."""

    keeps_backslashes: bool = False
    """Whether a string is all that stands between its quotes: a backslash, and two quotes, stand for themselves."""
    joins_strings: bool = False
    """Whether `'a''b'` is two strings that are joined, and not one with a quote in it."""
    timestamp_ntz: bool = False
    """Whether the type TIMESTAMP is without a time zone."""


PLAIN = Dialect()


class SqlText(msgspec.Struct, frozen=True, dict=True):
    """SQL text that is tokenized once, when its tokens are first asked for.

    A part of the text has the tokens that are in it; edited text is a new value, with tokens of its own.
    """

    text: str
    dialect: Dialect = PLAIN

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens, an END token last; SqlSyntaxError for an open quote or comment."""
        return tokenize(self.text, self.dialect)

    @property
    def first_word(self) -> str:
        """What the text begins with, in upper case."""
        return self.tokens[0].text.upper()

    def has_word(self, *words: str) -> bool:
        """Whether one of these keywords stands anywhere in the text."""
        return any(token.is_word(*words) for token in self.tokens)

    def part(self, start: int, end: int | None = None) -> "SqlText":
        """The text between two offsets, neither of which may be inside a token."""
        text = self.text[start:end]
        inside = [token for token in self.tokens[:-1] if start <= token.start and token.end <= start + len(text)]
        return self._with_tokens(text, [_moved(token, -start) for token in inside])

    def blanked(self, spans: Sequence[tuple[int, int]]) -> "SqlText":
        """The text with these spans as spaces, so that every other offset, line and column stays."""
        text = self.text
        for start, end in spans:
            blank = "".join("\n" if c == "\n" else " " for c in text[start:end])
            text = f"{text[:start]}{blank}{text[end:]}"
        kept = [t for t in self.tokens[:-1] if not any(start <= t.start < end for start, end in spans)]
        return self._with_tokens(text, kept)

    def without_semicolon(self) -> "SqlText":
        """The text without a semicolon at its end."""
        return self.part(0, len(self.text.rstrip().removesuffix(";")))

    def edited(self, edits: Iterable[Edit]) -> "SqlText":
        """The text with these edits, which do not overlap; itself if there are none."""
        text, edits = self.text, sorted(edits)
        for start, end, new in reversed(edits):
            text = f"{text[:start]}{new}{text[end:]}"
        return SqlText(text, self.dialect) if edits else self

    def _with_tokens(self, text: str, tokens: Sequence[Token]) -> "SqlText":
        """Text whose tokens are known: they are put where `cached_property` keeps them."""
        sql = SqlText(text, self.dialect)
        sql.__dict__["tokens"] = (*tokens, _end(text))
        return sql


def _moved(token: Token, by: int) -> Token:
    return Token(token.kind, token.text, token.value, token.start + by, token.end + by) if by else token


def _end(text: str) -> Token:
    return Token(TokenKind.END, "", "", len(text), len(text))


_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | --[^\n]*)
  | (?P<comment>/\*)
  | (?P<raw>[rR](?:'[^']*' | "[^"]*"))
  | (?P<string>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![A-Za-z_0-9]) | \.\d+(?![A-Za-z_0-9]))
  | (?P<word>\w+)
  | (?P<symbol>=>|<=>|<=|>=|<>|!=|\|\||::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"word": TokenKind.WORD, "number": TokenKind.NUMBER, "symbol": TokenKind.SYMBOL}
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def tokenize(text: str, dialect: Dialect = PLAIN) -> tuple[Token, ...]:
    """All tokens without comments and white space, an END token last; SqlSyntaxError for an open quote or comment."""
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.group() in {"'", '"', "`"}:
            raise syntax_error(text, position, f"expected a closing quote, found `{text[position:][:20]}` left open")
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "comment":
            position = _comment_end(text, match.start())
        elif kind != "space":
            tokens.append(_token(kind, match, dialect))
    return (*tokens, _end(text))


def syntax_error(
    text: str, position: int, message: str, near: Sequence[str] = (), *, condition: str | None = None
) -> SqlSyntaxError:
    """An error at a place in the text, with line and column; `near` is what may have been meant."""
    before = text[:position]
    found = re.match(r"\w*", text[position:])
    near = [n for n in near if found is None or n.casefold() != found.group().casefold()]
    return SqlSyntaxError(
        message,
        line=before.count("\n") + 1,
        column=position - (before.rfind("\n") + 1) + 1,
        hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
        condition=condition,
    )


def _token(kind: str, match: re.Match[str], dialect: Dialect) -> Token:
    text = match.group()
    if kind == "quoted":
        return Token(TokenKind.QUOTED, text, without_back_quotes(text), match.start(), match.end())
    if kind == "raw":
        return Token(TokenKind.STRING, text, text[2:-1], match.start(), match.end())
    if kind == "string":
        quote = text[0]
        value = text[1:-1]
        if not dialect.keeps_backslashes:
            value = value.replace(quote * 2, "" if dialect.joins_strings else quote)
            value = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), value)
        return Token(TokenKind.STRING, text, value, match.start(), match.end())
    return Token(_KINDS[kind], text, text, match.start(), match.end())


def _comment_end(text: str, start: int) -> int:
    """Bracketed comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise syntax_error(text, start, "expected `*/`, found a comment left open")
