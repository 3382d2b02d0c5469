"""`VERSION AS OF` and `TIMESTAMP AS OF`: found by tokens and blanked, because sqlglot reads only some of them."""

from collections.abc import Sequence

from bergline.sql.queries.query import AsOf
from bergline.sql.text.tokens import SqlText, Token, TokenKind

_OPERATORS = ("+", "-", "*", "/", "%", "||", "::")
_OPENING = ("(", "-", "+", ":", "?")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")


def time_travel_clauses(sql: SqlText) -> list[tuple[int, int, AsOf]]:
    """`[FOR] VERSION | TIMESTAMP AS OF …`: where each stands and what it says."""
    clauses, tokens = [], sql.tokens
    for i, token in enumerate(tokens[:-3]):
        if not token.is_word("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            continue
        if not (tokens[i + 1].is_word("AS") and tokens[i + 2].is_word("OF")):
            continue
        start = tokens[i - 1].start if i and tokens[i - 1].is_word("FOR") else token.start
        is_version = token.is_word("VERSION", "SYSTEM_VERSION")
        end = i + 4 if is_version else _after_expression(tokens, i + 3)
        as_of = _as_of(sql, tokens[i + 3 : end], is_version=is_version)
        if as_of is not None:
            clauses.append((start, tokens[end - 1].end, as_of))
    return clauses


def _as_of(sql: SqlText, tokens: Sequence[Token], *, is_version: bool) -> AsOf | None:
    """What the tokens after AS OF say; None if it is nothing that Spark knows."""
    literal = tokens[-1] if len(tokens) == 1 or (len(tokens) == 2 and tokens[0].is_word("TIMESTAMP")) else None  # noqa: PLR2004
    if literal is not None and literal.kind is TokenKind.STRING:
        return AsOf("version" if is_version else "timestamp", literal.value)
    if literal is not None and literal.kind is TokenKind.NUMBER and literal.text.isdecimal():
        return AsOf("version" if is_version else "timestamp", int(literal.text))
    if is_version or not tokens or not _may_begin(tokens[0]):
        return None
    return AsOf("timestamp", None, sql.part(tokens[0].start, tokens[-1].end))


def _may_begin(token: Token) -> bool:
    """Whether an expression can begin so: `of` may be the alias of a column that is called `timestamp`."""
    return token.text in _OPENING if token.kind is TokenKind.SYMBOL else not token.is_word("FROM")


def _after_expression(tokens: Sequence[Token], i: int) -> int:
    """The token after operands with operators between them."""
    i = _after_operand(tokens, i)
    while tokens[i].kind is TokenKind.SYMBOL and tokens[i].text in _OPERATORS:
        i = _after_operand(tokens, i + 1)
    return i


def _after_operand(tokens: Sequence[Token], i: int) -> int:
    """The token after a literal, a name, a call, a parameter or something in parentheses."""
    while tokens[i].is_symbol("-") or tokens[i].is_symbol("+") or tokens[i].is_symbol(":"):
        i += 1
    if tokens[i].is_word("INTERVAL"):
        return _after_interval(tokens, i + 1)
    if tokens[i].kind is TokenKind.WORD and tokens[i + 1].kind is TokenKind.STRING:
        return i + 2
    i = _after_one(tokens, i)
    while tokens[i].is_symbol(".") or tokens[i].is_symbol("("):
        i = _after_one(tokens, i + 1 if tokens[i].is_symbol(".") else i)
    return i


def _after_interval(tokens: Sequence[Token], i: int) -> int:
    """The token after `1 DAY`, `'1' HOUR 2 MINUTES`, `'1-2' YEAR TO MONTH`, `'1 day'` and the like."""
    i = _after_one(tokens, i + 1 if tokens[i].is_symbol("-") else i)
    while _is_unit(tokens[i]):
        i = i + 3 if tokens[i + 1].is_word("TO") and _is_unit(tokens[i + 2]) else i + 1
        if tokens[i].kind in {TokenKind.NUMBER, TokenKind.STRING}:
            i += 1
    return i


def _is_unit(token: Token) -> bool:
    return token.kind is TokenKind.WORD and token.text.upper().removesuffix("S") in _UNITS


def _after_one(tokens: Sequence[Token], i: int) -> int:
    """The token after one, or after what it opens; the end stays."""
    depth = 0
    while tokens[i].kind is not TokenKind.END:
        depth += tokens[i].is_symbol("(") - tokens[i].is_symbol(")")
        i += 1
        if depth <= 0:
            break
    return i
