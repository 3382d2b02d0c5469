"""Routing, headers, sign-in, forms and errors of the console."""

import re
import threading
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.console.pages import registry
from bergline.console.pages.registry import PAGES, PageEntry
from support.servers.asgi_client import TOKEN


@pytest.mark.parametrize("path", ["table/rows", "table/actions", "table/actions/merge", "audit"])
def test_page_has_a_twin_with_the_same_values(browser: Any, story: Table, path: str) -> None:
    page = browser.get(f"/{path}", name="db.orders")
    assert page.status == 200
    twin = re.search(r'href="([^"]*)">This page as JSON', page.text)
    assert twin
    assert twin[1] == f"/{path}.json?name=db.orders"
    found = browser.get(f"/{path}.json", name="db.orders")
    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    assert found.json["table"] == "db.orders"


def test_every_response_is_locked_down(browser: Any, story: Table) -> None:
    for path in ("/table/rows", "/nothing", "/static/console.css", "/audit.json"):
        headers = browser.get(path, name="db.orders").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert browser.get("/audit").headers["cache-control"] == "no-store"


def test_page_has_nothing_inline_and_nothing_from_outside(browser: Any, story: Table) -> None:
    for path in ("/table/rows", "/audit", "/table/actions/merge", "/nothing"):
        text = browser.get(path, name="db.orders").text
        assert not re.search(r"<script|<style|\son\w+=|\sstyle=|https?://", text)


def test_query_may_have_any_name(browser: Any, story: Table) -> None:
    page = browser.get("/table/rows", name="db.orders", path="x", table="y", self="z")
    assert page.status == 200
    assert 'href="/table/rows.json?name=db.orders&amp;path=x&amp;table=y&amp;self=z"' in page.text


def test_head_has_the_headers_and_no_body(browser: Any, story: Table) -> None:
    page = browser.get("/table/rows", method="HEAD", name="db.orders")
    assert (page.status, page.body) == (200, b"")
    assert int(page.headers["content-length"]) > 500


def test_what_is_not_there_is_a_page_that_says_so(browser: Any, story: Table) -> None:
    assert browser.get("/table/nothing").status == 404
    page = browser.get("/table/rows", name="db.ordres")
    assert page.status == 404
    assert "no table `db.ordres`" in page.text
    assert browser.get("/table/rows.json", name="db.ordres").json["error"]["status"] == 404
    assert browser.get("/table/rows").status == 400
    assert browser.get("/table/actions/nothing", name="db.orders").status == 404
    assert (
        browser.post("/audit", csrf=browser.get("/table/actions/merge", name="db.orders").field("csrf")).status == 405
    )
    assert browser.get("/audit", method="DELETE").status == 405


