"""Changes that are tried again when another writer comes first, as often as is reasonable."""

from collections.abc import Callable, Iterator

from bergline.errors import BerglineError, ConflictError, UnavailableError


def attempts(
    moved: str,
    most: int = 100,
    error: type[BerglineError] = ConflictError,
    wait: Callable[[int], None] = lambda _: None,
) -> Iterator[None]:
    """Every `next` begins another attempt, after a wait; the one too many raises, and says what `moved` each time."""
    for number in range(most):
        yield
        wait(number)
    raise error(f"{moved}, {most} times in a row", hints=["try again"])


def looks(moved: str) -> Iterator[None]:
    """Attempts to read many files, which takes long, and changes nothing if all fail."""
    return attempts(moved, 10, UnavailableError)
