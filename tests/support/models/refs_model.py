"""What branches, tags, merges and expiry do to the rows of a table, on plain values.

A change is a `Patch`: rows that went and rows that came. A snapshot is the line of patches that led to it. Merging does
the patches of one line that another has not had on top of that other; whether it may be refused is told from the
partitions that the patches touch. Nothing is ever forgotten here: what has expired is only no longer `retained`.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from bergline.errors import BerglineError, ConflictError, RefusedError

Key = int | None
KEYS: tuple[Key, ...] = (None, 0, 1, 2)
EVERYWHERE = frozenset(KEYS)
NEVER = 2**63 - 1
Errors = frozenset[type[BerglineError]]


class Patch(msgspec.Struct, frozen=True, eq=False):
    """One change, by the numbers of the rows; the same change on two branches is one patch."""

    kind: str
    removed: frozenset[int] = frozenset()
    added: dict[int, Key] = {}
    rewrites: frozenset[Key] = frozenset()
    """The partitions whose files it may remove, or delete rows of."""
    claims: frozenset[Key] = frozenset()
    """The partitions that nobody may have added rows to."""

    def on(self, rows: dict[int, Key]) -> dict[int, Key]:
        """Rows after it."""
        return {n: key for n, key in rows.items() if n not in self.removed} | self.added


class SnapshotModel(msgspec.Struct, frozen=True, eq=False):
    """A snapshot: the patches that led to it, the last `own` of which are its own."""

    snapshot_id: int
    parent: int | None
    line: tuple[Patch, ...]
    own: tuple[Patch, ...]
    rows: dict[int, Key]
    columns: tuple[str, ...]
    at_ms: int
    squashed: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to do again."""
        return not self.squashed and self.own[0].kind == "manifests"


class RefModel(msgspec.Struct, frozen=True):
    """A ref and its retention."""

    head: int
    is_branch: bool
    keep: int | None = None
    age_ms: int | None = None
    ref_age_ms: int | None = None


class MergeModel(msgspec.Struct, frozen=True):
    """What a merge or rebase comes down to."""

    start: int
    """Where the moved ref is before anything is done again."""
    todo: tuple[SnapshotModel, ...] = ()
    may: Errors = frozenset()
    must: bool = False
    """Whether it has to be refused."""
    parted: bool = False
    """Whether neither is ahead of the other."""


