"""A table whose commits lose races on demand, and what each attempt writes."""

from collections.abc import Callable
from pathlib import Path

from rivals import rival_lake

from bergline import Lake, Table


class LosingTable:
    """`table` commits through a store where each of `rivals` comes first, one before each attempt.

    `written` holds the names of the metadata files that each attempt wrote: manifests and manifest lists.
    """

    def __init__(self, lake: Lake, name: str, *rivals: Callable[[], object]) -> None:
        self._rivals = list(rivals)
        losing, _ = rival_lake(lake, before_swap=self._lose)
        self.table: Table = losing.load_table(name)
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
