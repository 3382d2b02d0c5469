"""What happened to a swap whose answer was lost.

Pointer values never recur, so the store itself can nearly always tell: the pointer is still the old one (then the
very same swap again is harmless, and fences a late twin of the first), or it moved on, and then the metadata log says
to whose file it moved first.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from bergline.catalog.catalog import shows_all_since
from bergline.catalog.pointer.pointer_store import Pointers, PointerSwap
from bergline.errors import BerglineError
from bergline.format.metadata.table_metadata import TableMetadata


class Verdict(Enum):
    """What became of the swap."""

    LANDED = "landed"
    LOST = "lost"
    UNKNOWN = "unknown"


def settle_swaps(
    pointers: Pointers,
    swaps: Sequence[PointerSwap],
    *,
    history: Callable[[PointerSwap, str], Verdict],
    waits: Iterable[Callable[[], None]],
) -> Verdict:
    """Ask the store until it tells; each wait is called before another try after a failure.

    All pointers moved or none: what became of one became of all. `history` says what became of a swap by what the
    pointer that is there now leads to.
    """
    for wait in waits:
        try:
            now = [pointers.read(s.table) for s in swaps]
            if now == [s.expected for s in swaps]:
                if send_swaps(pointers, swaps):
                    return Verdict.LANDED
                now = [pointers.read(s.table) for s in swaps]  # one moved between reading and swapping
            verdicts = {_read_history(pointer, s, history) for pointer, s in zip(now, swaps, strict=True)}
            verdicts -= {Verdict.UNKNOWN}
            return verdicts.pop() if len(verdicts) == 1 else Verdict.UNKNOWN
        except (BerglineError, OSError):
            wait()
    return Verdict.UNKNOWN


def check_refused(
    pointers: Pointers,
    swaps: Sequence[PointerSwap],
    *,
    history: Callable[[PointerSwap, str], Verdict],
    waits: Iterable[Callable[[], None]],
) -> Verdict:
    """Whether swaps that the store refused have landed all the same: one delivered twice is refused by its own twin."""
    for wait in waits:
        try:
            now = [pointers.read(s.table) for s in swaps]
            if any(pointer == s.expected for pointer, s in zip(now, swaps, strict=True)):
                return Verdict.LOST  # all move or none
            if all(pointer is None for pointer in now):
                return Verdict.LOST
            verdicts = {_read_history(pointer, s, history) for pointer, s in zip(now, swaps, strict=True)}
        except (BerglineError, OSError):  # a pointer that leads nowhere may have moved on from ours
            wait()
        else:
            return next((v for v in (Verdict.LANDED, Verdict.LOST) if v in verdicts), Verdict.UNKNOWN)
    return Verdict.UNKNOWN


def send_swaps(pointers: Pointers, swaps: Sequence[PointerSwap]) -> bool:
    """Move one pointer or several, by what the store has for it."""
    if len(swaps) > 1:
        return pointers.swap_all(swaps)
    swap = swaps[0]
    if swap.expected is None:
        return pointers.create(swap.table, swap.new)
    return pointers.swap(swap.table, swap.expected, swap.new)


def table_history(
    swap: PointerSwap, base: TableMetadata | None, now: TableMetadata, added_snapshots: frozenset[int]
) -> Verdict:
    """What the metadata log and the snapshots of the table now say about a swap."""
    log = {e.metadata_file for e in now.metadata_log}
    if swap.new in log or not added_snapshots.isdisjoint(now.snapshots_by_id):
        return Verdict.LANDED
    if swap.expected in log or (added_snapshots and base is not None and shows_all_since(base, now)):
        return Verdict.LOST
    return Verdict.UNKNOWN


def _read_history(pointer: str | None, swap: PointerSwap, history: Callable[[PointerSwap, str], Verdict]) -> Verdict:
    if pointer == swap.new:
        return Verdict.LANDED
    if pointer is None or pointer == swap.expected:  # dropped since, or another table decides
        return Verdict.UNKNOWN
    return history(swap, pointer)
