"""The console at a ref of the lake: the switch, what pages show there, and what may be done."""

import re
from typing import Any
from urllib.parse import unquote

import pytest

from bergline import Lake, Table
from bergline.console.actions.registry import ACTIONS
from bergline.console.pages.registry import PAGES
from support.servers.console_browser import ConsoleBrowser, Seen, rows

AUDIT, TAG, TIME = "/branch.audit", "/tag.v1", "/time.2026-01-01T00~3A00~3A00.000Z"


def ids(page: Seen) -> list[int]:
    return sorted(row[0] for row in page.json["rows"])


@pytest.mark.parametrize(("name", "at"), [("audit", AUDIT), ("v1", TAG), ("2026-01-01T00:00:00Z", TIME), ("main", "")])
def test_switch_leads_to_the_same_page_at_the_ref(browser: ConsoleBrowser, story: Table, name: str, at: str) -> None:
    page = browser.get(f"{AUDIT}/table/rows", name="db.orders", limit="7")
    here = unquote(page.field("page").replace("&amp;", "&"))
    assert here == "/table/rows?name=db.orders&limit=7"
    switched = browser.get("/at", at=name, page=here)
    assert (switched.status, switched.headers["location"]) == (303, f"{at}{here}")


def test_pages_show_the_tables_as_they_are_at_the_ref(browser: ConsoleBrowser, story: Table) -> None:
    assert ids(browser.get("/table/rows.json", name="db.orders")) == [1, 2, 3]
    assert ids(browser.get(f"{AUDIT}/table/rows.json", name="db.orders")) == [1, 2, 3, 4]
    assert ids(browser.get(f"{TAG}/table/rows.json", name="db.orders")) == [1, 2]
    (line,) = browser.get(f"{AUDIT}/lake.json").json["tables"]
    assert line["totals"]["rows"] == 4


@pytest.mark.parametrize("at", [AUDIT, TAG])
def test_all_links_and_forms_of_a_page_stay_at_its_ref(browser: ConsoleBrowser, story: Table, at: str) -> None:
    snapshot = str(story.refs["v1"].snapshot_id)
    for path in [*PAGES, "table/actions/create-tag"]:
        page = browser.get(f"{at}/{path}", name="db.orders", id=snapshot)
        assert page.status == (403 if at == TAG and path == "table/actions/create-tag" else 200), path
        switch = re.search(r'<section class="at.*?</section>', page.text, re.DOTALL)
        assert switch
        assert "back to main" in switch[0]
        others = re.findall(r'(?:href|action)="(/[^"]*)"', page.text.replace(switch[0], ""))
        assert len(others) > 7
        assert {link for link in others if not link.startswith((f"{at}/", "/static/"))} == set(), path


def test_ref_that_is_nowhere_lists_near_ones_and_leads_to_main(browser: ConsoleBrowser, story: Table) -> None:
    for page in (browser.get("/at", at="audti"), browser.get("/branch.audti/table", name="db.orders")):
        assert page.status == 404
        assert "no branch or tag `audti`" in page.text
        assert "`audit`" in page.text
        assert '<a href="/">Back to the lake</a>' in page.text
    assert browser.get("/branch.audti/audit.json").json["error"]["status"] == 404
    for bad in ("/time.yesterday/", "/branch.~zz/", "/tag.main/"):
        assert browser.get(bad).status == 400, bad
    assert browser.get("/at", at="2026-13-41T00:00:00Z").status == 400


def test_branch_that_was_a_tag_when_the_link_was_made_is_found(browser: ConsoleBrowser, story: Table) -> None:
    page = browser.get("/tag.audit/table", name="db.orders")
    assert page.status == 200
    assert 'href="/branch.audit/table/rows?name=db.orders"' in page.text


def test_address_of_another_site_is_no_page(browser: ConsoleBrowser, story: Table) -> None:
    assert browser.get("/at", at="audit", page="//elsewhere.example/").headers["location"] == f"{AUDIT}/"
    assert browser.get("/at", at="main", page="//elsewhere.example/").headers["location"] == "/"
    assert '"//elsewhere' not in browser.get(f"{AUDIT}//elsewhere.example/").text


