"""Lookup of paths in columns: the set, which may have millions of paths, is prepared once, not for every batch."""

from collections.abc import Iterable

import polars as pl


class PathLookup:
    """A set of paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._hashes = PathHashes([pl.Series(list(self._paths), dtype=pl.String).hash()])

    def holds(self, column: pl.Series) -> pl.Series:
        """For each path of a column, whether it is in the set."""
        found = self._hashes.may_hold(column)
        places = found.arg_true()
        known = [path in self._paths for path in column.gather(places).to_list()]
        return found if all(known) else found.scatter(places, known)


class PathHashes:
    """A set of paths that takes eight bytes per path; other paths seem to be in it only if they share a hash."""

    def __init__(self, hashes: Iterable[pl.Series]) -> None:
        self._hashes = pl.concat([pl.Series([], dtype=pl.UInt64), *hashes]).unique().sort()

    def may_hold(self, column: pl.Series) -> pl.Series:
        """For each path of a column, whether it may be in the set; false for null."""
        if self._hashes.is_empty():
            return pl.repeat(False, len(column), dtype=pl.Boolean, eager=True)
        hashes = column.hash()
        places = self._hashes.search_sorted(hashes).clip(0, len(self._hashes) - 1)
        return (self._hashes.gather(places) == hashes) & column.is_not_null()
