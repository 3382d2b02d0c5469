"""Rules that a catalog keeps beside its tables, whether in its own database or behind a server."""

from collections.abc import Iterable
from itertools import groupby
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.protection.rule_scope import RuleLevel, scope_of
from bergline.catalog.protection.table_rules import UnreadableRule


class KeptRule(msgspec.Struct, frozen=True):
    """A rule of a namespace, or of the catalog, and who set it when."""

    namespace: Namespace
    """Empty for the catalog."""
    rule: RefRule | UnreadableRule
    principal: str
    at_ms: int


def levels_of(rules: Iterable[KeptRule]) -> tuple[RuleLevel, ...]:
    """Rules, sorted by scope, as what is decided by."""
    scopes = groupby(rules, key=lambda kept: kept.namespace)
    return tuple(RuleLevel(scope_of(name), tuple(kept.rule for kept in found)) for name, found in scopes)


class KeptRules(Protocol):
    """The rules of a catalog and its namespaces."""

    def rules(self, namespace: Namespace | None = None) -> tuple[KeptRule, ...]:
        """All rules, or those that hold in a namespace: its own, those of its parents and of the catalog."""
        ...

    def set_rule(self, namespace: Namespace, rule: RefRule) -> None:
        """Set the rule of a pattern, for the catalog if the namespace is empty.

        ProtectedRefError if its earlier rule is changed only by others, InvalidInputError if it contradicts another.
        """
        ...

    def remove_rule(self, namespace: Namespace, pattern: str) -> None:
        """Remove the rule of a pattern; NotFoundError if there is none."""
        ...