def test_action_at_a_branch_changes_the_branch(browser: ConsoleBrowser, story: Table, lake: Lake) -> None:
    before = story.refs["main"]
    csrf = browser.get(f"{AUDIT}/table/actions/merge", name="db.orders").field("csrf")
    answers = {"csrf": csrf, "name": "db.orders", "branch": "fork", "into": "main"}
    review = browser.post(f"{AUDIT}/table/actions/merge", **answers)
    assert review.status == 200
    assert "lake = lake.at(&#39;audit&#39;)" in review.text
    answers |= {key: review.field(key) for key in ("confirm", "moment")}
    assert browser.post(f"{AUDIT}/table/actions/merge", **answers).status == 200
    assert story.refresh().refs["main"] == before
    assert ids(browser.get("/table/rows.json", name="db.orders", ref="audit")) == [1, 2, 3, 4, 5]


def test_main_at_a_branch_has_the_rules_of_that_branch(browser: ConsoleBrowser, story: Table) -> None:
    story.refs.protect("audit", writers=["ann"])
    refs = browser.get(f"{AUDIT}/table.json", name="db.orders").json["refs"]
    assert {ref["name"] for ref in refs if ref["rules"]} == {"main", "audit"}
    story.refs.unprotect("audit")
    story.refs.protect("main", writers=["ann"])
    refs = browser.get(f"{AUDIT}/table.json", name="db.orders").json["refs"]
    assert {ref["name"] for ref in refs if ref["rules"]} == {"lake_main"}


def test_real_main_is_not_moved_from_a_branch(browser: ConsoleBrowser, story: Table) -> None:
    form = browser.get(f"{AUDIT}/table/actions/merge", name="db.orders")
    into = re.search(r'<select id="into".*?</select>', form.text, re.DOTALL)
    assert into
    assert re.findall(r"<option[^>]*>([^<]*)<", into[0]) == ["main", "fork"]
    answers = {"csrf": form.field("csrf"), "name": "db.orders", "branch": "main", "into": "lake_main"}
    review = browser.post(f"{AUDIT}/table/actions/merge", **answers)
    assert review.status == 403
    assert "move the real `main`" in review.text


def test_what_cannot_be_done_is_not_offered_and_refused(browser: ConsoleBrowser, story: Table) -> None:
    csrf = browser.get("/table/actions/merge", name="db.orders").field("csrf")
    offered = browser.get(f"{AUDIT}/table/actions.json", name="db.orders").json["actions"]
    assert {action["key"] for action in offered} == set(ACTIONS) - {"expire"}
    assert "read only" in browser.get(f"{TAG}/table/actions", name="db.orders").text
    assert "/table/actions/" not in browser.get(f"{TAG}/table/retention", name="db.orders").text
    for at, key in ((AUDIT, "expire"), (TAG, "create-tag"), (TIME, "merge")):
        refused = browser.post(f"{at}/table/actions/{key}", csrf=csrf, name="db.orders")
        assert refused.status == 403, at
    assert browser.get(f"{AUDIT}/trash/undrop", kind="table", name="db.orders").status == 403


def test_table_that_is_not_at_the_tag_is_told_from_a_broken_one(
    browser: ConsoleBrowser, story: Table, lake: Lake
) -> None:
    lake.create_table("db.new", rows().schema)
    (new, orders) = browser.get(f"{TAG}/lake.json").json["tables"]
    assert (new["is_gone"], orders["is_gone"]) == (True, False)
    page = browser.get(f"{TAG}/table", name="db.new")
    assert page.status == 404
    assert "no table `db.new` at tag `v1`" in page.text
    assert f'href="{TAG}/"' in page.text
    assert '<a href="/table?name=db.new">back to main</a>' in page.text


def test_whole_pages_are_the_same_at_all_refs(browser: ConsoleBrowser, story: Table) -> None:
    for path in (path for path, entry in PAGES.items() if entry.is_at_all_refs):
        on_main, at_tag = (browser.get(f"{at}/{path}.json", name="db.orders").json for at in ("", TAG))
        changes = {"may_change": False} if "may_change" in on_main else {}
        assert at_tag == on_main | changes, path
        assert "the same at all refs" in browser.get(f"{TAG}/{path}", name="db.orders").text


def test_ref_is_found_beside_a_table_that_cannot_be_read(browser: ConsoleBrowser, story: Table, lake: Lake) -> None:
    broken: Any = lake.create_table("db.broken", rows().schema)
    lake.catalog.io.delete(broken.metadata_location)
    assert browser.get("/at", at="audit").status == 303
    assert browser.get(f"{AUDIT}/").status == 200
