"""What the transaction that publishes does to its pull request."""

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import current_caller
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.rules.reviews import RecordedReview, ReviewedTable, ReviewKind, ReviewState, SqlReviews
from bergline.errors import ConflictError, RefusedError
from bergline.governance.pull_requests.model import (
    EntryKind,
    Publication,
    PullRequestEntry,
    PullRequestRecord,
    PullRequestState,
)
from bergline.governance.pull_requests.store import SqlPullRequests

HeadReviews = dict[TableName, tuple[ReviewedTable, int, tuple[RecordedReview, ...]]]
"""For each table its head, and the reviews of that head that count for the target."""


class LookedAt(msgspec.Struct, frozen=True):
    """A pull request and its reviews as they were when the decision to publish was made."""

    record: PullRequestRecord
    reviews: HeadReviews
    publication: Publication


class Publishing:
    """Marks a pull request as published, in the transaction that moves the tables."""

    def __init__(self, requests: SqlPullRequests, reviews: SqlReviews, seen: LookedAt) -> None:
        self._requests = requests
        self._reviews = reviews
        self._seen = seen
        self.outdated: ConflictError | None = None
        """Why it was rolled back."""

    def note(self, connection: Connection, now_ms: int) -> PullRequestRecord:
        """Mark it as published; RefusedError, and nothing changes, if it has changed since the decision."""
        outdated = self._outdated_reviews(connection)
        publication, who = self._seen.publication, current_caller().name
        entry = PullRequestEntry(now_ms, who, EntryKind.PUBLISHED, publication.method.value, publication.heads)
        try:
            if outdated is not None:
                raise changed(self._seen.record, f"the reviews of `{outdated}` changed while it was published")
            return self._requests.change_in(connection, self._seen.record.number, entry, self._published)
        except ConflictError as error:
            self.outdated = error
            raise RefusedError(str(error)) from error

    def _outdated_reviews(self, connection: Connection) -> TableName | None:
        """A table whose reviews have changed; the rows are locked until the end of the transaction."""
        for name, (table, snapshot_id, reviews) in self._seen.reviews.items():
            if self._reviews.of(table, snapshot_id, self._seen.record.target, connection) != reviews:
                return name
        return None

    def _published(self, _connection: Connection, now: PullRequestRecord) -> PullRequestRecord:
        check_open(now)
        if now.version != self._seen.record.version:
            raise changed(now, "it changed while it was published")
        publication = self._seen.publication
        return msgspec.structs.replace(
            now, state=PullRequestState.PUBLISHED, published=publication.heads, method=publication.method
        )


def check_open(record: PullRequestRecord) -> None:
    """ConflictError for one that was closed or published."""
    if record.state is not PullRequestState.OPEN:
        hints = ["reopen it first"] if record.state is PullRequestState.CLOSED else []
        raise ConflictError(
            f"expected an open pull request, found {record.number}, which is {record.state}", hints=hints
        )


def check_passed(record: PullRequestRecord, reviews: HeadReviews) -> None:
    """RefusedError if a check says anything but that it passed."""
    for name, (_, snapshot_id, found) in reviews.items():
        for review in found:
            if review.kind is ReviewKind.CHECK and review.state is not ReviewState.PASSED:
                raise RefusedError(
                    f"cannot publish pull request {record.number}: check `{review.name}` is {review.state} on snapshot "
                    f"{snapshot_id} of `{name}`",
                    hints=["make it pass on this snapshot, or push a fix"],
                )


def changed(record: PullRequestRecord, why: str) -> ConflictError:
    """The error for a pull request that has changed."""
    return ConflictError(
        f"pull request {record.number} has changed since you looked at it: {why}",
        hints=["look at the pull request again"],
    )
