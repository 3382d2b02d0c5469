"""Pull requests over HTTP: each change is recorded with its response in its own transaction."""

from bergline.catalog.protection.caller import acting_as
from bergline.catalog.rest.protocol.names import decode_name
from bergline.errors import InvalidInputError
from bergline.governance.pull_requests.granted import GrantedPullRequests
from bergline.governance.pull_requests.model import (
    CheckOutcome,
    NewPullRequest,
    Publication,
    PullRequestState,
)
from bergline.governance.pull_requests.protocol import (
    ApprovePullRequest,
    CommentOnPullRequest,
    EditPullRequest,
    ListPullRequestsResponse,
)
from bergline.lake.handle import LakeHandle
from bergline.lake.pull_requests import pull_request_calls
from bergline.server.context.context import ServerContext
from bergline.server.http.paging import page_token, requested_page
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response
from bergline.table.commits.retry import Timing

_PAGE = 1000
_MOST_DIGITS = 9


def list_pull_requests(context: ServerContext, request: Request) -> Response:
    """Some of them, newest first: after a page, or those with a lower number."""
    page = requested_page(request.query, 1)
    size = _PAGE if page is None else min(page.size, _PAGE)
    after = request.query.get("before") if page is None or page.after is None else page.after[0]
    before = None if after is None else _whole(after)
    found = _calls(context, request).page(_state(request), before, size + 1)
    token = page_token(str(found[size - 1].number)) if len(found) > size else None
    return json_response(ListPullRequestsResponse(tuple(found[:size]), token))


def open_pull_request(context: ServerContext, request: Request) -> Response:
    """A new one."""
    body: NewPullRequest = request.read()
    return json_response(_calls(context, request).open(body))


def load_pull_request(context: ServerContext, request: Request) -> Response:
    """One, with what it would do now if the caller published it."""
    with acting_as(request.principal, request.groups):
        return json_response(_calls(context, request).overview(_number(request)))


def edit_pull_request(context: ServerContext, request: Request) -> Response:
    """Another title or description."""
    body: EditPullRequest = request.read()
    return json_response(_calls(context, request).edit(_number(request), body.title, body.description))


def comment_pull_request(context: ServerContext, request: Request) -> Response:
    """A comment."""
    body: CommentOnPullRequest = request.read()
    return json_response(_calls(context, request).comment(_number(request), body.text))


def approve_pull_request(context: ServerContext, request: Request) -> Response:
    """An approval of the heads that the caller saw."""
    body: ApprovePullRequest = request.read()
    return json_response(_calls(context, request).approve(_number(request), body.heads))


def withdraw_pull_request(context: ServerContext, request: Request) -> Response:
    """An approval taken back."""
    return json_response(_calls(context, request).withdraw(_number(request)))


def check_pull_request(context: ServerContext, request: Request) -> Response:
    """What a check says."""
    body: CheckOutcome = request.read()
    return json_response(_calls(context, request).report_check(_number(request), body))


def publish_pull_request(context: ServerContext, request: Request) -> Response:
    """All tables published in one commit."""
    body: Publication = request.read()
    return json_response(_calls(context, request).publish(_number(request), body))


def close_pull_request(context: ServerContext, request: Request) -> Response:
    """Given up."""
    return json_response(_calls(context, request).close(_number(request)))


def reopen_pull_request(context: ServerContext, request: Request) -> Response:
    """Taken up again."""
    return json_response(_calls(context, request).reopen(_number(request)))


def _calls(context: ServerContext, request: Request) -> GrantedPullRequests:
    calls = pull_request_calls(LakeHandle(context.catalog, Timing()))
    return GrantedPullRequests(calls, context.catalog, context.access, request.principal, request.groups)


def _number(request: Request) -> int:
    return _whole(decode_name(request.names["number"]))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InvalidInputError(f"expected the number of a pull request, found `{text[:40]}`")
    return int(text)


def _state(request: Request) -> PullRequestState | None:
    text = request.query.get("state")
    if text is None:
        return None
    try:
        return PullRequestState(text)
    except ValueError:
        names = ", ".join(PullRequestState)
        raise InvalidInputError(f"expected one of {names} for `state`, found `{text[:40]}`") from None
