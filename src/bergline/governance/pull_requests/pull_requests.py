"""`lake.pull_requests`: requests to publish branches, with their checks, approvals and comments."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Self, TypeVar

from bergline.arguments import check_positive, check_text, check_whole, shown
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.governance.pull_requests.model import (
    CheckOutcome,
    NewPullRequest,
    Publication,
    PublishMethod,
    PullRequestCalls,
    PullRequestOverview,
    PullRequestRecord,
    PullRequestState,
    TableHead,
)
from bergline.governance.reviews.model import CheckState
from bergline.table.table_selection import TableNames, named_tables

_PAGE = 100
Heads = Mapping[str, int] | Mapping[TableName, int]
"""The snapshot at the head of each table's branch."""
_Choice = TypeVar("_Choice", PullRequestState, PublishMethod, CheckState)


class LakePullRequests:
    """The pull requests of a lake; iterating gives all of them, newest first."""

    def __init__(self, calls: PullRequestCalls) -> None:
        self._calls = calls

    def open(
        self,
        branch: str,
        *,
        into: str = MAIN,
        title: str | None = None,
        description: str = "",
        tables: TableNames | None = None,
    ) -> "PullRequest":
        """Open a pull request to publish a branch of the named tables, or of all that have it, into another."""
        check_text(branch, "the name of a branch")
        names = None if tables is None else named_tables(tables)
        title = f"Publish {branch}"[:255] if title is None else title
        record = self._calls.open(NewPullRequest(title, branch, into, description, names))
        return PullRequest(self._calls, record)

    def get(self, number: int) -> "PullRequest":
        """The pull request with this number, as it is now."""
        return PullRequest.looked_at(self._calls, check_positive(number, "a pull request"))

    def list(self, state: str | None = "open", *, limit: int | None = None) -> tuple["PullRequest", ...]:
        """The pull requests in a state, newest first: "open", "closed", "published", or None for all."""
        found = self._all(None if state is None else _choice(PullRequestState, state, "state"))
        return tuple(found if limit is None else itertools.islice(found, check_positive(limit, "the limit")))

    def __iter__(self) -> Iterator["PullRequest"]:
        return self._all(None)

    def _all(self, state: PullRequestState | None) -> Iterator["PullRequest"]:
        before: int | None = None
        while page := self._calls.page(state, before, _PAGE):
            yield from (PullRequest(self._calls, record) for record in page)
            before = page[-1].number


class PullRequest:
    """A pull request, and what it would do as of the last look: that is what is approved and published."""

    def __init__(
        self, calls: PullRequestCalls, record: PullRequestRecord, overview: PullRequestOverview | None = None
    ) -> None:
        self._calls = calls
        self._record = record
        self._overview = overview
        self._heads = None if overview is None else overview.heads

    @classmethod
    def looked_at(cls, calls: PullRequestCalls, number: int) -> Self:
        """A pull request as it is now."""
        overview = calls.overview(number)
        return cls(calls, overview.record, overview)

    def __repr__(self) -> str:
        return f"PullRequest({self.number}, {self.record.title!r}, {self.state})"

    @property
    def record(self) -> PullRequestRecord:
        """Its record."""
        return self._record

    @property
    def number(self) -> int:
        """Its number."""
        return self._record.number

    @property
    def state(self) -> PullRequestState:
        """Whether it is open, closed or published."""
        return self._record.state

    @property
    def overview(self) -> PullRequestOverview:
        """What publishing would do, as of the last look."""
        return self._overview or self.look()

    def look(self) -> PullRequestOverview:
        """Load it again, as a new look."""
        self._overview = self._calls.overview(self.number)
        self._record, self._heads = self._overview.record, self._overview.heads
        return self._overview

    def edit(self, *, title: str | None = None, description: str | None = None) -> Self:
        """Change its title or description."""
        return self._now(self._calls.edit(self.number, title, description))

    def comment(self, text: str) -> Self:
        """Add a comment."""
        return self._now(self._calls.comment(self.number, text))

    def approve(self, *, heads: Heads | None = None) -> Self:
        """Approve the heads of all tables, as given or as of the last look.

        ConflictError if one of them has moved since, RefusedError for the author.
        """
        return self._now(self._calls.approve(self.number, self._seen(heads)))

    def withdraw(self) -> Self:
        """Withdraw one's own approval."""
        return self._now(self._calls.withdraw(self.number))

    def report_check(
        self,
        name: str,
        state: str | CheckState,
        *,
        detail: str | None = None,
        heads: Heads | None = None,
    ) -> Self:
        """Report that a check has "passed", has "failed" or is "pending", on the current heads or on given ones."""
        on = None if heads is None else _heads(heads)
        report = CheckOutcome(name, _choice(CheckState, state, "state of a check"), detail, on)
        return self._now(self._calls.report_check(self.number, report))

    def publish(
        self,
        *,
        method: str | PublishMethod = "fast-forward",
        keep_branch: bool = False,
        heads: Heads | None = None,
        version: int | None = None,
    ) -> Self:
        """Publish all tables in one commit, as of the last look, and drop the branch.

        The method is "fast-forward", "merge" or "squash". ConflictError if a head, the pull request or one of its
        reviews has changed since.
        """
        seen, how = self._seen(heads), _choice(PublishMethod, method, "method")
        publication = Publication(seen, how, version or self._record.version, keep_branch)
        return self._now(self._calls.publish(self.number, publication))

    def close(self) -> Self:
        """Close it; its branch stays."""
        return self._now(self._calls.close(self.number))

    def reopen(self) -> Self:
        """Reopen it."""
        return self._now(self._calls.reopen(self.number))

    def _seen(self, heads: Heads | None) -> tuple[TableHead, ...]:
        if heads is not None:
            return _heads(heads)
        return self.look().heads if self._heads is None else self._heads

    def _now(self, record: PullRequestRecord) -> Self:
        self._record = record
        self._overview = None
        return self


def _heads(heads: Heads) -> tuple[TableHead, ...]:
    return tuple(TableHead(parse_table_name(t), check_whole(head, f"the head of `{t}`")) for t, head in heads.items())


def _choice(kind: type[_Choice], text: str, what: str) -> _Choice:
    try:
        return kind(text)
    except ValueError:
        names = ", ".join(kind)
        raise InvalidInputError(f"expected one of {names} as the {what}, found {shown(text)}") from None
