"""What happened to a swap whose answer was lost.

Pointer values never recur, so the store itself can nearly always tell: the pointer is still the old one (then the
very same swap again is harmless, and fences a late twin of the first), or it moved on, and then the metadata log says
to whose file it moved first.
"""

from collections.abc import Callable, Iterable
from enum import Enum

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer_store import PointerStore
from bergline.errors import BerglineError
from bergline.format.metadata import TableMetadata


class Verdict(Enum):
    """What became of the swap."""

    LANDED = "landed"
    LOST = "lost"
    UNKNOWN = "unknown"


def settle_swap(
    store: PointerStore,
    table: TableName,
    expected: str,
    new: str,
    *,
    load: Callable[[str], TableMetadata],
    added_snapshots: frozenset[int],
    waits: Iterable[Callable[[], None]],
) -> Verdict:
    """Ask the store until it tells; each wait is called before another try after a failure."""
    for wait in waits:
        try:
            pointer = store.read(table)
            if pointer == expected and store.swap(table, expected, new):
                return Verdict.LANDED
            if pointer == expected:  # it moved between reading and swapping: look once more
                pointer = store.read(table)
            return _read_history(pointer, expected, new, load, added_snapshots)
        except (BerglineError, OSError):
            wait()
    return Verdict.UNKNOWN


def _read_history(
    pointer: str | None,
    expected: str,
    new: str,
    load: Callable[[str], TableMetadata],
    added_snapshots: frozenset[int],
) -> Verdict:
    if pointer == new:
        return Verdict.LANDED
    if pointer is None:  # dropped since: it may have landed before
        return Verdict.UNKNOWN
    metadata = load(pointer)
    history = {e.metadata_file for e in metadata.metadata_log}
    if new in history or not added_snapshots.isdisjoint(metadata.snapshots_by_id):
        return Verdict.LANDED
    return Verdict.LOST if expected in history else Verdict.UNKNOWN