class History(msgspec.Struct):
    """A table."""

    partitioned: bool
    columns: tuple[str, ...]
    refs: dict[str, RefModel] = {}
    snapshots: dict[int, SnapshotModel] = {}
    retained: set[int] = set()

    def add(
        self, snapshot_id: int, parent: int | None, own: tuple[Patch, ...], at_ms: int, *, squashed: bool = False
    ) -> SnapshotModel:
        """A new snapshot after its parent."""
        before = None if parent is None else self.snapshots[parent]
        rows = {} if before is None else before.rows
        for patch in own:
            rows = patch.on(rows)
        line = (() if before is None else before.line) + own
        self.snapshots[snapshot_id] = SnapshotModel(snapshot_id, parent, line, own, rows, self.columns, at_ms, squashed)
        self.retained.add(snapshot_id)
        return self.snapshots[snapshot_id]

    def ancestors(self, snapshot_id: int | None, *, retained: bool = False) -> Iterator[SnapshotModel]:
        """A snapshot and those before it, newest first; as far as the table knows them, or all that ever were."""
        while snapshot_id is not None and (not retained or snapshot_id in self.retained):
            yield self.snapshots[snapshot_id]
            snapshot_id = self.snapshots[snapshot_id].parent

    def is_ancestor(self, snapshot_id: int, *, of: int) -> bool:
        """As far as the table knows."""
        return any(s.snapshot_id == snapshot_id for s in self.ancestors(of, retained=True))

    def head(self, branch: str) -> int | None:
        """Where a write to a branch starts: a new one at the head of `main`."""
        ref = self.refs.get(branch) or self.refs.get("main")
        return ref.head if ref else None

    def rows(self, branch: str) -> dict[int, Key]:
        """What a write to a branch finds."""
        head = self.head(branch)
        return {} if head is None else self.snapshots[head].rows

    def move(self, name: str, head: int) -> None:
        """Set a ref to a snapshot, and keep its retention; one that is new is a branch."""
        old = self.refs.get(name)
        ref = RefModel(head, is_branch=True) if old is None else msgspec.structs.replace(old, head=head)
        self.refs = self.refs | {name: ref}

    def merge(self, picked: int, onto: int, moves: Literal["picked", "onto"], *, squash: bool) -> MergeModel:
        """The snapshots of one line that are to be done again on top of another, and what may stand against it."""
        if self.is_ancestor(picked, of=onto):
            return MergeModel(onto)
        if self.is_ancestor(onto, of=picked):
            return MergeModel(picked)
        theirs, ours = list(self.ancestors(picked)), list(self.ancestors(onto))
        known = {s.snapshot_id for s in ours}
        common = next((s.snapshot_id for s in theirs if s.snapshot_id in known), None)
        since = [[*_until(line, common)] for line in (theirs, ours)]
        may: set[type[BerglineError]] = set()
        if any(s.snapshot_id not in self.retained for line in since for s in line) or common not in {
            None,
            *self.retained,
        }:
            may.add(RefusedError)
        there = self.snapshots[onto].line
        todo = tuple(s for s in reversed(since[0]) if not _all_in(s.own, there) and (squash or not s.is_nothing))
        compound = any(s.squashed for line in since for s in line)
        if compound and any(any_in(s.own, there) for s in since[0]):
            may |= {ConflictError, RefusedError}  # a part of what was squashed is there already
        must = self._against(may, todo, picked, onto, squash=squash)
        if squash:
            present = [any_in(s.own, there) for s in reversed(since[0])]
            if False in present and True in present[present.index(False) :]:
                may.add(RefusedError)
            if any(patch.kind == "equality" for s in todo for patch in s.own):
                may.add(RefusedError)
        return MergeModel(onto, todo, frozenset(may), must, parted=True)

    def _against(
        self, may: set[type[BerglineError]], todo: tuple[SnapshotModel, ...], picked: int, onto: int, *, squash: bool
    ) -> bool:
        """Whether the other line did something that makes it wrong; what may seem so is added to the errors."""
        line, there = self.snapshots[picked].line, self.snapshots[onto].line
        patches = [patch for s in todo for patch in s.own]
        # deletes by equality delete again what is gone; all others need their files as they were
        by_file = frozenset[int]().union(*(p.removed for p in patches if p.kind != "equality"))
        gone = by_file - {n for p in patches for n in p.added}
        must = False
        for patch in patches:
            before = {id(p) for p in line[: line.index(patch)]}
            for other in there:
                if id(other) in before or other.kind == "manifests":
                    continue
                if self.may_conflict(patch, other, wide=squash and any(p.claims for p in patches)):
                    may.add(ConflictError)
                removed = patch.removed & gone if squash else patch.removed
                if patch.kind != "equality" and removed & other.removed:
                    may.add(ConflictError)
                    must = True
        return must

    def may_conflict(self, patch: Patch, other: Patch, *, wide: bool = False) -> bool:
        """Whether a patch may not go on top of another that it did not know, by the partitions that they touch."""
        claims, rewrites = (EVERYWHERE, EVERYWHERE) if wide else (patch.claims, patch.rewrites)
        came = frozenset(other.added.values()) | other.rewrites
        return self._meet(rewrites, other.rewrites) or self._meet(claims, came)

    def _meet(self, some: frozenset[Key], others: frozenset[Key]) -> bool:
        return bool(some & others) if self.partitioned else bool(some and others)


class ExpiryModel(msgspec.Struct, frozen=True):
    """What the caller of expiry asks for."""

    now_ms: int
    older_than_ms: int
    retain_last: int
    snapshot_ids: frozenset[int]


def after_expiry(history: History, wish: ExpiryModel) -> tuple[dict[str, RefModel], set[int]]:
    """The refs and snapshots that are left; RefusedError where a head was asked to go."""
    live = {
        name: ref
        for name, ref in history.refs.items()
        if name == "main" or wish.now_ms - history.snapshots[ref.head].at_ms <= (ref.ref_age_ms or NEVER)
    }
    heads = {ref.head for ref in live.values()}
    if heads & wish.snapshot_ids:
        raise RefusedError("a head")
    kept, reached = set(heads), set(heads)
    for ref in live.values():
        if not ref.is_branch:
            continue
        cutoff = wish.older_than_ms if ref.age_ms is None else wish.now_ms - ref.age_ms
        line = list(history.ancestors(ref.head, retained=True))
        young = next((place for place, s in enumerate(line) if s.at_ms < cutoff), len(line))
        # snapshots of one branch grow older, so that those that stay are its first ones
        kept |= {s.snapshot_id for s in line[: max(young, ref.keep or wish.retain_last)]}
        reached |= {s.snapshot_id for s in line}
    kept |= {i for i in history.retained - reached if history.snapshots[i].at_ms >= wish.older_than_ms}
    return live, kept - wish.snapshot_ids


def _until(newest_first: Iterable[SnapshotModel], snapshot_id: int | None) -> Iterator[SnapshotModel]:
    for snapshot in newest_first:
        if snapshot.snapshot_id == snapshot_id:
            return
        yield snapshot


def _all_in(own: tuple[Patch, ...], line: tuple[Patch, ...]) -> bool:
    there = {id(p) for p in line}
    return all(id(p) in there for p in own)


def any_in(own: tuple[Patch, ...], line: tuple[Patch, ...]) -> bool:
    """Whether a line has one of some patches."""
    there = {id(p) for p in line}
    return any(id(p) in there for p in own)
