"""Loads that are kept: the latest of each table, in bounded memory."""

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.tables import CachedLoad, LoadCache
from bergline.testing.catalog_suite import table_metadata


def load(name: str, size: int) -> CachedLoad:
    table = LoadedTable(TableName(("db",), name), table_metadata("memory://x"), f"memory://x/{name}-{size}")
    return CachedLoad(table, '"mark"', size)


def kept(cache: LoadCache, *names: str) -> list[bool]:
    return [cache.find(TableName(("db",), name)) is not None for name in names]


def test_latest_load_takes_the_place_of_the_one_before() -> None:
    cache = LoadCache(100)
    cache.remember(load("a", 90))
    cache.remember(load("a", 40))
    cache.remember(load("b", 60))
    assert kept(cache, "a", "b") == [True, True]
    found = cache.find(TableName(("db",), "a"))
    assert found is not None
    assert found.size == 40


def test_load_that_was_used_longest_ago_goes_first() -> None:
    cache = LoadCache(100)
    for name in "abc":
        cache.remember(load(name, 30))
    cache.find(TableName(("db",), "a"))
    cache.remember(load("d", 30))
    assert kept(cache, *"abcd") == [True, False, True, True]


def test_load_that_is_too_large_alone_is_kept_until_the_next() -> None:
    cache = LoadCache(100)
    cache.remember(load("large", 1000))
    assert kept(cache, "large") == [True]
    cache.remember(load("b", 1))
    assert kept(cache, "large", "b") == [False, True]


def test_forgotten_load_is_gone() -> None:
    cache = LoadCache(100)
    cache.remember(load("a", 90))
    cache.forget(TableName(("db",), "a"))
    cache.forget(TableName(("db",), "never"))
    cache.remember(load("b", 90))
    assert kept(cache, "a", "b") == [False, True]
