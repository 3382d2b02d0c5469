"""Pointers in memory pass the suites for every store."""

import pytest

from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.testing.pointer_store_suite import NestedNamespacesSuite, PointerStoreSuite, ViewPointersSuite

pytestmark = pytest.mark.long


class _Memory:
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self._opened = MemoryPointerStore()

    def make_store(self) -> PointerStore:
        return self._opened


class TestMemoryPointerStore(_Memory, PointerStoreSuite): ...


class TestMemoryViews(_Memory, ViewPointersSuite): ...


class TestMemoryNestedNamespaces(_Memory, NestedNamespacesSuite): ...
