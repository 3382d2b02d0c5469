"""A guard that asks for the privileges of what a commit does, read from the table before and after it."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import requesting_caller
from bergline.catalog.protection.guard import DecideAgain, RefGuard
from bergline.catalog.protection.ref_change import ReplayCheck
from bergline.catalog.protection.ref_moves import MoveKind, RefMove, find_ref_moves
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.errors import RefusedError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata, changed, snapshots_gained
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import ALL_REFS, Securable, table_of
from bergline.server.access.access import Access
from bergline.table.references.published_runs import PUBLISHED_RUNS

_OF_COMMITS = frozenset(
    {
        "last_sequence_number",
        "last_updated_ms",
        "current_snapshot_id",
        "refs",
        "snapshots",
        "statistics",
        "partition_statistics",
        "snapshot_log",
        "metadata_log",
        "next_row_id",
        "properties",
    }
)
"""What changes with commits to branches; everything else is the table's own."""
_CHANGING = (Privilege.WRITE, Privilege.PUBLISH, Privilege.MANAGE_REFS)
_MOST_AHEAD_MS = 600_000
"""So far clocks of clients may be ahead of the server's: no later snapshot, on any branch, may be much older."""


class NeededPrivileges(msgspec.Struct, frozen=True):
    """Privileges of which one is enough, for one thing that a commit does; the last allows the least."""

    any_of: tuple[Privilege, ...]
    securable: Securable
    replaying: RefMove | None = None
    """What moves a branch to new snapshots that say that they replay others: only if they do is `publish` enough."""


class GrantedChanges:
    """Refuses what the caller of a request has no privilege for, then asks the guard of the rules about refs.

    What the server does for itself, without a request, needs no privilege.
    """

    def __init__(self, access: Access, rules: RefGuard, replay_check: ReplayCheck) -> None:
        self._access = access
        self.rules = rules
        self._replay_check = replay_check

    def check_change(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None, done: str | None = None
    ) -> None:
        """RefusedError for what the caller has no privilege for, and what the rules about refs raise."""
        self._check_privileges(table, base, None if done else result)
        self.rules.check_change(table, base, result, done)

    def check_member(self, table: TableName, base: TableMetadata, result: TableMetadata) -> DecideAgain:
        """As `check_change`; the rules about refs are decided again."""
        self._check_privileges(table, base, result)
        return self.rules.check_member(table, base, result)

    def refusals(self, table: TableName, base: TableMetadata, result: TableMetadata) -> Iterator[RefusedError]:
        """What the rules say first: who looks at what somebody else is to do has to know that too."""
        yield from self.rules.refusals(table, base, result)
        yield from self._missing_privileges(table, base, result)

    def check_new(self, table: TableName, metadata: TableMetadata) -> None:
        """As the rules say: whether a table may be created is decided by its name, before."""
        self.rules.check_new(table, metadata)

    def levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        """The rules of the catalog and of namespaces that hold for a table."""
        return self.rules.levels(table)

    def changing(self) -> AbstractContextManager[None]:
        """As the rules are decided again."""
        return self.rules.changing()

    def _check_privileges(self, table: TableName, base: TableMetadata, result: TableMetadata | None) -> None:
        for refusal in self._missing_privileges(table, base, result):
            raise refusal

    def _missing_privileges(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None
    ) -> Iterator[RefusedError]:
        caller, is_refused = requesting_caller(), False
        if caller is None or not self._access.is_active:
            return
        of = (caller.name, caller.groups)
        for needed in needed_privileges(table, base, result):
            if is_refused and needed.any_of is _CHANGING:
                continue  # what is missing already is one of these
            has = next((p for p in needed.any_of if self._access.may(*of, p, needed.securable)), None)
            if has is None or (has is Privilege.PUBLISH and not self._is_replay(base, result, needed.replaying)):
                is_refused = True
                yield self._access.forbidden(
                    *of, needed.any_of if has is None else (Privilege.WRITE,), needed.securable
                )
        if result is not None and not self._access.may(*of, Privilege.WRITE, table_of(table).at(ALL_REFS)):
            yield from _refused_time(base, result)

    def _is_replay(self, base: TableMetadata, result: TableMetadata | None, move: RefMove | None) -> bool:
        """Whether new snapshots have the files of those that they say they replay; there may be none."""
        return move is None or (result is not None and self._replay_check(base, result, move))


