"""Writers that come first, and stores that misbehave, for tests of commits."""

from collections.abc import Callable
from pathlib import Path

from rows import order_rows

from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.table.commits.commit import Timing
from bergline.testing.faults import Fault, FaultyStore


def rival_lake(lake: Lake, *faults: Fault, before_swap: Callable[[], None] = lambda: None) -> tuple[Lake, list[float]]:
    """The same lake through a store that misbehaves; waits are written down instead of waited."""
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    waits: list[float] = []
    store = FaultyStore(catalog.store, *faults, before_swap=before_swap)
    timing = Timing(sleep=waits.append, uniform=lambda _, high: high)
    warehouse = catalog.default_location(TableName(("db",), "t")).removesuffix("/db/t")
    return Lake(PointerCatalog(store, catalog.io, warehouse, sleep=waits.append), "lake", timing=timing), waits


def beaten(orders: Table, times: int) -> Callable[[], None]:
    """Before each of the first swaps, another writer appends."""
    left = list(range(times))
    return lambda: orders.append(order_rows(100 + left.pop())) and None if left else None


def overtaken(lake: Lake, *others: Callable[[], object]) -> Lake:
    """The same lake; before its first swaps the others act, one before each, and no time is waited."""
    left = list(others)
    return rival_lake(lake, before_swap=lambda: left.pop(0)() and None if left else None)[0]


def once(change: Callable[[], object]) -> Callable[[], None]:
    """Does it before the first swap only."""
    left = [change]
    return lambda: left.pop()() and None if left else None


def files(orders: Table, pattern: str) -> set[str]:
    """The names of a table's files on disk."""
    root = Path(orders.location.removeprefix("file://"))
    return {p.name for p in root.rglob(pattern)}
