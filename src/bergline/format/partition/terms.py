"""Terms such as `day(ts)`, `bucket(16, id)` or `region`: a transform of a column."""

import re

from bergline.errors import InvalidInputError
from bergline.format.partition.transforms import (
    IDENTITY,
    Bucket,
    Identity,
    TimeTransform,
    Transform,
    Truncate,
    parse_transform,
)
from bergline.quoting import without_back_quotes

_PLURALS = {f"{unit}s": unit for unit in ("year", "month", "day", "hour")}
_ARGUMENTS = 2
_QUOTED = re.compile(r"`(?:[^`]|``)+`")
_PIECE = re.compile(r"`(?:[^`]|``)+`|[^`,]+|[`,]")


def parse_term(text: str) -> tuple[Transform, str]:
    """Parse a term; a parameter may come before or after the column."""
    function, bracket, rest = text.strip().partition("(")
    if not bracket or function.startswith("`"):
        return IDENTITY, _column(text, text)
    if not rest.endswith(")"):
        raise _unknown(text)
    arguments = _split(rest[:-1])
    numbers = [a for a in arguments if a.isascii() and a.isdigit()]
    columns = [a for a in arguments if a not in numbers]
    name = function.strip().lower()
    if len(columns) != 1 or len(arguments) > _ARGUMENTS:
        raise _unknown(text)
    transform = parse_transform(f"{_PLURALS.get(name, name)}{''.join(f'[{n}]' for n in numbers)}")
    if not isinstance(transform, Identity | TimeTransform | Bucket | Truncate):
        raise _unknown(text)
    return transform, _column(columns[0], text)


def _split(text: str) -> list[str]:
    """Split arguments at commas outside of back-quotes."""
    arguments = [""]
    for piece in _PIECE.findall(text):
        if piece == ",":
            arguments.append("")
        else:
            arguments[-1] += piece
    return [argument.strip() for argument in arguments]


def _column(name: str, term: str) -> str:
    name = name.strip()
    if _QUOTED.fullmatch(name):
        return without_back_quotes(name)
    if not name or any(c in "(),`" for c in name):
        raise _unknown(term)
    return name


def _unknown(term: str) -> InvalidInputError:
    return InvalidInputError(
        f"expected a term like `day(ts)`, `bucket(16, id)`, `truncate(4, name)` or `region`, found `{term[:80]}`"
    )
