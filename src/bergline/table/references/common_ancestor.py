"""Where two lines of history diverge, what each has had since, and which changes both have under different ids."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.references.summary import ORIGIN, SOURCE, SQUASHED, SQUASHED_SINCE


class Divergence(msgspec.Struct, frozen=True):
    """Two lines of history since their common ancestor, each oldest first; no ancestor if both began empty."""

    ancestor: Snapshot | None
    picked: tuple[Snapshot, ...]
    """The line to be replayed on top of the other."""
    others: tuple[Snapshot, ...]

    @property
    def ancestor_id(self) -> int | None:
        """The id of the common ancestor."""
        return None if self.ancestor is None else self.ancestor.snapshot_id

    @property
    def ancestor_number(self) -> int:
        """The sequence number of the common ancestor."""
        return 0 if self.ancestor is None else self.ancestor.sequence_number

    def present(self) -> frozenset[int]:
        """The picked snapshots that the other line has already."""
        return known_by(self.picked, self.others)

    def leading_present(self) -> int:
        """How many of the oldest picked snapshots the other line has already."""
        present = self.present()
        return next((n for n, s in enumerate(self.picked) if s.snapshot_id not in present), len(self.picked))

    def known_before(self, count: int) -> frozenset[int]:
        """The snapshots of the other line that the first picked ones have already."""
        return known_by(self.others, self.picked[:count])

    def partly_present(self) -> Snapshot | None:
        """A picked snapshot that was squashed from several, of which the other line has some but not all."""
        there = all_names(self.others)
        present = self.present()
        partly = (s for s in self.picked if s.snapshot_id not in present and not there.isdisjoint(parts_of(s)))
        return next(partly, None)

    def numbers_there(self) -> tuple[tuple[int, int], ...]:
        """The sequence numbers of picked snapshots that the other line has already, each with the one there."""
        by_name = {name: s.sequence_number for s in self.others for name in all_names([s])}
        found = ((s, [by_name[name] for name in names_of(s) | parts_of(s) if name in by_name]) for s in self.picked)
        return tuple((s.sequence_number, max(numbers)) for s, numbers in found if numbers)


def find_divergence(base: TableMetadata, picked: int, other: int) -> Divergence | None:
    """How the history of one snapshot differs from that of another; None if that depends on expired snapshots."""
    ours, theirs = list(base.ancestors(other)), list(base.ancestors(picked))
    known = {s.snapshot_id for s in ours}
    common = next((s for s in theirs if s.snapshot_id in known), None)
    if common is not None:
        return Divergence(common, _since(theirs, common), _since(ours, common))
    # both histories are complete, so they certainly began apart; otherwise the ancestor may have expired
    if ours[-1].parent_snapshot_id is None and theirs[-1].parent_snapshot_id is None:
        return Divergence(None, _since(theirs), _since(ours))
    return _by_squash(ours, theirs)


def divergence_at(base: TableMetadata, picked: int, other: int, ancestor: Snapshot) -> Divergence:
    """The same, with a known ancestor to which the picked line no longer leads."""
    ours, theirs = list(base.ancestors(other)), list(base.ancestors(picked))
    return Divergence(ancestor, _since(theirs), _since(ours, ancestor))


def known_by(snapshots: Sequence[Snapshot], others: Iterable[Snapshot]) -> frozenset[int]:
    """The snapshots that are among others, replay them, or are replayed by them; a squash if all its parts are."""
    there = all_names(others)
    return frozenset(
        s.snapshot_id
        for s in snapshots
        if s.snapshot_id in there or (parts <= there if (parts := parts_of(s)) else not there.isdisjoint(names_of(s)))
    )


def names_of(snapshot: Snapshot) -> set[int]:
    """The ids of a change: those of the snapshot, of its source, and of its origin."""
    return {snapshot.snapshot_id, *_ids(snapshot, SOURCE), *_ids(snapshot, ORIGIN)}


def parts_of(snapshot: Snapshot) -> frozenset[int]:
    """The original snapshots of the changes that a snapshot was squashed from; nothing for a single change."""
    texts = snapshot.summary.get(SQUASHED, "").split(",")
    return frozenset(int(text) for text in texts if text.isdecimal())


def first_ids(snapshots: Iterable[Snapshot]) -> frozenset[int]:
    """The original snapshots of all changes in some snapshots."""
    return frozenset().union(*(parts_of(s) or {_first_id(s)} for s in snapshots))


def all_names(snapshots: Iterable[Snapshot]) -> set[int]:
    """The ids of the changes in some snapshots."""
    names: set[int] = set()
    for snapshot in snapshots:
        parts = parts_of(snapshot)
        names |= {snapshot.snapshot_id} | parts if parts else names_of(snapshot)
    return names


def repetition(source: Snapshot) -> dict[str, str]:
    """The summary entries of a snapshot that replays another."""
    entries, origin = {SOURCE: str(source.snapshot_id)}, _first_id(source)
    if origin != source.snapshot_id:
        entries |= {ORIGIN: str(origin)}
    return entries | ({SQUASHED: source.summary[SQUASHED]} if SQUASHED in source.summary else {})


def _first_id(snapshot: Snapshot) -> int:
    return next(_ids(snapshot, ORIGIN), next(_ids(snapshot, SOURCE), snapshot.snapshot_id))


def _since(newest_first: Sequence[Snapshot], ancestor: Snapshot | None = None) -> tuple[Snapshot, ...]:
    count = len(newest_first) if ancestor is None else newest_first.index(ancestor)
    return tuple(reversed(newest_first[:count]))


def _by_squash(ours: Sequence[Snapshot], theirs: Sequence[Snapshot]) -> Divergence | None:
    """The ancestor that an earlier squash of the same line recorded."""
    line, by_id = {s.snapshot_id for s in theirs}, {s.snapshot_id: s for s in ours}
    for snapshot in ours:
        since = next(_ids(snapshot, SQUASHED_SINCE), None)
        if since in by_id and not line.isdisjoint(_ids(snapshot, SOURCE)):
            return Divergence(by_id[since], _since(theirs), _since(ours, by_id[since]))
    return None


def _ids(snapshot: Snapshot, key: str) -> Iterator[int]:
    text = snapshot.summary.get(key, "")
    if text.isdecimal():
        yield int(text)
