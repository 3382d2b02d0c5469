"""`VERSION AS OF` and `TIMESTAMP AS OF`: found by tokens and blanked, because sqlglot reads only some of them."""

from bergline.sql.statements import AsOf
from bergline.sql.tokens import Token, TokenKind


def time_travel_clauses(tokens: list[Token]) -> list[tuple[int, int, AsOf]]:
    """`[FOR] VERSION | TIMESTAMP AS OF literal`: where each stands and what it says."""
    clauses = []
    for i, token in enumerate(tokens[:-3]):
        if not token.is_word("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            continue
        if not (tokens[i + 1].is_word("AS") and tokens[i + 2].is_word("OF")):
            continue
        is_version = token.is_word("VERSION", "SYSTEM_VERSION")
        literal = tokens[i + 3]
        if not is_version and literal.is_word("TIMESTAMP") and tokens[i + 4].kind is TokenKind.STRING:
            literal = tokens[i + 4]
        start = tokens[i - 1].start if i and tokens[i - 1].is_word("FOR") else token.start
        kind = "version" if is_version else "timestamp"
        if literal.kind is TokenKind.STRING:
            clauses.append((start, literal.end, AsOf(kind, literal.value)))  # type: ignore[arg-type]
        elif literal.kind is TokenKind.NUMBER and literal.text.isdecimal():
            clauses.append((start, literal.end, AsOf(kind, int(literal.text))))  # type: ignore[arg-type]
    return clauses


def blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with these spans as spaces, so that every other offset, line and column stays."""
    for start, end in spans:
        blank = "".join("\n" if c == "\n" else " " for c in text[start:end])
        text = f"{text[:start]}{blank}{text[end:]}"
    return text
