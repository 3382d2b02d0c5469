"""One commit at a time to each table in this process: none of its own writes a metadata file in vain."""

import contextlib
import threading
from collections.abc import Iterable, Iterator

from bergline.catalog.identifiers import TableName

_STRIPES = 1024


class TableLocks:
    """Locks by name, of which several names may share one."""

    def __init__(self) -> None:
        self._locks = [threading.Lock() for _ in range(_STRIPES)]

    @contextlib.contextmanager
    def held(self, names: Iterable[TableName]) -> Iterator[None]:
        """Hold the locks of all names, taken always in the same order."""
        with contextlib.ExitStack() as stack:
            for stripe in sorted({hash(name) % _STRIPES for name in names}):
                stack.enter_context(self._locks[stripe])
            yield
