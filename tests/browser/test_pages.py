"""The pages of the console in a real browser: dark and light, narrow, by keyboard, without scripts, hostile."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import bergline
from bergline import Lake
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.console.actions.registry import ACTIONS
from bergline.console.pages.registry import PAGES
from bergline.governance.webhooks.client import RestWebhooks
from bergline.governance.webhooks.protocol import CreateWebhookRequest
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.webhook_job import WebhookJob
from support.servers.accessibility import check_accessible
from support.servers.asgi_client import TOKEN
from support.servers.console_stories import HOSTILE_TABLE, MANY, SCHEMA
from support.servers.server_on_socket import on_socket

Opener = Callable[..., Page]


def addresses(lake: Lake, table: str) -> Iterator[str]:
    """Every page of a lake, for one of its tables."""
    snapshot = lake.load_table(table).metadata.current_snapshot_id
    for path in PAGES:
        query = {"name": table, "id": str(snapshot)} if path.startswith("table") else {}
        yield f"/{path}?{urlencode(query)}"
    for key in ACTIONS:
        yield f"/table/actions/{key}?{urlencode({'name': table})}"


def visit(page: Page, address: str) -> None:
    response = page.goto(address)
    assert response
    assert response.status == 200, address


def has_horizontal_scroll(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits(
    open_page: Opener, address: str, lake_on_disk: Lake, tmp_path: Path, scheme: str
) -> None:
    width = {"light": 1280, "dark": 390}[scheme]
    page = open_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    for number, path in enumerate(addresses(lake_on_disk, "db.orders")):
        visit(page, address + path)
        check_accessible(page, path)
        assert not has_horizontal_scroll(page), path
        page.screenshot(path=tmp_path / f"{scheme}-{number:02}.png", full_page=True)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 22, 30)"}[scheme]
    assert len(list(tmp_path.glob("*.png"))) == len(PAGES) + len(ACTIONS)


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_pages_at_a_ref_are_accessible_and_have_its_color(
    open_page: Opener, address: str, lake_on_disk: Lake, tmp_path: Path, scheme: str, width: int
) -> None:
    page = open_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    snapshot = lake_on_disk.load_table("db.orders").metadata.current_snapshot_id
    colors = set()
    for at in ("/branch.audit", "/tag.v1"):
        for path in ("", "table", "table/rows", "table/snapshot", "table/actions", "trash"):
            query = urlencode({"name": "db.orders", "id": snapshot}) if path.startswith("table") else ""
            visit(page, f"{address}{at}/{path}?{query}")
            check_accessible(page, f"{at}/{path}")
            assert not has_horizontal_scroll(page), path
            colors.add(page.eval_on_selector(".at", "e => getComputedStyle(e).backgroundColor"))
            page.screenshot(path=tmp_path / f"{scheme}{at}-{path}.png".replace("/", "-"))
    assert len(colors) == 1
    visit(page, address)
    assert page.eval_on_selector(".at", "e => getComputedStyle(e).backgroundColor") not in colors


def test_ref_is_switched_without_scripts_and_kept_by_links(open_page: Opener, address: str) -> None:
    page = open_page(java_script_enabled=False, viewport={"width": 1000, "height": 800})
    visit(page, f"{address}/table/rows?name=db.orders")
    switch = page.get_by_role("region", name="Ref of the lake")
    switch.get_by_role("combobox").fill("audit")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{address}/branch.audit/table/rows?name=db.orders")
    page.get_by_role("navigation", name="Table").get_by_role("link", name="Difference").click()
    expect(page).to_have_url(f"{address}/branch.audit/table/difference?name=db.orders")
    switch.get_by_role("combobox").fill("v1")
    switch.get_by_role("button", name="Switch").click()
    expect(switch).to_contain_text("read only")
    switch.get_by_role("combobox").fill("nothing")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("no branch or tag `nothing`")
    check_no_failure(page)
    page.get_by_role("link", name="Back to the lake").click()
    expect(page).to_have_url(f"{address}/")


def test_hostile_names_stay_text_and_in_their_places(open_page: Opener, address: str, lake_on_disk: Lake) -> None:
    page = open_page(viewport={"width": 390, "height": 844}, color_scheme="light")
    for path in addresses(lake_on_disk, HOSTILE_TABLE):
        visit(page, address + path)
        assert page.locator("script").count() == 0, path
        assert page.locator("main b").count() == 0, path
        assert not has_horizontal_scroll(page), path
    page.goto(address)
    page.get_by_role("link", name=HOSTILE_TABLE).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE_TABLE)


def test_pages_work_without_scripts_by_keyboard(open_page: Opener, address: str) -> None:
    page = open_page(java_script_enabled=False, viewport={"width": 1000, "height": 800})
    visit(page, address)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    page.get_by_label("Search tables").focus()
    page.keyboard.type("orders")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="db.orders").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("db.orders")
    snapshot = page.locator("svg a").first
    snapshot.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Snapshot")


def test_rows_are_filtered_and_a_wrong_filter_is_said_beside_the_box(page: Page, address: str) -> None:
    visit(page, f"{address}/table/rows?name=db.orders")
    page.get_by_label("Branch or tag").select_option("fork")
    page.get_by_label("Filter").fill("id > 1")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Filter").fill("id >")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("cannot read the filter")
    assert page.get_by_label("Filter").get_attribute("aria-invalid") == "true"
    expect(page.get_by_label("Filter")).to_have_value("id >")


def test_two_thousand_snapshots_are_there_in_under_a_second(page: Page, address: str) -> None:
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def work_s() -> float:
        """What the server, in this process, and the browser's page have computed: other load on the machine is none."""
        metrics = {m["name"]: m["value"] for m in devtools.send("Performance.getMetrics")["metrics"]}
        return time.process_time() + float(metrics["TaskDuration"])

    took = []
    for _ in range(3):
        page.goto(f"{address}/static/icon.svg")
        start = work_s()
        visit(page, f"{address}/table?name=db.many&count={MANY}")
        took.append(work_s() - start)
    assert page.locator("svg a").count() == MANY
    assert 0 < min(took) < 1.0, took


