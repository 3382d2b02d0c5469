"""Changes that begin again when another writer comes first: as often as is reasonable, then an error."""

import itertools
from collections.abc import Iterator

from bergline.errors import BerglineError, ConflictError, UnavailableError


def attempts(moved: str, most: int = 100, error: type[BerglineError] = ConflictError) -> Iterator[None]:
    """Every `next` begins another attempt; the one too many is an error that says what `moved` each time."""
    yield from itertools.repeat(None, most)
    raise error(f"{moved}, {most} times in a row", hints=["try again"])


def looks(moved: str) -> Iterator[None]:
    """Attempts to read many files, which takes its time; where all come to nothing, nothing was changed."""
    return attempts(moved, 10, UnavailableError)
