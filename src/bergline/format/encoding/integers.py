"""Integers bounded as in the specification; a value out of range in a file is an error that names its path."""

from typing import Annotated

import msgspec

from bergline.errors import RefusedError

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=-(2**63 // 1000), le=(2**63 - 1) // 1000)]
"""A timestamp in milliseconds whose microseconds fit a long too."""

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


def next_int(what: str, last: int) -> int:
    """The next id; RefusedError if ids are exhausted."""
    return _next(what, last, MAX_INT)


def next_long(what: str, last: int) -> int:
    """The next number; RefusedError if numbers are exhausted."""
    return _next(what, last, MAX_LONG)


def _next(what: str, last: int, limit: int) -> int:
    if last >= limit:
        raise RefusedError(f"cannot assign another {what}: {last} is the largest there is")
    return last + 1
