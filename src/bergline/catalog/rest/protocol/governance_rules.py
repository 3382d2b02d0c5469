"""Bodies of bergline's own endpoints for rules about refs, and for checks and approvals of snapshots."""

import msgspec

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.kept_rules import CheckState


class RefRuleBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A rule as it is kept: `rule` is its text, such as `only-publish; approvals=2`."""

    pattern: str
    rule: str
    namespace: Namespace = ()
    """Empty for a rule of the catalog."""
    principal: str = ""
    at_ms: int = 0
    problem: str | None = None
    """Why the rule cannot be read, if it cannot."""


class ListRefRulesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Rules, by scope and pattern."""

    rules: tuple[RefRuleBody, ...]


class SetRefRuleRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The rule of a pattern."""

    pattern: str
    rule: str


class SnapshotCheckBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a check says about a snapshot."""

    name: str
    state: CheckState
    principal: str
    at_ms: int
    detail: str | None = None


class ListSnapshotChecksResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The checks of a snapshot, by name."""

    checks: tuple[SnapshotCheckBody, ...]


class ReportSnapshotCheckRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a check found."""

    name: str
    state: CheckState
    detail: str | None = None


class SnapshotApprovalBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Who approves a snapshot, or has withdrawn it."""

    principal: str
    withdrawn: bool
    at_ms: int
    detail: str | None = None


class ListSnapshotApprovalsResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The approvals of a snapshot, by name."""

    approvals: tuple[SnapshotApprovalBody, ...]


class ApproveSnapshotRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """An approval, by whoever sends it."""

    detail: str | None = None
