"""Rules and reviews that a catalog keeps beside its tables, whether in its own database or behind a server."""

from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby
from typing import Protocol, runtime_checkable

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
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


class CheckState(StrEnum):
    """What a check says about a snapshot."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"


class SnapshotCheck(msgspec.Struct, frozen=True):
    """A check of a snapshot, and who reported it when."""

    name: str
    state: CheckState
    principal: str
    at_ms: int
    detail: str | None = None


class SnapshotApproval(msgspec.Struct, frozen=True):
    """Who approves a snapshot, or did until it was withdrawn."""

    principal: str
    withdrawn: bool
    at_ms: int
    detail: str | None = None


class SnapshotReviews(Protocol):
    """Checks and approvals of snapshots; those of the caller are made under its name."""

    def checks(self, table: TableName, snapshot_id: int) -> tuple[SnapshotCheck, ...]:
        """The checks of a snapshot, by name."""
        ...

    def report_check(
        self, table: TableName, snapshot_id: int, name: str, state: CheckState, detail: str | None = None
    ) -> None:
        """Record what a check says now; NotFoundError if the table has no such snapshot."""
        ...

    def approvals(self, table: TableName, snapshot_id: int) -> tuple[SnapshotApproval, ...]:
        """Who approves a snapshot, by name."""
        ...

    def approve(self, table: TableName, snapshot_id: int, detail: str | None = None) -> None:
        """Approve a snapshot."""
        ...

    def withdraw(self, table: TableName, snapshot_id: int) -> None:
        """Withdraw the caller's own approval; NotFoundError if there is none."""
        ...


@runtime_checkable
class RuleKeepingCatalog(Protocol):
    """For catalogs whose server keeps rules and reviews."""

    def ref_rules(self) -> KeptRules:
        """The rules; UnsupportedError if the server keeps none."""
        ...

    def snapshot_reviews(self) -> SnapshotReviews:
        """The reviews; UnsupportedError if the server keeps none."""
        ...
