"""One change of a table, decided by all rules that hold for it: the table's own and those of its scopes."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Final, Protocol

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, RuleNote, StandIn, current_caller, is_among
from bergline.catalog.protection.decision import DecidedBy, HeadReview, Refused, decide, refusals
from bergline.catalog.protection.ref_moves import RefMove, find_ref_moves
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.protection.rule_agreement import NamedRule
from bergline.catalog.protection.rule_scope import TABLE, RuleLevel
from bergline.catalog.protection.table_rules import (
    UnreadableRule,
    check_changed_rules,
    property_of,
    read_rules,
    rule_texts,
)
from bergline.errors import ProtectedRefError
from bergline.format.metadata.table_metadata import TableMetadata, snapshots_gained

_LOG = logging.getLogger("bergline.catalog")
ReplayCheck = Callable[[TableMetadata, TableMetadata, RefMove], bool]
"""Whether the new snapshots of a move, from base to result, have the files of those that they say they replay."""
BYPASSED: Final = "bypass_ref_rule"
CHANGED: Final = "change_ref_rule"


class RuleRecords(Protocol):
    """What a catalog has on record beside a table's metadata."""

    def levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        """The rules of the catalog and of namespaces that hold for a table."""
        ...

    def review(self, table: TableName, table_uuid: str, snapshot_id: int, ref: str) -> HeadReview | None:
        """For a ref: the checks that passed on a snapshot and who approves it; None if no such record is kept."""
        ...

    def authors(self, table_uuid: str, snapshot_ids: Collection[int]) -> frozenset[str]:
        """Who wrote these snapshots, as far as that is known."""
        ...


class NoRecords:
    """Of a catalog that keeps nothing beside its tables."""

    def levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        del table
        return ()

    def review(self, table: TableName, table_uuid: str, snapshot_id: int, ref: str) -> HeadReview | None:
        del table, table_uuid, snapshot_id, ref
        return None

    def authors(self, table_uuid: str, snapshot_ids: Collection[int]) -> frozenset[str]:
        del table_uuid, snapshot_ids
        return frozenset()


