"""Pull requests: requests to publish a branch of one or several tables into another branch.

Reviews are always of a set of heads, one for each table: whoever approves or publishes names the heads that they saw.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError
from bergline.governance.reviews.model import CheckState

PULL_REQUEST = "pull request"
"""The kind of errors about a pull request that is missing or exists already."""


class PullRequestState(StrEnum):
    """Whether it is open, closed or published."""

    OPEN = "open"
    CLOSED = "closed"
    PUBLISHED = "published"


class PublishMethod(StrEnum):
    """How a branch is published into its target."""

    FAST_FORWARD = "fast-forward"
    MERGE = "merge"
    SQUASH = "squash"


class EntryKind(StrEnum):
    """What happened to a pull request."""

    OPENED = "opened"
    EDITED = "edited"
    COMMENTED = "commented"
    APPROVED = "approved"
    WITHDREW = "withdrew"
    CHECKED = "checked"
    CLOSED = "closed"
    REOPENED = "reopened"
    PUBLISHED = "published"


class Standing(StrEnum):
    """How a branch compares to its target."""

    UP_TO_DATE = "up to date"
    """The target has everything that the branch has."""
    FAST_FORWARD = "fast-forward"
    DIVERGED = "diverged"
    GONE = "gone"
    """The table, the branch or the target is gone, so there is nothing to publish."""


class ProposedTable(msgspec.Struct, frozen=True, rename="kebab"):
    """A table of a pull request, identified by UUID: another one may take its name later."""

    name: TableName
    uuid: str


class TableHead(msgspec.Struct, frozen=True, rename="kebab"):
    """The snapshot at the head of a branch of a table."""

    name: TableName
    snapshot_id: int


class PullRequestEntry(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One thing that happened to a pull request: who did it, and to which heads."""

    at_ms: int
    principal: str
    what: EntryKind
    text: str | None = None
    """The comment, the check with its state, or the new title."""
    heads: tuple[TableHead, ...] = ()


