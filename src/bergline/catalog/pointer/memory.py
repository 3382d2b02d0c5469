"""Pointers in memory, for one process."""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.turns import LONGEST_TURN_MS, Turn


class _MemoryTurn(NamedTuple):
    holder: str
    since_ms: float
    until_ms: float


class _State:
    """All names, of tables and views, under one lock."""

    def __init__(self) -> None:
        self.pointers: dict[TableName, str] = {}
        self.views: set[TableName] = set()
        self.namespaces: dict[Namespace, dict[str, str]] = {}
        self.turns: dict[TableName, _MemoryTurn] = {}
        self.lock = threading.Lock()


class MemoryPointers:
    """Pointers of tables, or of views, in the shared namespace."""

    atomic_tables = True

    def __init__(self, state: _State, *, views: bool) -> None:
        self._state = state
        self._of_views = views

    def read(self, table: TableName) -> str | None:
        with self._state.lock:
            return self._read(table)

    def create(self, table: TableName, pointer: str) -> bool:
        with self._state.lock:
            if table in self._state.pointers:
                return False
            self._set(table, pointer)
            return True

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        return self.swap_all((PointerSwap(table, expected, new),))

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        with self._state.lock:
            if any(self._read(s.table) != s.expected for s in swaps):
                return False
            if any(s.expected is None and s.table in self._state.pointers for s in swaps):
                return False
            for swap in swaps:
                self._set(swap.table, swap.new)
            return True

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        with self._state.lock:
            pointer = self._read(table)
            if pointer is None or (expected is not None and pointer != expected):
                return False
            self._remove(table)
            return True

    def rename(self, table: TableName, new: TableName) -> bool:
        with self._state.lock:
            pointer = self._read(table)
            if pointer is None or new in self._state.pointers:
                return False
            self._remove(table)
            self._set(new, pointer)
            return True

    def list_names(self, namespace: Namespace) -> list[TableName]:
        with self._state.lock:
            return sorted(t for t in self._state.pointers if t.namespace == namespace and self._read(t) is not None)

    def _read(self, table: TableName) -> str | None:
        return self._state.pointers.get(table) if (table in self._state.views) == self._of_views else None

    def _set(self, table: TableName, pointer: str) -> None:
        self._state.pointers[table] = pointer
        if self._of_views:
            self._state.views.add(table)

    def _remove(self, table: TableName) -> None:
        del self._state.pointers[table]
        self._state.views.discard(table)


class MemoryPointerStore(MemoryPointers):
    """PointerStore over dictionaries under one lock."""

    def __init__(self) -> None:
        super().__init__(_State(), views=False)
        self.views = MemoryPointers(self._state, views=True)

    def read_with_turn(self, table: TableName) -> tuple[str | None, Turn | None]:
        with self._state.lock:
            turn = self._state.turns.get(table)
            left_ms = 0 if turn is None else turn.until_ms - _now_ms()
            return self._read(table), Turn(turn.holder, round(left_ms)) if turn and left_ms > 0 else None

    def take_turn(self, tables: Collection[TableName], holder: str, lease_ms: int) -> bool:
        with self._state.lock:
            now, turns = _now_ms(), self._state.turns
            taken: dict[TableName, _MemoryTurn] = {}
            for table in tables:
                before = turns.get(table, _MemoryTurn("", now, now))
                is_own = before.holder == holder and now < before.until_ms
                if not is_own and now < 2 * before.until_ms - before.since_ms:  # the others go first for as long
                    return False
                since = before.since_ms if is_own else now
                taken[table] = _MemoryTurn(holder, since, min(now + lease_ms, since + LONGEST_TURN_MS))
            turns.update(taken)
            return True

    def give_back_turn(self, tables: Collection[TableName], holder: str) -> None:
        with self._state.lock:
            now, turns = _now_ms(), self._state.turns
            for table in tables:
                turn = turns.get(table)
                if turn is not None and turn.holder == holder:
                    turns[table] = turn._replace(until_ms=min(turn.until_ms, now))

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        with self._state.lock:
            if self._exists(namespace):
                return False
            self._state.namespaces[namespace] = dict(properties)
            return True

    def drop_namespace(self, namespace: Namespace) -> bool:
        with self._state.lock:
            holds = any(n != namespace and n[: len(namespace)] == namespace for n in self._all())
            if holds or any(t.namespace == namespace for t in self._state.pointers):
                return False
            return self._state.namespaces.pop(namespace, None) is not None

    def namespace_exists(self, namespace: Namespace) -> bool:
        with self._state.lock:
            return self._exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        with self._state.lock:
            return dict(self._state.namespaces.get(namespace, {})) if self._exists(namespace) else None

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        with self._state.lock:
            if not self._exists(namespace):
                return False
            before = self._state.namespaces.get(namespace, {})
            self._state.namespaces[namespace] = {k: v for k, v in before.items() if k not in removals} | dict(changes)
            return True

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        with self._state.lock:
            levels = {n[: i + 1] for n in self._all() for i in range(len(n))}
        return sorted(n for n in levels if len(n) > len(below) and n[: len(below)] == below)

    def close(self) -> None:
        """Nothing to close."""

    def _all(self) -> set[Namespace]:
        return {*self._state.namespaces, *(t.namespace for t in self._state.pointers)}

    def _exists(self, namespace: Namespace) -> bool:
        return any(n[: len(namespace)] == namespace for n in self._all())


def _now_ms() -> float:
    return time.monotonic() * 1000
