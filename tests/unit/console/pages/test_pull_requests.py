"""The pages of pull requests, and what is done on them."""

import html
from typing import Any

import msgspec
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.protection.caller import acting_as
from bergline.console.page import Source
from bergline.console.pages.pull_requests import pull_requests_page

ONE = {"number": "1"}


@pytest.fixture
def opened(lake: Lake, story: Table) -> Table:
    """Bob's pull request of `audit`, which ann looks at."""
    with acting_as("bob"):
        lake.pull_requests.open("audit", title="<b>Rows</b>", description="of May")
    return story


def act(browser: Any, action: str, **form: str) -> Any:
    """Press a button of the page as it was shown last."""
    page = browser.get("/pull-requests", **ONE)
    carried = {key: html.unescape(page.field(key)) for key in ("csrf", "number")}
    if action in {"approve", "publish"}:
        carried |= {key: html.unescape(page.field(key)) for key in ("version", "heads")}
    return browser.post(f"/pull-requests/{action}", **(carried | form))


def test_list_has_those_of_a_state(source: Source, lake: Lake, opened: Table) -> None:
    values = pull_requests_page(source, {}).values
    assert [(r["number"], r["branch"], r["author"]) for r in values["pull_requests"]] == [(1, "audit", "bob")]
    assert pull_requests_page(source, {"state": "closed"}).values["pull_requests"] == []
    assert len(pull_requests_page(source, {"state": "all"}).values["pull_requests"]) == 1


def test_page_shows_what_it_would_do(source: Source, browser: Any, opened: Table) -> None:
    values = pull_requests_page(source, ONE).values
    (change,) = values["changes"]
    assert (change["standing"], change["summary"]) == ("fast-forward", "fast-forward, 1 snapshot, +1 row in 1 file")
    page = browser.get("/pull-requests", **ONE)
    assert (page.status, "<b>Rows" in page.text, "Nothing stands in the way" in page.text) == (200, False, True)
    assert browser.get("/pull-requests.json", **ONE).json["changes"][0]["head"] == change["head"]


def test_what_is_approved_and_published_is_what_was_shown(browser: Any, host: Any, lake: Lake, opened: Table) -> None:
    before = browser.get("/pull-requests", **ONE)
    assert act(browser, "approve").status == 303
    assert browser.get("/pull-requests.json", **ONE).json["approved_by"] == ["ann"]
    opened.refs.protect("main", approvals=1)
    own = "ann (does not count: who publishes it cannot approve it)"
    assert f"Approved by <bdi>{own}</bdi>." in browser.get("/pull-requests", **ONE).text
    opened.refs.unprotect("main")
    assert act(browser, "comment", text="fine").status == 303
    seen = {key: html.unescape(before.field(key)) for key in ("version", "heads")}
    stale = act(browser, "publish", method="fast-forward", **seen)
    assert (stale.status, "has changed since you looked at it" in stale.text) == (409, True)
    done = act(browser, "publish", method="fast-forward")
    assert (done.status, done.headers["location"]) == (303, "/pull-requests?number=1")
    assert "audit" not in lake.load_table("db.orders").refs
    assert host.changes[-1] == ("ann", "publish", "1")
    assert "published by fast-forward" in browser.get("/pull-requests", **ONE).text


def test_approval_is_withdrawn_and_a_closed_one_reopened(browser: Any, opened: Table) -> None:
    act(browser, "approve")
    assert act(browser, "withdraw").status == 303
    assert act(browser, "close").status == 303
    assert browser.get("/pull-requests.json", **ONE).json["state"] == "closed"
    assert act(browser, "reopen").status == 303
    assert [e["what"] for e in browser.get("/pull-requests.json", **ONE).json["history"]] == [
        "opened",
        "approved",
        "withdrew",
        "closed",
        "reopened",
    ]


def test_what_is_wrong_is_said_and_nothing_done(browser: Any, opened: Table) -> None:
    assert browser.get("/pull-requests", number="9").status == 404
    assert browser.get("/pull-requests", number="x").status == 400
    assert browser.get("/pull-requests/approve").status == 405
    assert browser.post("/pull-requests/approve", number="1").status == 403
    assert act(browser, "nothing").status == 404
    assert act(browser, "approve", heads="[1]").status == 400
    assert act(browser, "publish", method="rebase").status == 400
    assert act(browser, "withdraw").status == 404
    assert browser.get("/pull-requests.json", **ONE).json["version"] == 1


def test_groups_of_who_looks_count(source: Source, opened: Table) -> None:
    opened.refs.protect("main", writers=["group:dev"])
    for groups, obstacles in ({"dev"}, 0), (set[str](), 1):
        of_group = msgspec.structs.replace(source, groups=frozenset(groups))
        assert len(pull_requests_page(of_group, ONE).values["obstacles"]) == obstacles


def test_branch_that_is_gone_is_said(browser: Any, opened: Table) -> None:
    opened.refs.drop_branch("audit")
    page = browser.get("/pull-requests", **ONE)
    assert (page.status, "is gone" in page.text) == (200, True)


def test_catalog_without_pull_requests_says_so() -> None:
    with bergline.connect("memory:") as lake:
        found = pull_requests_page(Source(lake, 0), {}).values
    assert "with pull requests" in found["problem"]["message"]
