"""Checks and approvals of snapshots, and what can be done with them."""

from enum import StrEnum
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import TableName


class CheckState(StrEnum):
    """The result of a check on a snapshot, or on the heads of a pull request."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"


class SnapshotCheck(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A check of a snapshot, and who reported it when."""

    name: str
    state: CheckState
    principal: str
    at_ms: int
    detail: str | None = None


class SnapshotApproval(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Who approves a snapshot, or did until the approval was withdrawn."""

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
        """Record the current result of a check; NotFoundError if the table has no such snapshot."""
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