def _refused_time(base: TableMetadata, result: TableMetadata) -> Iterator[RefusedError]:
    """What speaks against a snapshot of the future, which holds up all branches, by who may not write to all."""
    ahead_ms = result.last_updated_ms - time.time_ns() // 1_000_000
    if result.last_updated_ms > base.last_updated_ms and ahead_ms > _MOST_AHEAD_MS:
        yield RefusedError(
            f"expected a snapshot at most {_MOST_AHEAD_MS // 60_000} minutes ahead of the server's clock, "
            f"found one {ahead_ms // 60_000:,} minutes ahead"
        )


def needed_privileges(
    table: TableName, base: TableMetadata, result: TableMetadata | None
) -> Iterator[NeededPrivileges]:
    """What a change of a table needs; without a result the table is gone from its name, or another is in its place."""
    of = table_of(table)
    if result is None:
        yield NeededPrivileges((Privilege.DROP,), of)
        return
    if base.properties.get(PUBLISHED_RUNS) != result.properties.get(PUBLISHED_RUNS):
        yield NeededPrivileges((Privilege.WRITE, Privilege.PUBLISH), of)
    if base.table_uuid is None:  # an old table gets one with its first commit
        base = changed(base, table_uuid=result.table_uuid)
    if _own_parts(base) != _own_parts(result):
        yield NeededPrivileges((Privilege.WRITE,), of.at(ALL_REFS))
    moves = find_ref_moves(base, result)
    known, new = base.snapshots_by_id, snapshots_gained(base, result)
    added = {s.snapshot_id for s in (result.snapshots if new is None else new) if known.get(s.snapshot_id) != s}
    for move in moves:
        gained = set() if move.after is None else _met(added, result, move.after.snapshot_id)
        yield from _for_move(of.at(move.ref), move, adds=bool(gained))
        if move.is_branch:
            added -= gained
    files = base.statistics, base.partition_statistics
    is_removed = new is None and bool(known.keys() - result.snapshots_by_id.keys())
    if added or is_removed or files != (result.statistics, result.partition_statistics):
        yield NeededPrivileges((Privilege.WRITE,), of)
    yield NeededPrivileges(_CHANGING, of)  # whatever it does: who may only read commits nothing


def _met(added: set[int], metadata: TableMetadata, head: int) -> set[int]:
    """Those of the added snapshots that are in the history of a head."""
    met: set[int] = set()
    for snapshot in metadata.ancestors(head) if added else ():
        if snapshot.snapshot_id in added:
            met.add(snapshot.snapshot_id)
            if len(met) == len(added):
                break
    return met


def _for_move(at_ref: Securable, move: RefMove, *, adds: bool) -> Iterator[NeededPrivileges]:
    """What a move needs; `adds` says that the ref has snapshots after it that the table did not have before."""
    is_commit = move.is_branch and (
        move.kind is MoveKind.FORWARD or (move.kind is MoveKind.CREATED and move.ref == MAIN)
    )
    if not is_commit and move.kind is not MoveKind.EXPIRED:
        yield NeededPrivileges((Privilege.MANAGE_REFS,), at_ref)
    if is_commit or adds or move.kind is MoveKind.EXPIRED:
        if move.published and is_commit:
            either = (Privilege.WRITE, Privilege.PUBLISH)
            yield NeededPrivileges(either, at_ref, replaying=move if move.replays else None)
        else:
            yield NeededPrivileges((Privilege.WRITE,), at_ref)


def _own_parts(metadata: TableMetadata) -> tuple[object, ...]:
    """What belongs to the table as a whole; the list of published runs goes with its branch."""
    properties = {key: value for key, value in metadata.properties.items() if key != PUBLISHED_RUNS}
    names = (name for name in TableMetadata.__struct_fields__ if name not in _OF_COMMITS)
    return (properties, *(getattr(metadata, name) for name in names))