class RefChange:
    """A change from base to result; without a result the table is gone, and `done` says how."""

    def __init__(
        self,
        table: TableName,
        base: TableMetadata,
        result: TableMetadata | None,
        done: str | None = None,
        replay_check: ReplayCheck | None = None,
    ) -> None:
        self.table = table
        self._replay_check = replay_check
        self._replayed: dict[str, bool] = {}
        self._base = base
        self._result = result
        self._done = done
        self._is_logged = False

    @cached_property
    def moves(self) -> tuple[RefMove, ...]:
        """What the change does to refs."""
        return find_ref_moves(self._base, self._result)

    @property
    def table_uuid(self) -> str:
        """The table's UUID; empty for an old one that has none yet."""
        return self._base.table_uuid or ""

    @property
    def added_snapshots(self) -> frozenset[int]:
        """The snapshots that the change adds, also in place of others under the same id."""
        if self._result is None:
            return frozenset()
        gained = snapshots_gained(self._base, self._result)
        found = self._result.snapshots if gained is None else gained
        known = self._base.snapshots_by_id
        return frozenset(s.snapshot_id for s in found if known.get(s.snapshot_id) != s)

    @property
    def lost_snapshots(self) -> frozenset[int]:
        """The snapshots that the change removes or replaces under their ids; all of them if the table is dropped."""
        if self._result is None or self._result.table_uuid != self._base.table_uuid:
            return frozenset(self._base.snapshots_by_id)
        if snapshots_gained(self._base, self._result) is not None:
            return frozenset()
        after = self._result.snapshots_by_id
        return frozenset(
            number
            for number, snapshot in self._base.snapshots_by_id.items()
            if (now := after.get(number)) is not snapshot and now != snapshot
        )

    def check(self, records: RuleRecords, *, server_decides: bool = False) -> tuple[RuleLevel, ...]:
        """The rules that allow the change; ProtectedRefError from one that forbids it.

        The rules of the base decide, whatever the change makes of them. InvalidInputError for rules that are wrong.
        """
        levels, changed = self._rules(records)
        if not levels:
            return ()
        caller = current_caller()
        name = None if server_decides else caller.name
        for forbidden in self._forbidden_rules(levels, changed, caller, name):
            raise forbidden
        bypassed = self._decided(levels, self._decided_by(records, caller, name))
        notes = [RuleNote(BYPASSED, refused.rule) for refused in bypassed]
        notes += [RuleNote(CHANGED, pattern) for pattern in sorted(changed)]
        caller.notes[self.table] = tuple(dict.fromkeys(notes))
        self._log(caller, bypassed)
        return levels

    def refusals(self, records: RuleRecords, *, server_decides: bool = False) -> Iterator[ProtectedRefError]:
        """The objections of all rules to a change that is only tried out: nothing is recorded."""
        levels, changed = self._rules(records)
        caller = current_caller()
        name = None if server_decides else caller.name
        yield from self._forbidden_rules(levels, changed, caller, name)
        by = self._decided_by(records, caller, name)
        for level in levels:
            yield from map(self._error, refusals(level.rules, self.moves, by, level.scope))

    def _rules(self, records: RuleRecords) -> tuple[tuple[RuleLevel, ...], frozenset[str]]:
        """The rules that hold, and which of the table's own the change changes; none if it drops the table."""
        base, result = self._base, self._result
        before, after = rule_texts(base.properties), {} if result is None else rule_texts(result.properties)
        levels = records.levels(self.table)
        if not before and not after and not levels:
            return (), frozenset()
        changed = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)} if result else set()
        own = RuleLevel(TABLE, read_rules(base.properties))
        check_changed_rules(after, changed, named_rules(levels))
        return (own, *levels), frozenset(changed)

    def _decided(self, levels: Iterable[RuleLevel], by: DecidedBy) -> list[Refused]:
        bypassed: list[Refused] = []
        for level in levels:
            decision = decide(level.rules, self.moves, by, level.scope)
            if isinstance(decision, Refused):
                raise self._error(decision)
            bypassed += decision.bypassed
        return bypassed

    def _error(self, refused: Refused) -> ProtectedRefError:
        return ProtectedRefError(
            refused.sentence(str(self.table), self._done),
            table=str(self.table),
            ref=refused.move.ref,
            rule=refused.rule,
            hints=[refused.instead],
        )

    def _decided_by(self, records: RuleRecords, caller: Caller, name: str | None) -> DecidedBy:
        uuid, stand_in = self.table_uuid, caller.stands_for.get(self.table)
        return DecidedBy(
            name,
            lambda snapshot_id, ref: self._review(records, snapshot_id, ref),
            caller.groups,
            lambda move: records.authors(uuid, {*move.gained, *self._stood_for(move, stand_in)}),
            stand_in,
            lambda move: self._is_up_to_date(move, stand_in),
            self._replays_truly,
        )

    def _review(self, records: RuleRecords, snapshot_id: int, ref: str) -> HeadReview | None:
        """What is on record about a snapshot from before the change; nobody can have reviewed one that it adds."""
        found = records.review(self.table, self.table_uuid, snapshot_id, ref)
        is_seen = snapshot_id in self._base.snapshots_by_id and snapshot_id not in self.lost_snapshots
        return found if is_seen or found is None else HeadReview()

    def _replays_truly(self, move: RefMove) -> bool:
        """Looked at once: files do not change."""
        if self._replay_check is None or self._result is None:
            return True
        if move.ref not in self._replayed:
            self._replayed[move.ref] = self._replay_check(self._base, self._result, move)
        return self._replayed[move.ref]

    def _stood_for(self, move: RefMove, stand_in: StandIn | None) -> frozenset[int]:
        """The snapshots of a merged branch that the target did not have."""
        if stand_in is None:
            return frozenset()
        before = () if move.before is None else self._base.ancestors(move.before.snapshot_id)
        had = {s.snapshot_id for s in before}
        return frozenset(s.snapshot_id for s in self._base.ancestors(stand_in.head)) - had

    def _is_up_to_date(self, move: RefMove, stand_in: StandIn | None) -> bool:
        """Whether the head that stands in has the history of the ref, as this change finds both."""
        if stand_in is None or move.before is None:
            return stand_in is not None
        return any(s.snapshot_id == move.before.snapshot_id for s in self._base.ancestors(stand_in.head))

    def _forbidden_rules(
        self, levels: Iterable[RuleLevel], changed: Collection[str], caller: Caller, name: str | None
    ) -> Iterator[ProtectedRefError]:
        """The errors for the table's own rules that the caller may not change; only a server may know who that is."""
        own = (rule for level in levels if level.scope is TABLE for rule in level.rules)
        for rule in own if name is not None else ():
            if rule.pattern in changed and not may_change(rule, caller):
                assert isinstance(rule, RefRule)  # noqa: S101  (one that cannot be read is changed by everybody)
                yield ProtectedRefError(
                    f"the rule `{rule.pattern}` of table `{self.table}` is changed only by those who may bypass it, "
                    f"{_listed(rule.bypass)}, not by `{caller.name}`",
                    table=str(self.table),
                    ref=rule.pattern,
                    rule=rule.pattern,
                    hints=[f"ask one of them to change the property `{property_of(rule.pattern)}`"],
                )

    def _log(self, caller: Caller, bypassed: Iterable[Refused]) -> None:
        for refused in () if self._is_logged else bypassed:
            _LOG.warning("`%s` bypasses a rule: %s", caller.name, refused.sentence(str(self.table)))
        self._is_logged = True


def may_change(rule: RefRule | UnreadableRule, caller: Caller) -> bool:
    """Whether a caller may change or remove a rule: one with `bypass` only those, and who administers."""
    if isinstance(rule, UnreadableRule) or not rule.bypass or caller.administers:
        return True
    return is_among(rule.bypass, caller.name, caller.groups)


def named_rules(levels: Iterable[RuleLevel]) -> list[NamedRule]:
    """The rules of scopes that can be read, each with what it is called."""
    return [
        (f"`{rule.pattern}`{level.scope.suffix}", rule)
        for level in levels
        for rule in level.rules
        if isinstance(rule, RefRule)
    ]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
