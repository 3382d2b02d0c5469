"""The guard of a catalog: asked before every change of a pointer, it refuses what a rule forbids."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, RuleNote, current_caller
from bergline.catalog.protection.decision import Allowed, DecidedBy, HeadReview, Refused, decide
from bergline.catalog.protection.ref_moves import find_ref_moves
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.protection.table_rules import check_changed_rules, property_of, read_rules, rule_texts
from bergline.errors import ProtectedRefError
from bergline.format.metadata.table_metadata import TableMetadata

_LOG = logging.getLogger("bergline.catalog")
BYPASSED = "bypass_ref_rule"
CHANGED = "change_ref_rule"


class RefGuard(Protocol):
    """Decides on changes from the metadata before and after them, before anything is written."""

    def check_change(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None, done: str | None = None
    ) -> None:
        """ProtectedRefError for a change that a rule forbids, InvalidInputError for rules that are wrong.

        Without a result the table is gone from its name; `done` says how, as in "the table dropped".
        """
        ...

    def check_new(self, metadata: TableMetadata) -> None:
        """InvalidInputError for a new table whose rules are wrong."""
        ...


class TableRulesGuard:
    """Honours the rules in a table's own properties; those of the base decide, whatever the change makes of them.

    Where a server decides, what depends on the caller's name is left to it. `review` is what is on record about a
    snapshot of a table; by default nothing is.
    """

    def __init__(
        self,
        *,
        server_decides: bool = False,
        review: Callable[[TableName, int], HeadReview] = lambda _table, _snapshot_id: HeadReview(),
    ) -> None:
        self._server_decides = server_decides
        self._review = review

    def check_change(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None, done: str | None = None
    ) -> None:
        before, after = rule_texts(base.properties), {} if result is None else rule_texts(result.properties)
        if not before and not after:
            return
        caller = current_caller()
        name = None if self._server_decides else caller.name
        rules = read_rules(base.properties)
        changed = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)} if result else set()
        check_changed_rules(after, changed)
        _check_may_change(table, rules, changed, name)
        decision = decide(rules, find_ref_moves(base, result), DecidedBy(name, partial(self._review, table)))
        match decision:
            case Refused():
                raise ProtectedRefError(
                    decision.sentence(str(table), done),
                    table=str(table),
                    ref=decision.move.ref,
                    rule=decision.rule,
                    hints=[decision.instead],
                )
            case Allowed(bypassed):
                _note(caller, table, bypassed, changed)

    def check_new(self, metadata: TableMetadata) -> None:
        texts = rule_texts(metadata.properties)
        check_changed_rules(texts, texts)


def _check_may_change(table: TableName, rules: Iterable[object], changed: set[str], caller: str | None) -> None:
    for rule in rules:
        if not isinstance(rule, RefRule) or rule.pattern not in changed or not rule.bypass:
            continue
        if caller is not None and caller not in rule.bypass:
            names = ", ".join(f"`{name}`" for name in rule.bypass)
            raise ProtectedRefError(
                f"the rule `{rule.pattern}` of table `{table}` is changed only by those who may bypass it, {names}, "
                f"not by `{caller}`",
                table=str(table),
                ref=rule.pattern,
                rule=rule.pattern,
                hints=[f"ask one of them to change the property `{property_of(rule.pattern)}`"],
            )


def _note(caller: Caller, table: TableName, bypassed: Iterable[Refused], changed: Iterable[str]) -> None:
    notes = [RuleNote(BYPASSED, refused.rule) for refused in bypassed]
    notes += [RuleNote(CHANGED, pattern) for pattern in sorted(changed)]
    caller.notes[table] = tuple(dict.fromkeys(notes))
    for refused in bypassed:
        _LOG.warning("`%s` bypasses a rule: %s", caller.name, refused.sentence(str(table)))
