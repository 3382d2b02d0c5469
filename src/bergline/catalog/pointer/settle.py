"""Settling a swap whose response was lost.

Pointer values never recur, so the store itself can nearly always decide: the pointer is still the old one (then
repeating the same swap is harmless, and fences off a delayed duplicate), or it moved on, and then the metadata log says
to whose file it moved first.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from bergline.catalog.catalog import shows_all_since
from bergline.catalog.pointer.pointer_store import Pointers, PointerSwap
from bergline.errors import BerglineError
from bergline.format.metadata.table_metadata import TableMetadata


class Verdict(Enum):
    """The outcome of a swap."""

    LANDED = "landed"
    PRESENT = "present"
    """Its snapshots are in the table, perhaps by another metadata file: a server's twin may have been sent the same."""
    LOST = "lost"
    UNKNOWN = "unknown"


SwapHistory = Callable[[PointerSwap, str], Verdict]
"""The outcome of a swap by the metadata that the current pointer leads to."""


def settle_swaps(
    pointers: Pointers,
    swaps: Sequence[PointerSwap],
    *,
    history: SwapHistory,
    waits: Iterable[Callable[[], None]],
) -> Verdict:
    """Read back until the outcome is known; each wait is called before a retry after a failure.

    All pointers moved or none, so the outcome of one is that of all. `history` decides the outcome of a swap by the
    metadata that the current pointer leads to.
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
            if verdicts == {Verdict.LANDED, Verdict.PRESENT}:
                return Verdict.LANDED
            return verdicts.pop() if len(verdicts) == 1 else Verdict.UNKNOWN
        except (BerglineError, OSError):
            wait()
    return Verdict.UNKNOWN


def check_refused(
    pointers: Pointers,
    swaps: Sequence[PointerSwap],
    *,
    history: SwapHistory,
    waits: Iterable[Callable[[], None]],
) -> Verdict:
    """Whether swaps that the store refused succeeded after all: one that is delivered twice refuses itself."""
    for wait in waits:
        try:
            now = [pointers.read(s.table) for s in swaps]
            if any(pointer == s.expected for pointer, s in zip(now, swaps, strict=True)):
                return Verdict.LOST  # all move or none
            if all(pointer is None for pointer in now):
                return Verdict.LOST
            verdicts = {_read_history(pointer, s, history) for pointer, s in zip(now, swaps, strict=True)}
        except (BerglineError, OSError):  # a pointer to a missing file may have moved on from ours
            wait()
        else:
            known = (Verdict.LANDED, Verdict.PRESENT, Verdict.LOST)
            return next((v for v in known if v in verdicts), Verdict.UNKNOWN)
    return Verdict.UNKNOWN


def send_swaps(pointers: Pointers, swaps: Sequence[PointerSwap]) -> bool:
    """Swap one pointer or several."""
    if len(swaps) > 1:
        return pointers.swap_all(swaps)
    swap = swaps[0]
    if swap.expected is None:
        return pointers.create(swap.table, swap.new)
    return pointers.swap(swap.table, swap.expected, swap.new)


def table_history(
    swap: PointerSwap, base: TableMetadata | None, now: TableMetadata, added_snapshots: frozenset[int]
) -> Verdict:
    """The outcome of a swap by the metadata log and snapshots of the current table."""
    log = {e.metadata_file for e in now.metadata_log}
    if swap.new in log:
        return Verdict.LANDED
    if not added_snapshots.isdisjoint(now.snapshots_by_id):
        return Verdict.PRESENT
    if swap.expected in log or (added_snapshots and base is not None and shows_all_since(base, now)):
        return Verdict.LOST
    return Verdict.UNKNOWN


def group_history(
    swap: PointerSwap, base: TableMetadata, now: TableMetadata, added_by_member: Sequence[frozenset[int]]
) -> Verdict:
    """The outcome of a swap that made the changes of several members at once.

    The log comes first: the same requests may have been committed elsewhere, with other files. A snapshot proves its
    own change alone.
    """
    log = {e.metadata_file for e in now.metadata_log}
    if swap.new in log:
        return Verdict.LANDED
    if swap.expected in log:
        return Verdict.LOST
    missing = frozenset().union(*added_by_member) - now.snapshots_by_id.keys()
    if missing:
        return Verdict.LOST if shows_all_since(base, now) else Verdict.UNKNOWN
    return Verdict.PRESENT if all(added_by_member) else Verdict.UNKNOWN


def _read_history(pointer: str | None, swap: PointerSwap, history: SwapHistory) -> Verdict:
    if pointer == swap.new:
        return Verdict.LANDED
    if pointer is None or pointer == swap.expected:  # dropped since, or another table
        return Verdict.UNKNOWN
    return history(swap, pointer)
