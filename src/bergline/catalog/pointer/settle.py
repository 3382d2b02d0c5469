"""Settling a swap whose response was lost.

Pointer values never recur, so the store itself can nearly always decide: the pointer is still the old one (then
repeating the same swap is harmless, and fences off a delayed duplicate), or it moved on, and then the metadata log says
to whose file it moved first. The log is bounded, so after many commits it may name neither; then the snapshots tell, if
the change added any. What none of them tells is Unknown, and its files stay.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from bergline.catalog.catalog import (
    Committed,
    Conflicted,
    LoadedTable,
    Outcome,
    TableChange,
    Unknown,
    added_snapshots,
    shows_all_since,
)
from bergline.catalog.metadata_files import MetadataFiles
from bergline.catalog.pointer.pointer_store import Pointers, PointerSwap
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.errors import BerglineError, ConflictError
from bergline.format.metadata.table_metadata import TableMetadata

SwapHistory = Callable[[PointerSwap, str, Committed], Outcome | None]
"""What became of a swap, by the metadata that the current pointer leads to; None where that does not tell.

The outcome is the given one if the files of the swap itself were committed.
"""
_UNREADABLE = "the pointer cannot be read after a refusal"


class SentSwaps(msgspec.Struct, frozen=True):
    """Swaps that were sent together: all were made or none, so what became of one became of all."""

    swaps: Sequence[PointerSwap]
    made: Committed
    """What became of them if these very swaps were made."""
    history: SwapHistory = lambda *_: None


def settle_swaps(pointers: Pointers, sent: SentSwaps, waits: Iterable[Callable[[], None]], cause: str) -> Outcome:
    """Read back until it is certain what became of swaps whose response was lost.

    Each of `waits` is called after a look that failed; once they are used up, the outcome is Unknown, because of
    `cause`.
    """
    for wait in waits:
        try:
            now = [pointers.read(s.table) for s in sent.swaps]
            if now == [s.expected for s in sent.swaps]:
                # a request that is still on its way will find another pointer from now on, and change nothing
                if send_swaps(pointers, sent.swaps):
                    return sent.made
                now = [pointers.read(s.table) for s in sent.swaps]  # one moved between reading and swapping
            shown = _shown(now, sent)
        except (BerglineError, OSError):
            wait()
        else:
            # tables that contradict each other prove nothing
            contradict = isinstance(shown[0], Committed) and any(isinstance(s, Conflicted) for s in shown)
            return (None if contradict else shown[0]) or unknown(sent.swaps, cause)
    return unknown(sent.swaps, cause)


def check_refused(pointers: Pointers, sent: SentSwaps, waits: Iterable[Callable[[], None]]) -> Outcome:
    """What became of swaps that the store refused: a request that is delivered twice refuses itself.

    So a refusal is certain only if a pointer is still as it was, or leads to a history without these swaps.
    """
    for wait in waits:
        try:
            now = [pointers.read(s.table) for s in sent.swaps]
            if any(pointer == s.expected for pointer, s in zip(now, sent.swaps, strict=True)):
                return lost(sent.swaps[0])  # all move or none
            if all(pointer is None for pointer in now):
                return lost(sent.swaps[0])
            return _shown(now, sent)[0] or unknown(sent.swaps, _UNREADABLE)
        except (BerglineError, OSError):  # a pointer to a missing file may have moved on from ours
            wait()
    return unknown(sent.swaps, _UNREADABLE)


def send_swaps(pointers: Pointers, swaps: Sequence[PointerSwap]) -> bool:
    """Swap one pointer or several."""
    if len(swaps) > 1:
        return pointers.swap_all(swaps)
    swap = swaps[0]
    if swap.expected is None:
        return pointers.create(swap.table, swap.new)
    return pointers.swap(swap.table, swap.expected, swap.new)


def lost(swap: PointerSwap) -> Conflicted:
    """Another commit came first."""
    return Conflicted(ConflictError(f"`{swap.table}` moved on: it is no longer at {swap.expected}"))


def unknown(swaps: Sequence[PointerSwap], cause: str) -> Unknown:
    """Nobody can tell what became of swaps."""
    return Unknown(swaps[0].table, swaps[0].new, cause)


class CommitSettling:
    """Settles commits to tables over any store."""

    def __init__(self, access: StoreAccess, files: MetadataFiles[TableMetadata]) -> None:
        self._access = access
        self._files = files

    def settle(self, changes: Sequence[TableChange], sent: SentSwaps, cause: str) -> Outcome:
        """What became of a commit whose response was lost."""
        return settle_swaps(self._access.store_to_settle, sent, self._waits(changes), cause)

    def check_refused(self, changes: Sequence[TableChange], sent: SentSwaps) -> Outcome:
        """What became of a commit that the store refused."""
        adds_rows = any(added_snapshots(c) for c in changes)
        uuids = {c.base.name: c.base.metadata.table_uuid for c in changes}

        def history(swap: PointerSwap, pointer: str, made: Committed) -> Outcome | None:
            shown = sent.history(swap, pointer, made)
            if shown is not None:
                return shown
            # a change without snapshots wrote no files and may be repeated; of a dropped table nothing is left
            is_another = uuids.get(swap.table) != self._files.load(pointer).table_uuid
            return None if adds_rows and not is_another else lost(swap)

        refused = SentSwaps(sent.swaps, sent.made, history)
        return check_refused(self._access.store_to_settle, refused, self._waits(changes))

    def _waits(self, changes: Sequence[TableChange]) -> Iterable[Callable[[], None]]:
        return self._access.waits(changes[0].base.metadata.properties if changes else {})


def table_history(
    swap: PointerSwap, made: Committed, base: TableMetadata | None, now: LoadedTable, added_snapshots: frozenset[int]
) -> Outcome | None:
    """What became of a swap by the metadata log and snapshots of the table as it is now.

    If its snapshots are there and its file is not in the log, another server may have committed the same request, with
    a file of its own. The commit was made then, but its table is the one that is there now.
    """
    log = {e.metadata_file for e in now.metadata.metadata_log}
    if swap.new in log:
        return made
    if not added_snapshots.isdisjoint(now.metadata.snapshots_by_id):
        return Committed((now,))
    # the base is in the log and was not replaced by this file; or no snapshot that came since the base is missing
    if swap.expected in log or (added_snapshots and base is not None and shows_all_since(base, now.metadata)):
        return lost(swap)
    return None


def group_history(
    swap: PointerSwap,
    made: Committed,
    base: TableMetadata,
    now: LoadedTable,
    added_by_member: Sequence[frozenset[int]],
) -> Outcome | None:
    """What became of a swap that made the changes of several members at once.

    The log comes first: the same requests may have been committed elsewhere, with other files. A snapshot proves its
    own change alone.
    """
    log = {e.metadata_file for e in now.metadata.metadata_log}
    if swap.new in log:
        return made
    if swap.expected in log:
        return lost(swap)
    missing = frozenset().union(*added_by_member) - now.metadata.snapshots_by_id.keys()
    if missing:
        return lost(swap) if shows_all_since(base, now.metadata) else None
    return Committed((now,)) if all(added_by_member) else None


def _shown(now: Sequence[str | None], sent: SentSwaps) -> list[Outcome | None]:
    """What each pointer shows about its swap, the strongest evidence first: own files, snapshots, that another won."""

    def show(pointer: str | None, swap: PointerSwap) -> Outcome | None:
        if pointer == swap.new:
            return sent.made
        if pointer is None or pointer == swap.expected:  # dropped since, or another table
            return None
        return sent.history(swap, pointer, sent.made)

    shown = [show(pointer, swap) for pointer, swap in zip(now, sent.swaps, strict=True)]
    return sorted(shown, key=lambda s: (s is not sent.made, not isinstance(s, Committed), s is None))
