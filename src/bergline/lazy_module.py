"""Modules that are imported when something of them is first used.

So `bergline.connect` and `bergline --help` start fast. Beside a LazyModule stands the same import for TYPE_CHECKING: by
it types and layers are checked.
"""

import importlib
from typing import Any


class LazyModule:
    """Stands in for a module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)

    def __repr__(self) -> str:
        return f"LazyModule({self._name!r})"
