"""Decoded manifests in bounded memory."""

import polars as pl

from bergline.io.memory import MemoryFileIO
from bergline.scan.manifest_cache import FileCache, FreshReads
from support.fixtures.concurrency import run_for_each


def frame(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"n": pl.Series(range(rows), dtype=pl.Int64)})


def test_path_means_one_thing_in_each_storage() -> None:
    cache, one, two = FileCache[pl.DataFrame](8 * 1000), MemoryFileIO(), MemoryFileIO()
    cache.keep(one, "m", frame(1), 8 * 1)
    cache.keep(two, "m", frame(2), 8 * 2)
    found = [cache.find(io, "m") for io in (one, two)]
    assert [f.height for f in found if f is not None] == [1, 2]
    assert cache.find(one, "other") is None


def test_what_was_asked_for_least_recently_goes_first() -> None:
    cache, io = FileCache[pl.DataFrame](limit=8 * 30), MemoryFileIO()
    for name in "abc":
        cache.keep(io, name, frame(10), 8 * 10)
    cache.find(io, "a")
    cache.keep(io, "d", frame(10), 8 * 10)
    assert [name for name in "abcd" if cache.find(io, name) is not None] == ["a", "c", "d"]
    assert cache.size == 8 * 30


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache, io = FileCache[pl.DataFrame](limit=8 * 30), MemoryFileIO()
    cache.keep(io, "small", frame(10), 8 * 10)
    cache.keep(io, "large", frame(31), 8 * 31)
    assert cache.find(io, "large") is None
    assert cache.find(io, "small") is not None


def test_what_was_kept_before_is_not_fresh() -> None:
    cache, io, fresh = FileCache[pl.DataFrame](8 * 1000), MemoryFileIO(), FreshReads()
    cache.keep(io, "m", frame(1), 8 * 1)
    assert (cache.find(io, "m", fresh), cache.size) == (None, 0)
    cache.keep(io, "m", frame(2), 8 * 2, fresh)
    found = [cache.find(io, "m", fresh), cache.find(io, "m")]
    assert [f.height for f in found if f is not None] == [2, 2]


def test_cleared_cache_holds_nothing() -> None:
    cache, io = FileCache[pl.DataFrame](8 * 1000), MemoryFileIO()
    cache.keep(io, "m", frame(10), 8 * 10)
    cache.clear()
    assert (cache.find(io, "m"), cache.size) == (None, 0)


def test_size_stays_right_under_many_threads() -> None:
    cache, io = FileCache[pl.DataFrame](limit=8 * 50), MemoryFileIO()

    def work(seed: int) -> None:
        for n in range(300):
            name = f"m{(n * 7 + seed) % 20}"
            if cache.find(io, name) is None:
                cache.keep(io, name, frame(10), 8 * 10)

    run_for_each(work, range(4))
    held = sum(cache.find(io, f"m{n}") is not None for n in range(20))
    assert cache.size == held * 80 <= 8 * 50
