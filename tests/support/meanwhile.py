"""A lake whose commits are overtaken: other writers act just before its swaps."""

from collections.abc import Callable

from bergline import Lake
from bergline.catalog.pointer_catalog import PointerCatalog
from bergline.table.commit import Timing
from bergline.testing.faults import FaultyStore


def overtaken(lake: Lake, *others: Callable[[], object]) -> Lake:
    """The same lake; before its first swaps the others act, one before each, and no time is waited."""
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    left = list(others)
    store = FaultyStore(catalog.store, before_swap=lambda: left.pop(0)() and None if left else None)
    timing = Timing(sleep=lambda _: None)
    return Lake(PointerCatalog(store, catalog.io, "unused", sleep=lambda _: None), "lake", timing=timing)
