"""Which rules protect a ref: the table's own, those of its namespaces and those of the catalog."""

from collections.abc import Iterable, Mapping

import msgspec

from bergline.catalog.protection.ref_rule import RefRule, matches, render_rule
from bergline.catalog.protection.rule_scope import TABLE, RuleLevel, RuleScope
from bergline.catalog.protection.table_rules import UnreadableRule, read_rules


class ProtectingRule(msgspec.Struct, frozen=True):
    """A rule that protects a ref, and where it is kept."""

    scope: RuleScope
    rule: RefRule | UnreadableRule

    @property
    def text(self) -> str:
        """What the rule says; of one that cannot be read, why."""
        if isinstance(self.rule, UnreadableRule):
            return f"cannot be read: {self.rule.problem}"
        return render_rule(self.rule)

    @property
    def called(self) -> str:
        """The rule as a sentence names it: its pattern, and whose it is."""
        return f"`{self.rule.pattern}`{self.scope.suffix}"


def all_rules(properties: Mapping[str, str], levels: Iterable[RuleLevel] = ()) -> tuple[ProtectingRule, ...]:
    """The rules of a table, its own first."""
    every = (RuleLevel(TABLE, read_rules(properties)), *levels)
    return tuple(ProtectingRule(level.scope, rule) for level in every for rule in level.rules)


def protecting_rules(rules: Iterable[ProtectingRule], ref: str, *, is_branch: bool) -> tuple[ProtectingRule, ...]:
    """The rules that name a ref."""
    return tuple(one for one in rules if _names(one.rule, ref, is_branch=is_branch))


def rule_against_drop(rules: Iterable[ProtectingRule], ref: str, *, is_branch: bool) -> str | None:
    """The pattern of a rule that forbids dropping a ref, for expiry to keep it; None if there is none."""
    found = (one.rule for one in protecting_rules(rules, ref, is_branch=is_branch))
    return next((rule.pattern for rule in found if isinstance(rule, UnreadableRule) or rule.is_firm), None)


def rule_against_expiry(rules: Iterable[ProtectingRule], branch: str) -> str | None:
    """The pattern of a rule that keeps the whole history of a branch; None if there is none."""
    found = (one.rule for one in protecting_rules(rules, branch, is_branch=True))
    return next((rule.pattern for rule in found if isinstance(rule, UnreadableRule) or rule.no_expiry), None)


def _names(rule: RefRule | UnreadableRule, ref: str, *, is_branch: bool) -> bool:
    if isinstance(rule, UnreadableRule):
        return matches(rule.pattern, ref)
    return rule.applies_to(ref, is_branch=is_branch)
