"""Text with several statements, split at the semicolons between them."""

from collections.abc import Sequence

import msgspec

from bergline.sql.text.tokens import SqlText, Token

_INNER = ("IF", "WHILE", "LOOP", "REPEAT", "FOR")


class SplitScript(msgspec.Struct, frozen=True):
    """The statements that are ended by a semicolon, without it, and the text after the last one."""

    statements: tuple[str, ...]
    rest: str
    """What a prompt waits for the end of; empty if nothing but space and comments is left."""


def split_script(text: str) -> SplitScript:
    """Split text into statements; SqlSyntaxError for an open quote or comment.

    Semicolons in quotes, in comments, and between the BEGIN and END of a compound statement end nothing.
    """
    tokens = SqlText(text).tokens
    statements, start, first = [], 0, 0
    for i, token in enumerate(tokens):
        if token.is_symbol(";") and not _open_blocks(tokens[first:i]):
            if i > first:
                statements.append(text[start : token.start].strip())
            start, first = token.end, i + 1
    return SplitScript(tuple(statements), text[start:].strip() if len(tokens) - 1 > first else "")


def _open_blocks(tokens: Sequence[Token]) -> int:
    """How many blocks of a compound statement are open behind its tokens; other statements have none.

    Blocks begin with BEGIN or CASE. The others end in `END IF`, `END LOOP` and the like, by which they are known: as
    words, `if` and `repeat` are also functions.
    """
    labelled = len(tokens) > 2 and tokens[1].is_symbol(":")  # noqa: PLR2004  (a label, a colon, a statement)
    body = tokens[2:] if labelled else tokens
    if not body or not body[0].is_word("BEGIN"):
        return 0
    depth = 0
    for i, token in enumerate(body):
        before = body[i - 1] if i else None
        if before is not None and (before.is_symbol(".") or before.is_word("AS")):
            continue  # a name
        after = body[i + 1] if i + 1 < len(body) else None
        if token.is_word("END"):
            depth -= 0 if after is not None and after.is_word(*_INNER) else 1
        elif token.is_word("BEGIN") or (token.is_word("CASE") and not (before is not None and before.is_word("END"))):
            depth += 1
    return depth
