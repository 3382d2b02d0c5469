"""Pull requests: a list of them, and one with what it would do, its reviews, and what stands in its way."""

from typing import Any

from bergline.catalog.protection.caller import acting_as
from bergline.console.actions.pull_requests import asked_pull_request, shown_heads
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery, Source
from bergline.errors import BerglineError, UnsupportedError
from bergline.governance.pull_requests.model import EntryKind, PublishMethod, PullRequestState
from bergline.governance.pull_requests.report import (
    describe_approvals,
    describe_change,
    describe_entry,
    overview_values,
    record_values,
)

_MOST = 200
_ALL = "all"


def pull_requests_page(source: Source, query: PageQuery) -> Page:
    """All of one state, newest first; with a number, that one."""
    if query.get("number"):
        return pull_request_page(source, asked_pull_request(query))
    state = query.get("state") or PullRequestState.OPEN.value
    values: dict[str, Any] = {"state": state, "states": [*PullRequestState, _ALL], "pull_requests": [], "more": False}
    values["problem"] = None
    try:
        found = source.lake.pull_requests.list(None if state == _ALL else state, limit=_MOST + 1)
    except UnsupportedError as error:
        values["problem"] = {"message": str(error), "hints": list(error.hints)}
    else:
        values["pull_requests"] = [record_values(request.record) for request in found[:_MOST]]
        values["more"] = len(found) > _MOST
    return Page("Pull requests", "pull_requests.html", values)


def pull_request_page(source: Source, number: int, refusal: BerglineError | None = None) -> Page:
    """One as it is now; `refusal` is why what was asked for was not done."""
    with acting_as(source.caller, source.groups):
        overview = source.lake.pull_requests.get(number).overview
    changes = [{"key": name_text(change.name), "summary": describe_change(change)} for change in overview.tables]
    values = overview_values(overview)
    values |= {
        "changes": [told | more for told, more in zip(values["changes"], changes, strict=True)],
        "history": [
            entry | {"line": describe_entry(told), "is_comment": told.what is EntryKind.COMMENTED}
            for entry, told in zip(values["history"], overview.history, strict=True)
        ],
        "heads": shown_heads({head.name: head.snapshot_id for head in overview.heads}),
        "methods": list(PublishMethod),
        "is_author": source.caller == overview.record.author,
        "approvals": describe_approvals(overview),
        "approves": source.caller in overview.approved_by,
        "refusal": None if refusal is None else {"message": str(refusal), "hints": list(refusal.hints)},
    }
    return Page(f"{overview.record.title} · pull request {number}", "pull_request.html", values)
