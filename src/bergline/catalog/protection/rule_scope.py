"""Where a rule is kept: with a table, or in the catalog's database for a namespace or for all tables."""

from enum import StrEnum
from typing import Final

import msgspec

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.protection.table_rules import UnreadableRule, property_of


class ScopeKind(StrEnum):
    """What a rule is about."""

    TABLE = "table"
    NAMESPACE = "namespace"
    CATALOG = "catalog"


class RuleScope(msgspec.Struct, frozen=True):
    """The tables for which a rule holds: one, those in a namespace and below it, or all."""

    kind: ScopeKind
    namespace: Namespace = ()

    @property
    def suffix(self) -> str:
        """To follow the name of a rule; nothing for a table, which is named beside it."""
        match self.kind:
            case ScopeKind.TABLE:
                return ""
            case ScopeKind.NAMESPACE:
                return f" of namespace `{'.'.join(self.namespace)}`"
            case ScopeKind.CATALOG:
                return " of the catalog"

    def removal(self, pattern: str) -> str:
        """How a rule is removed, in Python."""
        match self.kind:
            case ScopeKind.TABLE:
                return f"`refs.unprotect('{pattern}')`"
            case ScopeKind.NAMESPACE:
                return f"`lake.rules.unprotect('{pattern}', namespace='{'.'.join(self.namespace)}')`"
            case ScopeKind.CATALOG:
                return f"`lake.rules.unprotect('{pattern}')`"

    def correction(self, pattern: str) -> str:
        """How a rule is mended that cannot be read."""
        if self.kind is ScopeKind.TABLE:
            return f"correct the property `{property_of(pattern)}`, or remove it"
        return f"set the rule anew, or remove it: {self.removal(pattern)}"


TABLE: Final = RuleScope(ScopeKind.TABLE)


def scope_of(namespace: Namespace) -> RuleScope:
    """The scope of rules of a namespace; of the catalog for the empty one."""
    return RuleScope(ScopeKind.NAMESPACE if namespace else ScopeKind.CATALOG, namespace)


def scopes_above(namespace: Namespace) -> tuple[Namespace, ...]:
    """The namespaces whose rules hold in one: the catalog as the empty one, its parents and itself."""
    return tuple(namespace[:size] for size in range(len(namespace) + 1))


class RuleLevel(msgspec.Struct, frozen=True):
    """The rules of one scope."""

    scope: RuleScope
    rules: tuple[RefRule | UnreadableRule, ...]
