"""SQL text as tokens with offsets: enough for Iceberg's own statements, and for editing other text in place."""

import re
from collections.abc import Sequence
from enum import Enum

import msgspec

from bergline.errors import SqlSyntaxError
from bergline.quoting import without_back_quotes


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


def tokenize(text: str) -> list[Token]:
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
            tokens.append(_token(kind, match))
    return [*tokens, Token(TokenKind.END, "", "", len(text), len(text))]


def syntax_error(text: str, position: int, message: str, near: Sequence[str] = ()) -> SqlSyntaxError:
    """An error at a place in the text, with line and column; `near` is what may have been meant."""
    before = text[:position]
    found = re.match(r"\w*", text[position:])
    near = [n for n in near if found is None or n.casefold() != found.group().casefold()]
    return SqlSyntaxError(
        message,
        line=before.count("\n") + 1,
        column=position - (before.rfind("\n") + 1) + 1,
        hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
    )


def _token(kind: str, match: re.Match[str]) -> Token:
    text = match.group()
    if kind == "quoted":
        return Token(TokenKind.QUOTED, text, without_back_quotes(text), match.start(), match.end())
    if kind == "raw":
        return Token(TokenKind.STRING, text, text[2:-1], match.start(), match.end())
    if kind == "string":
        quote = text[0]
        value = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), text[1:-1].replace(quote * 2, quote))
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
