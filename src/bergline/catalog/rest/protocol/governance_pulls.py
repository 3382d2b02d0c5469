"""Bodies of requests and responses about pull requests."""

import msgspec

from bergline.catalog.pull_requests import PullRequestRecord, TableHead


class ListPullRequestsResponse(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Pull requests, newest first, and the token of the next page, if any."""

    pull_requests: tuple[PullRequestRecord, ...]
    next_page_token: str | None = None


class EditPullRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a pull request says about itself from now on; what is left out stays."""

    title: str | None = None
    description: str | None = None


class CommentOnPullRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """Something to say about a pull request."""

    text: str


class ApprovePullRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The heads of all tables, as the approver saw them."""

    heads: tuple[TableHead, ...]