def test_broken_and_empty_tables_are_shown_as_far_as_they_go(page: Page, address: str) -> None:
    visit(page, address)
    expect(page.get_by_role("row", name="db.broken")).to_contain_text("broken")
    for path in (p for p in PAGES if p.startswith("table") and p != "table/snapshot"):
        for name in ("db.broken", "db.empty"):
            response = page.goto(f"{address}/{path}?name={name}")
            assert response
            assert response.status in ({200} if name == "db.empty" else {200, 422}), (path, name)
            check_no_failure(page)


def check_no_failure(page: Page) -> None:
    assert "the console failed" not in page.inner_text("main")


def test_missing_page_is_one_that_leads_back(page: Page, address: str) -> None:
    response = page.goto(f"{address}/table?name=db.nothing")
    assert response
    assert response.status == 404
    check_accessible(page, "404")
    page.get_by_role("link", name="Back to the lake").click()
    expect(page).to_have_url(f"{address}/")


def test_token_signs_in_and_out(page: Page, guarded_address: str) -> None:
    page.goto(f"{guarded_address}/table/rows?name=db.orders")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    check_accessible(page, "sign-in")
    page.get_by_label("Token").fill("bl_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not accepted")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("db.orders")
    port = guarded_address.rpartition(":")[2]
    (token,) = [c for c in page.context.cookies() if c["name"] == f"bergline-token-{port}"]
    assert (token["httpOnly"], token["sameSite"]) == (True, "Strict")
    assert TOKEN not in page.evaluate("document.cookie")
    page.goto(f"{guarded_address}/table/actions/create-tag?name=db.orders")
    page.get_by_label("Name of the tag").fill("signed")
    page.get_by_role("button", name="Review").click()
    page.get_by_role("button", name="Create the tag").click()
    expect(page.get_by_role("status")).to_contain_text("signed")
    page.goto(f"{guarded_address}/audit")
    expect(page.locator("tbody tr").first).to_contain_text("ann")
    expect(page.locator("tbody tr").first).to_contain_text("bergline console: create-tag")
    check_accessible(page, "audit")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.parametrize("width", [1280, 390])
def test_events_and_webhooks_are_shown_without_secrets(open_page: Opener, tmp_path: Path, width: int) -> None:
    limits = ServerSettings(webhook_allow=("127.0.0.1",))
    served = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=limits)
    page = open_page(viewport={"width": width, "height": 844}, color_scheme="light")
    with on_socket(served) as port, bergline.connect(f"http://127.0.0.1:{port}") as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", SCHEMA)
        assert isinstance(lake.catalog, RestCatalog)
        webhook = CreateWebhookRequest("http://127.0.0.1:9/secret-path", after=0)
        made = RestWebhooks(lake.catalog.session).create(webhook)
        WebhookJob(served).run_once()
        visit(page, f"http://127.0.0.1:{port}/")
        page.get_by_role("link", name="Events").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        page.get_by_label("Table").fill("db.orders")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Events of db.orders")
        expect(page.locator("tbody tr")).to_contain_text(["table.create"])
        check_accessible(page, "events")
        page.get_by_role("link", name="Webhooks").click()
        expect(page.locator("tbody tr")).to_contain_text(["cannot reach the receiver"])
        check_accessible(page, "webhooks")
        assert not has_horizontal_scroll(page)
        assert made.secret not in page.content()
        assert "secret-path" not in page.content()
    served.catalog.close()
