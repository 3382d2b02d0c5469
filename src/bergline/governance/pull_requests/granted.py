"""Pull requests as one caller may see and use them; the catalog's guard decides what publishing may do to tables."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.refusals import hidden
from bergline.governance.grants.securable import CATALOG, Securable, table_of
from bergline.governance.pull_requests.model import (
    CheckOutcome,
    NewPullRequest,
    Publication,
    PullRequestCalls,
    PullRequestOverview,
    PullRequestRecord,
    PullRequestState,
    TableHead,
    missing_branch,
    missing_pull_request,
)
from bergline.table.table_selection import find_tables

_MOST_PAGES = 100


class AsksAccess(Protocol):
    """The server's current decisions on access."""

    def may(self, principal: str, groups: frozenset[str], privilege: Privilege, securable: Securable) -> bool:
        """Whether a caller has a privilege."""
        ...

    def check(self, principal: str, groups: frozenset[str], privilege: Privilege, securable: Securable) -> None:
        """RefusedError without the privilege, NotFoundError if it may not be seen."""
        ...


class GrantedPullRequests:
    """Reading all its tables is enough to see a pull request and comment on it; approvals and checks need `publish`."""

    def __init__(
        self, calls: PullRequestCalls, catalog: Catalog, access: AsksAccess, principal: str, groups: frozenset[str]
    ) -> None:
        self._calls = calls
        self._catalog = catalog
        self._access = access
        self._who = principal, groups

    def open(self, new: NewPullRequest) -> PullRequestRecord:
        """Open one, of tables that the caller may read; without a list, of all such tables that have the branch."""
        for name in new.tables or ():
            self._access.check(*self._who, Privilege.READ, table_of(name))
        if new.tables is None and not self._access.may(*self._who, Privilege.READ, CATALOG):
            new = msgspec.structs.replace(new, tables=self._readable_with(new.branch))
        return self._calls.open(new)

    def page(self, state: PullRequestState | None, before: int | None, most: int) -> Sequence[PullRequestRecord]:
        """Some of those that the caller may see, newest first."""
        found: list[PullRequestRecord] = []
        for _ in range(_MOST_PAGES):
            some = self._calls.page(state, before, most)
            found += [record for record in some if self._sees(record)]
            if len(found) >= most or len(some) < most:
                break
            before = some[-1].number
        return found[:most]

    def find(self, number: int) -> PullRequestRecord:
        """The record of one."""
        return self._seen(number)

    def overview(self, number: int) -> PullRequestOverview:
        """The record of one, with what publishing would do now."""
        self._seen(number)
        return self._calls.overview(number)

    def edit(self, number: int, title: str | None, description: str | None) -> PullRequestRecord:
        """Change its title or description: for its author, or who may publish it."""
        self._check_own(number)
        return self._calls.edit(number, title, description)

    def comment(self, number: int, text: str) -> PullRequestRecord:
        """Add a comment."""
        self._seen(number)
        return self._calls.comment(number, text)

    def approve(self, number: int, heads: tuple[TableHead, ...]) -> PullRequestRecord:
        """Approve its heads: for those who may publish into its target."""
        self._check_publishes(self._seen(number))
        return self._calls.approve(number, heads)

    def withdraw(self, number: int) -> PullRequestRecord:
        """Withdraw the caller's approval."""
        self._seen(number)
        return self._calls.withdraw(number)

    def report_check(self, number: int, report: CheckOutcome) -> PullRequestRecord:
        """Record the result of a check: for those who may publish into its target."""
        self._check_publishes(self._seen(number))
        return self._calls.report_check(number, report)

    def publish(self, number: int, publication: Publication) -> PullRequestRecord:
        """Publish it: for those who may publish into its target, or write to it."""
        self._seen(number)
        return self._calls.publish(number, publication)

    def close(self, number: int) -> PullRequestRecord:
        """Close it: for its author, or who may publish it."""
        self._check_own(number)
        return self._calls.close(number)

    def reopen(self, number: int) -> PullRequestRecord:
        """Reopen it: for its author, or who may publish it."""
        self._check_own(number)
        return self._calls.reopen(number)

    def _readable_with(self, branch: str) -> tuple[TableName, ...]:
        """The tables with a branch among those that the caller may read; no others are loaded."""
        known: set[str] = set()
        found = find_tables(self._catalog, branch, None, known, self._reads)
        tables = tuple(found)
        if not tables:
            raise missing_branch(branch, known)
        return tables

    def _reads(self, name: TableName) -> bool:
        return self._access.may(*self._who, Privilege.READ, table_of(name))

    def _seen(self, number: int) -> PullRequestRecord:
        """A pull request that the caller may see; for any other the same error as for one that does not exist."""
        record = self._calls.find(number)
        unseen = next((table.name for table in record.tables if not self._reads(table.name)), None)
        if unseen is not None:
            # the cause is for the audit only: the caller does not see it
            raise missing_pull_request(number) from hidden(table_of(unseen))
        return record

    def _sees(self, record: PullRequestRecord) -> bool:
        return all(self._reads(table.name) for table in record.tables)

    def _check_own(self, number: int) -> None:
        record = self._seen(number)
        if record.author != self._who[0]:
            self._check_publishes(record)

    def _check_publishes(self, record: PullRequestRecord) -> None:
        for table in record.tables:
            target = table_of(table.name).at(record.target)
            if not self._access.may(*self._who, Privilege.WRITE, target):
                self._access.check(*self._who, Privilege.PUBLISH, target)
