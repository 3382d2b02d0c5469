"""A pull request in a real browser: looked at, approved, and published as it was shown."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

import bergline
from bergline.catalog.protection.caller import acting_as
from support.servers.accessibility import check_accessible
from support.servers.console_stories import shown, tell_story


def test_pull_request_is_reviewed_and_published(
    open_page: Callable[..., Page], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("pulls")
    with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        tell_story(lake, "db.orders").refs.create_branch("work")
        work = lake.load_table("db.orders")
        work.append(work.scan().to_arrow().slice(0, 1), branch="work")
        with acting_as("bob"):
            request = lake.pull_requests.open("work", title="One more row")
        with shown(lake) as address:
            page = open_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
            page.goto(address)
            page.get_by_role("link", name="Pull requests").click()
            page.get_by_role("link", name="One more row").click()
            check_accessible(page, "pull request")
            page.get_by_role("button", name="Approve").click()
            expect(page.get_by_role("button", name="Withdraw approval")).to_be_visible()
            page.get_by_label("Comment").fill("looks good")
            page.get_by_role("button", name="Comment").click()
            expect(page.locator("#history")).to_contain_text("looks good")
            with acting_as("bob"):
                request.report_check("nulls", "failed")
            page.get_by_role("button", name="Publish").click()
            expect(page.get_by_role("alert")).to_contain_text("has changed since you looked at it")
            expect(page.locator("#obstacles")).to_contain_text("check `nulls` is failed")
            check_accessible(page, "pull request with obstacles")
            with acting_as("bob"):
                request.report_check("nulls", "passed")
            page.goto(f"{address}/pull-requests?number=1")
            page.get_by_role("button", name="Publish").click()
            expect(page.get_by_role("main")).to_contain_text("published by fast-forward")
            check_accessible(page, "published pull request")
        assert "work" not in work.refresh().refs
