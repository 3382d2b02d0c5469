"""JSON decoders by type, each built once and by one thread at a time.

msgspec describes a struct when its first decoder is built. A second thread that builds another one meanwhile would use
half a description, and crash the process.
"""

import threading
from collections.abc import Callable
from typing import Any

import msgspec


class JsonDecoders:
    """The decoders of all types that were asked for, which share a hook for values that msgspec does not know."""

    def __init__(self, hook: Callable[[Any, Any], Any]) -> None:
        self._hook = hook
        self._built: dict[Any, msgspec.json.Decoder[Any]] = {}

    def of(self, as_type: Any) -> msgspec.json.Decoder[Any]:
        """The decoder of a type."""
        found = self._built.get(as_type)
        if found is None:
            with _BUILDING:
                found = self._built[as_type] = msgspec.json.Decoder(as_type, dec_hook=self._hook)
        return found


_BUILDING = threading.Lock()  # of all types: they share structs
