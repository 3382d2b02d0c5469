"""What may be done to a pull request: each form carries what its page showed, and exactly that is done."""

from collections.abc import Callable, Mapping

import msgspec

from bergline.arguments import shown
from bergline.catalog.identifiers import TableName
from bergline.console.links import name_text, parse_name
from bergline.errors import InvalidInputError
from bergline.governance.pull_requests.pull_requests import PullRequest

PullRequestForm = Mapping[str, str]
_Shown = tuple[tuple[str, str], ...]
_MOST_DIGITS = 9


def asked_pull_request(fields: Mapping[str, str]) -> int:
    """The number that a query or form names."""
    return _whole(fields.get("number", ""), "the number of a pull request")


def shown_heads(heads: Mapping[TableName, int]) -> str:
    """Heads as a form carries them."""
    return msgspec.json.encode([(name_text(table), str(head)) for table, head in heads.items()]).decode()


def _approve(request: PullRequest, form: PullRequestForm) -> PullRequest:
    return request.approve(heads=_heads(form))


def _publish(request: PullRequest, form: PullRequestForm) -> PullRequest:
    return request.publish(
        method=form.get("method", ""),
        keep_branch=bool(form.get("keep_branch")),
        heads=_heads(form),
        version=_whole(form.get("version", ""), "the version of a pull request"),
    )


PULL_REQUEST_ACTIONS: dict[str, Callable[[PullRequest, PullRequestForm], PullRequest]] = {
    "comment": lambda request, form: request.comment(form.get("text", "")),
    "approve": _approve,
    "withdraw": lambda request, _: request.withdraw(),
    "publish": _publish,
    "close": lambda request, _: request.close(),
    "reopen": lambda request, _: request.reopen(),
}
"""By the last part of their address."""


def _heads(form: PullRequestForm) -> dict[TableName, int]:
    try:
        return {parse_name(table): int(head) for table, head in msgspec.json.decode(form.get("heads", ""), type=_Shown)}
    except (msgspec.MsgspecError, ValueError):
        raise InvalidInputError(
            f"expected the heads that the page showed, found {shown(form.get('heads', ''))}"
        ) from None


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InvalidInputError(f"expected {what}, found {shown(text)}")
    return int(text)
