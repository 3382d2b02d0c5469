"""What happened to a swap whose answer was lost.

Pointer values never recur, so the store itself can nearly always tell: the pointer is still the old one (then the
very same swap again is harmless, and fences a late twin of the first), or it moved on, and then the metadata log says
to whose file it moved first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer_store import PointerStore, PointerSwap
from bergline.errors import BerglineError
from bergline.format.metadata import TableMetadata


class Verdict(Enum):
    """What became of the swap."""

    LANDED = "landed"
    LOST = "lost"
    UNKNOWN = "unknown"


def settle_swaps(
    store: PointerStore,
    swaps: Sequence[PointerSwap],
    *,
    load: Callable[[str], TableMetadata],
    added_snapshots: Mapping[TableName, frozenset[int]],
    waits: Iterable[Callable[[], None]],
) -> Verdict:
    """Ask the store until it tells; each wait is called before another try after a failure.

    All pointers moved or none: what became of one became of all.
    """
    for wait in waits:
        try:
            pointers = [store.read(s.table) for s in swaps]
            if pointers == [s.expected for s in swaps]:
                if _swap(store, swaps):
                    return Verdict.LANDED
                pointers = [store.read(s.table) for s in swaps]  # one moved between reading and swapping
            verdicts = {
                _read_history(pointer, s.expected, s.new, load, added_snapshots[s.table])
                for pointer, s in zip(pointers, swaps, strict=True)
            } - {Verdict.UNKNOWN}
            return verdicts.pop() if len(verdicts) == 1 else Verdict.UNKNOWN
        except (BerglineError, OSError):
            wait()
    return Verdict.UNKNOWN


def _swap(store: PointerStore, swaps: Sequence[PointerSwap]) -> bool:
    if len(swaps) == 1:
        return store.swap(swaps[0].table, swaps[0].expected, swaps[0].new)
    return store.swap_all(swaps)


def _read_history(
    pointer: str | None,
    expected: str,
    new: str,
    load: Callable[[str], TableMetadata],
    added_snapshots: frozenset[int],
) -> Verdict:
    if pointer == new:
        return Verdict.LANDED
    if pointer is None or pointer == expected:  # dropped since, or another table decides
        return Verdict.UNKNOWN
    metadata = load(pointer)
    history = {e.metadata_file for e in metadata.metadata_log}
    if new in history or not added_snapshots.isdisjoint(metadata.snapshots_by_id):
        return Verdict.LANDED
    return Verdict.LOST if expected in history else Verdict.UNKNOWN