class PullRequestRecord(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The record of a pull request; every change increments its version."""

    number: int
    title: str
    author: str
    branch: str
    target: str
    tables: tuple[ProposedTable, ...]
    created_ms: int
    updated_ms: int
    state: PullRequestState = PullRequestState.OPEN
    version: int = 1
    description: str = ""
    published: tuple[TableHead, ...] = ()
    """The heads of the branch that were published."""
    method: PublishMethod | None = None


class ReportedCheck(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The result of a check on the head of one table."""

    name: str
    state: CheckState
    principal: str
    at_ms: int
    detail: str | None = None


class ProposedChange(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a pull request would do to one table, and what prevents it."""

    name: TableName
    standing: Standing
    head: int | None = None
    target_head: int | None = None
    problem: str | None = None
    """Why the table cannot be published at all."""
    conflict: str | None = None
    """Why the branch cannot be merged into the target as it is now."""
    demands: tuple[str, ...] = ()
    """What rules about refs still demand of the caller, and which privileges the caller lacks."""
    snapshots: int = 0
    """How many snapshots the branch has that the target does not have."""
    behind: int = 0
    """How many the target has that the branch does not have."""
    added_rows: int = 0
    removed_rows: int = 0
    added_files: int = 0
    removed_files: int = 0
    schema_changes: tuple[str, ...] = ()
    checks: tuple[ReportedCheck, ...] = ()
    approved_by: tuple[str, ...] = ()
    """Who approves this very head."""
    uncounted: dict[str, str] = {}
    """Whose approval a rule would not count if the caller published, each with the reason."""


class PullRequestOverview(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A pull request with what publishing it would do now, and its history."""

    record: PullRequestRecord
    tables: tuple[ProposedChange, ...] = ()
    history: tuple[PullRequestEntry, ...] = ()
    approved_by: tuple[str, ...] = ()
    """Who approves the heads of all tables."""
    stale_approvals: tuple[str, ...] = ()
    """Who approved heads that have moved since."""

    @property
    def heads(self) -> tuple[TableHead, ...]:
        """The heads in this overview, to be named by whoever approves or publishes them."""
        return tuple(TableHead(table.name, table.head) for table in self.tables if table.head is not None)

    @property
    def comments(self) -> tuple[PullRequestEntry, ...]:
        """The comments."""
        return tuple(entry for entry in self.history if entry.what is EntryKind.COMMENTED)

    @property
    def uncounted(self) -> dict[str, str]:
        """Whose approvals of all heads would not count if the caller published, each with the reason."""
        found = {name: why for table in self.tables for name, why in table.uncounted.items()}
        return {name: found[name] for name in self.approved_by if name in found}

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Everything that prevents the caller from publishing it by fast-forward or merge."""
        if self.record.state is not PullRequestState.OPEN:
            return (f"it is {self.record.state}",)
        found = [
            f"`{table.name}`: {why}"
            for table in self.tables
            for why in (table.problem, table.conflict, *table.demands, *map(_objection, table.checks))
            if why is not None
        ]
        return tuple(found)


def _objection(check: ReportedCheck) -> str | None:
    return None if check.state is CheckState.PASSED else f"check `{check.name}` is {check.state}"


class NewPullRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A pull request to open: what is to be published into what; without tables, all that have the branch."""

    title: str
    branch: str
    target: str = "main"
    description: str = ""
    tables: tuple[TableName, ...] | None = None


class CheckOutcome(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The result of a check on heads of a pull request's tables; without heads, on the current ones."""

    name: str
    state: CheckState
    detail: str | None = None
    heads: tuple[TableHead, ...] | None = None


class Publication(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """How to publish the heads that were reviewed; with a version, only if nothing has changed since."""

    heads: tuple[TableHead, ...]
    method: PublishMethod = PublishMethod.FAST_FORWARD
    version: int | None = None
    keep_branch: bool = False


class PullRequestCalls(Protocol):
    """The pull requests of one catalog.

    NotFoundError for an unknown number, ConflictError if it, or a head, is no longer what the caller saw.
    """

    def open(self, new: NewPullRequest) -> PullRequestRecord:
        """Open one; AlreadyExistsError if one for the same branch and target is open."""
        ...

    def page(self, state: PullRequestState | None, before: int | None, most: int) -> Sequence[PullRequestRecord]:
        """Some of them, newest first, from those with a lower number."""
        ...

    def find(self, number: int) -> PullRequestRecord:
        """The record of one."""
        ...

    def overview(self, number: int) -> PullRequestOverview:
        """The record of one, with what publishing would do now."""
        ...

    def edit(self, number: int, title: str | None, description: str | None) -> PullRequestRecord:
        """Change its title or description."""
        ...

    def comment(self, number: int, text: str) -> PullRequestRecord:
        """Add a comment."""
        ...

    def approve(self, number: int, heads: tuple[TableHead, ...]) -> PullRequestRecord:
        """Approve the heads of all tables, in one transaction; ConflictError if one of them has moved."""
        ...

    def withdraw(self, number: int) -> PullRequestRecord:
        """Withdraw the caller's approval."""
        ...

    def report_check(self, number: int, report: CheckOutcome) -> PullRequestRecord:
        """Record the result of a check."""
        ...

    def publish(self, number: int, publication: Publication) -> PullRequestRecord:
        """Publish all tables in one commit, which marks it as published too."""
        ...

    def close(self, number: int) -> PullRequestRecord:
        """Close it."""
        ...

    def reopen(self, number: int) -> PullRequestRecord:
        """Reopen it."""
        ...


def missing_pull_request(number: int) -> NotFoundError:
    """The error for a number without a pull request, or with one that may not be seen."""
    return NotFoundError(f"no pull request {number}", kind=PULL_REQUEST, name=str(number))


def missing_branch(branch: str, known: Collection[str]) -> NotFoundError:
    """The error for a branch that no readable table has; `known` are the refs of readable tables."""
    return NotFoundError(f"no table with a branch `{branch}`", kind="ref", name=branch, known=known)
