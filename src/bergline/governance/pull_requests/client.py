"""Pull requests through `bergline serve`."""

from collections.abc import Sequence
from typing import Any

from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.errors import CommitUnknownError, UnsupportedError
from bergline.governance.pull_requests import protocol
from bergline.governance.pull_requests.model import (
    PULL_REQUEST,
    CheckOutcome,
    NewPullRequest,
    Publication,
    PullRequestOverview,
    PullRequestRecord,
    PullRequestState,
    TableHead,
)

_PAGE = 1000


class RestPullRequests:
    """PullRequestCalls over HTTP; the server makes all decisions."""

    def __init__(self, session: RestSession) -> None:
        self._session = session
        if not session.calls.has(protocol.OPEN_PULL_REQUEST):
            raise UnsupportedError(
                "cannot work with pull requests: the server has none", hints=["`bergline serve` has them"]
            )

    def open(self, new: NewPullRequest) -> PullRequestRecord:
        """Open one; after a lost response, an open one for the same branch and target counts as ours."""
        try:
            return self._change(protocol.OPEN_PULL_REQUEST, None, new)
        except CommitUnknownError:
            for record in self.page(PullRequestState.OPEN, None, _PAGE):
                if (record.branch, record.target, record.title) == (new.branch, new.target, new.title):
                    return record
            raise

    def page(self, state: PullRequestState | None, before: int | None, most: int) -> Sequence[PullRequestRecord]:
        """Some of them, newest first."""
        query = {"pageSize": str(most)}
        if state is not None:
            query["state"] = state.value
        if before is not None:
            query["before"] = str(before)
        about = CallSubject("pull requests", "")
        response = self._session.calls.call(protocol.LIST_PULL_REQUESTS, about, query=query)
        return self._session.calls.parsed(response, protocol.ListPullRequestsResponse, about).pull_requests

    def find(self, number: int) -> PullRequestRecord:
        """The record of one."""
        return self.overview(number).record

    def overview(self, number: int) -> PullRequestOverview:
        """The record of one, with what publishing would do now."""
        about = CallSubject(PULL_REQUEST, str(number))
        response = self._session.calls.call(protocol.LOAD_PULL_REQUEST, about, names={"number": str(number)})
        return self._session.calls.parsed(response, PullRequestOverview, about)

    def edit(self, number: int, title: str | None, description: str | None) -> PullRequestRecord:
        """Change its title or description."""
        return self._change(protocol.EDIT_PULL_REQUEST, number, protocol.EditPullRequest(title, description))

    def comment(self, number: int, text: str) -> PullRequestRecord:
        """Add a comment."""
        return self._change(protocol.COMMENT_PULL_REQUEST, number, protocol.CommentOnPullRequest(text))

    def approve(self, number: int, heads: tuple[TableHead, ...]) -> PullRequestRecord:
        """Approve heads."""
        return self._change(protocol.APPROVE_PULL_REQUEST, number, protocol.ApprovePullRequest(heads))

    def withdraw(self, number: int) -> PullRequestRecord:
        """Withdraw the caller's approval."""
        return self._change(protocol.WITHDRAW_PULL_REQUEST, number)

    def report_check(self, number: int, report: CheckOutcome) -> PullRequestRecord:
        """Record the result of a check."""
        return self._change(protocol.CHECK_PULL_REQUEST, number, report)

    def publish(self, number: int, publication: Publication) -> PullRequestRecord:
        """Publish in one commit; after a lost response, the pull request says whether it was published."""
        try:
            return self._change(protocol.PUBLISH_PULL_REQUEST, number, publication)
        except CommitUnknownError:
            now = self.find(number)
            if now.state is PullRequestState.PUBLISHED and now.published == publication.heads:
                return now
            raise

    def close(self, number: int) -> PullRequestRecord:
        """Close it."""
        return self._change(protocol.CLOSE_PULL_REQUEST, number)

    def reopen(self, number: int) -> PullRequestRecord:
        """Reopen it."""
        return self._change(protocol.REOPEN_PULL_REQUEST, number)

    def _change(self, endpoint: Endpoint, number: int | None, body: Any = None) -> PullRequestRecord:
        about = CallSubject(PULL_REQUEST, "" if number is None else str(number))
        names = None if number is None else {"number": str(number)}
        try:
            done: PullRequestRecord = self._session.calls.change(endpoint, about, names=names, body=body).content
        except ChangeInDoubtError as error:
            raise CommitUnknownError(
                f"cannot find out whether {about} was changed: {error}",
                table=str(about),
                metadata_location=None,
                hints=["look at it before you try again"],
            ) from error
        return done
