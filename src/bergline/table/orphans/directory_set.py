"""Directories, and what overlaps with them."""

import contextlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from bergline.errors import InvalidInputError
from bergline.table.expiry.path_rules import PathRules


class DirectorySet:
    """Directories, and what overlaps with them."""

    def __init__(self, rules: PathRules, directories: Iterable[str]) -> None:
        self._rules = rules
        self._exact = {rules.below(directory): directory for directory in directories}
        self._sorted = sorted(self._exact)
        self._loose = sorted({rules.loosely_below(directory) for directory in self._exact.values()})

    def overlapping(self, directories: Iterable[str]) -> str | None:
        """The first of our directories that is inside a given one, or contains it; invalid ones are skipped."""
        for directory in directories:
            with contextlib.suppress(InvalidInputError):
                found = _overlapping(self._sorted, self._rules.below(directory))
                if found is not None:
                    return self._exact[found]
        return None

    def may_overlap(self, directories: Iterable[str]) -> bool:
        """Whether a directory may overlap, judged by its path without scheme and bucket; true for invalid locations."""
        try:
            below = [self._rules.loosely_below(directory) for directory in directories]
        except InvalidInputError:
            return True
        return any(_overlapping(self._loose, directory) is not None for directory in below)

    @property
    def paths(self) -> list[str]:
        """The loose spellings, each with a trailing slash."""
        return self._loose

    def holding(self, files: Iterable[str]) -> str | None:
        """The first of our directories that contains one of the files, given by their exact spelling."""
        for name in files:
            found = next((above for above in _above(name) if above in self._exact), None)
            if found is not None:
                return self._exact[found]
        return None


def _overlapping(sorted_: list[str], directory: str) -> str | None:
    """One of the sorted directories, each ending in a slash, that is inside another or contains it."""
    index = bisect_left(sorted_, directory)
    if index < len(sorted_) and sorted_[index].startswith(directory):
        return sorted_[index]
    for above in _above(directory):
        index = bisect_left(sorted_, above)
        if index < len(sorted_) and sorted_[index] == above:
            return above
    return None


def _above(path: str) -> Iterator[str]:
    """The directories around a path, innermost first, each with a trailing slash."""
    end = path.rstrip("/").rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)
