"""Pull requests over REST: the bodies of requests and responses, and the endpoints."""

import msgspec

from bergline.catalog.rest.protocol.endpoints import OWN, PAGES, Endpoint, endpoints_in
from bergline.governance.pull_requests.model import (
    CheckOutcome,
    NewPullRequest,
    Publication,
    PullRequestOverview,
    PullRequestRecord,
    TableHead,
)


class ListPullRequestsResponse(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Pull requests, newest first, and the token of the next page, if any."""

    pull_requests: tuple[PullRequestRecord, ...]
    next_page_token: str | None = None


class EditPullRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The new title or description of a pull request; what is left out stays."""

    title: str | None = None
    description: str | None = None


class CommentOnPullRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """A comment on a pull request."""

    text: str


class ApprovePullRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The heads of all tables, as the approver saw them."""

    heads: tuple[TableHead, ...]


_PULLS = f"{OWN}/pull-requests"
_PULL = f"{_PULLS}/{{number}}"
LIST_PULL_REQUESTS = Endpoint(
    "list_pull_requests", "GET", _PULLS, response=ListPullRequestsResponse, queries=("state", "before", *PAGES)
)
OPEN_PULL_REQUEST = Endpoint("open_pull_request", "POST", _PULLS, NewPullRequest, PullRequestRecord, takes_key=True)
LOAD_PULL_REQUEST = Endpoint("load_pull_request", "GET", _PULL, response=PullRequestOverview)
EDIT_PULL_REQUEST = Endpoint("edit_pull_request", "POST", _PULL, EditPullRequest, PullRequestRecord, takes_key=True)
COMMENT_PULL_REQUEST = Endpoint(
    "comment_pull_request", "POST", f"{_PULL}/comments", CommentOnPullRequest, PullRequestRecord, takes_key=True
)
APPROVE_PULL_REQUEST = Endpoint(
    "approve_pull_request", "POST", f"{_PULL}/approve", ApprovePullRequest, PullRequestRecord, takes_key=True
)
WITHDRAW_PULL_REQUEST = Endpoint(
    "withdraw_pull_request", "POST", f"{_PULL}/withdraw", response=PullRequestRecord, takes_key=True
)
CHECK_PULL_REQUEST = Endpoint(
    "check_pull_request", "POST", f"{_PULL}/checks", CheckOutcome, PullRequestRecord, takes_key=True
)
PUBLISH_PULL_REQUEST = Endpoint(
    "publish_pull_request", "POST", f"{_PULL}/publish", Publication, PullRequestRecord, takes_key=True
)
CLOSE_PULL_REQUEST = Endpoint(
    "close_pull_request", "POST", f"{_PULL}/close", response=PullRequestRecord, takes_key=True
)
REOPEN_PULL_REQUEST = Endpoint(
    "reopen_pull_request", "POST", f"{_PULL}/reopen", response=PullRequestRecord, takes_key=True
)

PULL_REQUEST_ENDPOINTS = endpoints_in(vars())
