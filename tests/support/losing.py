"""A table whose commits lose races on demand, and what each attempt writes."""

from collections.abc import Callable
from pathlib import Path

from bergline import Lake, Table
from bergline.catalog.pointer_catalog import PointerCatalog
from bergline.table.commit import Timing
from bergline.testing.faults import FaultyStore


class LosingTable:
    """`table` commits through a store where each of `rivals` comes first, one before each attempt.

    `written` holds the names of the metadata files that each attempt wrote: manifests and manifest lists.
    """

    def __init__(self, lake: Lake, name: str, *rivals: Callable[[], object]) -> None:
        catalog = lake.catalog
        assert isinstance(catalog, PointerCatalog)
        self._rivals = list(rivals)
        store = FaultyStore(catalog.store, before_swap=self._lose)
        timing = Timing(sleep=lambda _: None)
        rival = Lake(PointerCatalog(store, catalog.io, "unused", sleep=lambda _: None), "lake", timing=timing)
        self.table: Table = rival.load_table(name)
        self._known = self._files()
        self.written: list[set[str]] = []

    @property
    def manifests(self) -> list[int]:
        """How many manifests each attempt wrote."""
        return [sum(not name.startswith("snap-") for name in names) for names in self.written]

    @property
    def lists(self) -> list[int]:
        """How many manifest lists each attempt wrote."""
        return [sum(name.startswith("snap-") for name in names) for names in self.written]

    def _lose(self) -> None:
        self.written.append(self._files() - self._known)
        if self._rivals:
            self._rivals.pop(0)()
        self._known = self._files()

    def _files(self) -> set[str]:
        return {p.name for p in Path(self.table.location.removeprefix("file://")).rglob("*.avro")}
