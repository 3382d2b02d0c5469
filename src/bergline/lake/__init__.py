"""A lake: a catalog together with its files, as a user opens it."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bergline.lake.lake import Lake, connect

__all__ = ["Lake", "connect"]


def __getattr__(name: str) -> Any:
    """Found when asked for: modules of this package are imported without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("bergline.lake.lake"), name)
