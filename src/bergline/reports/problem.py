"""What is broken and where, for reports that show everything else."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from bergline.errors import BerglineError

_Found = TypeVar("_Found")


class Problem(msgspec.Struct, frozen=True):
    """An error as a value: what cannot be shown, why, and what would help."""

    what: str
    """What could not be read, such as "the files of `main`"."""
    message: str
    code: str = BerglineError.code
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"cannot show {self.what}: {self.message}"


def problem_of(what: str, error: BerglineError) -> Problem:
    """The problem for an error, as part of a report."""
    return Problem(what, error.message, error.code, error.hints)


def attempt(problems: list[Problem], what: str, read: Callable[[], _Found]) -> _Found | None:
    """The result of a read; if it fails, None, and a problem is added."""
    try:
        return read()
    except BerglineError as error:
        problems.append(problem_of(what, error))
        return None
