"""Paths that are looked up in columns."""

import polars as pl
import pytest

from bergline.scan.path_lookup import PathLookup


@pytest.mark.parametrize("paths", [[], ["a"], ["a", "c", "a"], ["x", "y"]])
def test_columns_are_compared_with_a_set(paths: list[str]) -> None:
    column = pl.Series(["a", "b", None, "c", "a"], dtype=pl.String)
    assert PathLookup(paths).holds(column).to_list() == [path in paths for path in column]


def test_a_path_that_shares_a_hash_is_not_in_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl.Series, "hash", lambda self: pl.repeat(7, len(self), dtype=pl.UInt64, eager=True))
    assert PathLookup(["a", "b"]).holds(pl.Series(["b", "c", "a"])).to_list() == [True, False, True]