def test_bug_of_ours_is_a_page_without_internals(
    browser: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> Any:
        raise RuntimeError("a secret path")

    monkeypatch.setitem(registry.PAGES, "audit", PageEntry(fail))
    page = browser.get("/audit")
    assert page.status == 500
    assert "secret" not in page.text
    assert "a secret path" in caplog.text


def test_hostile_names_are_escaped_everywhere(browser: Any, story: Table) -> None:
    bad = "<script>alert('x')</script>\"&\u202e"
    story.refs.create_branch(bad)
    for path in ("/table/rows", "/table/actions/merge", "/audit"):
        for query in ({"name": "db.orders", "ref": bad, "filter": bad, "who": bad}, {"name": f"db.{bad}"}):
            assert "<script" not in browser.get(path, **query).text
    review = browser.review("drop-ref", ref=bad)
    assert review.status == 200
    assert "<script" not in review.text


def test_tabs_lead_to_the_other_pages_of_the_table(browser: Any, story: Table) -> None:
    text = browser.get("/table/rows", name="db.orders").text
    for path, entry in PAGES.items():
        if entry.tab:
            assert f'href="/{path}?name=db.orders"' in text
    assert 'aria-current="page">Rows<' in text


def test_console_has_its_own_paths_only(browser: Any) -> None:
    has = browser.console.has
    assert all(
        has(path) for path in ("/", "/lake.json", "/table", "/table/rows.json", "/static/x", "/sign-in", "/audit")
    )
    assert not any(has(path) for path in ("/v1/config", "/health", "/metrics", "/v1/namespaces/table/tables"))


def test_form_that_is_too_large_is_refused(browser: Any, story: Table) -> None:
    page = browser.post("/table/actions/merge", csrf="x" * 70_000)
    assert page.status == 400
    assert "up to 65536 bytes" in page.text


def test_full_house_says_so(browser: Any, story: Table) -> None:
    threads = browser.console._threads
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_room", threading.Semaphore(0))
        page = browser.get("/audit")
    assert (page.status, "too many pages at once: nothing was changed" in page.text) == (503, True)
    assert browser.get("/audit").status == 200


class TestSignIn:
    """With a token."""

    @pytest.fixture
    def host(self, host: Any) -> Any:
        host.token = TOKEN
        return host

    def test_stranger_is_asked_for_a_token_and_comes_back_to_the_page(self, browser: Any, story: Table) -> None:
        asked = browser.get("/table/rows", name="db.orders")
        assert (asked.status, asked.headers["location"]) == (303, "/sign-in?next=%2Ftable%2Frows%3Fname%3Ddb.orders")
        form = browser.get("/sign-in", next="/table/rows?name=db.orders")
        assert form.status == 200
        wrong = browser.post("/sign-in", csrf=form.field("csrf"), token=f"{TOKEN}x", next="/audit")
        assert wrong.status == 401
        assert "not accepted" in wrong.text
        right = browser.post("/sign-in", csrf=form.field("csrf"), token=TOKEN, next="/table/rows?name=db.orders")
        assert (right.status, right.headers["location"]) == (303, "/table/rows?name=db.orders")
        (cookie,) = right.set_cookies
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        page = browser.get("/table/rows", name="db.orders")
        assert page.status == 200
        assert "Signed in as" in page.text
        assert TOKEN not in page.text

    def test_sign_out_forgets_the_token(self, browser: Any, story: Table) -> None:
        browser.post("/sign-in", csrf=browser.get("/sign-in").field("csrf"), token=TOKEN)
        assert browser.get("/sign-out").status == 405
        page = browser.get("/audit")
        assert browser.post("/sign-out", csrf=page.field("csrf")).headers["location"] == "/"
        assert browser.get("/audit").status == 303
        assert not any("token" in name for name in browser.cookies)

    def test_cookie_is_secure_under_https(self, browser: Any) -> None:
        browser.scheme = "https"
        signed = browser.post("/sign-in", csrf=browser.get("/sign-in").field("csrf"), token=TOKEN)
        assert "Secure" in signed.set_cookies[0].split("; ")

    @pytest.mark.parametrize("elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil"])
    def test_sign_in_leads_to_no_other_site(self, browser: Any, elsewhere: str) -> None:
        form = browser.get("/sign-in", next=elsewhere)
        signed = browser.post("/sign-in", csrf=form.field("csrf"), token=TOKEN, next=elsewhere)
        assert (form.field("next"), signed.headers["location"]) == ("/", "/")

    def test_programs_show_their_token_in_a_header(self, browser: Any, story: Table) -> None:
        refused = browser.get("/table/rows.json", name="db.orders")
        assert (refused.status, refused.json["error"]["message"]) == (401, "the token is not accepted")
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert browser.get("/table/rows.json", headers=bearer, name="db.orders").status == 200

    def test_change_without_a_token_is_refused(self, browser: Any, story: Table, lake: Lake) -> None:
        csrf = browser.get("/sign-in").field("csrf")
        assert browser.post("/table/actions/create-tag", csrf=csrf, name="db.orders", new="v2").status == 401
        assert "v2" not in lake.load_table("db.orders").refs


class TestForms:
    """Whose forms are accepted."""

    @pytest.mark.parametrize(
        "headers",
        [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
    )
    def test_form_of_another_site_is_refused(self, browser: Any, story: Table, headers: dict[str, str]) -> None:
        csrf = browser.get("/table/actions/create-tag", name="db.orders").field("csrf")
        refused = browser.post("/table/actions/create-tag", headers, csrf=csrf, name="db.orders", new="v2")
        assert refused.status == 403
        assert "another site" in refused.text

    def test_form_without_the_secret_of_this_browser_is_refused(self, browser: Any, story: Table) -> None:
        assert browser.post("/table/actions/create-tag", name="db.orders", new="v2").status == 403
        csrf = browser.get("/table/actions/create-tag", name="db.orders").field("csrf")
        browser.cookies.clear()
        assert browser.post("/table/actions/create-tag", csrf=csrf, name="db.orders", new="v2").status == 403
        browser.get("/audit")
        assert browser.post("/table/actions/create-tag", csrf=csrf, name="db.orders", new="v2").status == 403

    def test_own_form_is_accepted(self, browser: Any, story: Table) -> None:
        csrf = browser.get("/table/actions/create-tag", name="db.orders").field("csrf")
        headers = {"origin": "http://localhost:8181", "sec-fetch-site": "same-origin"}
        assert browser.post("/table/actions/create-tag", headers, csrf=csrf, name="db.orders", new="v2").status == 200


def test_twin_of_a_broken_request_is_json_too(browser: Any, story: Table) -> None:
    found = browser.get("/table.json", **{f"field{number}": "" for number in range(300)})
    assert (found.status, found.headers["content-type"]) == (400, "application/json")
    assert "fields in UTF-8" in found.text
