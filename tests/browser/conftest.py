"""Debian's chromium, driven by Playwright, on consoles in this process."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import bergline
from bergline import Lake
from bergline.server.access.authenticator import Authenticator
from bergline.server.opening import open_server
from support.servers.asgi_client import TOKEN
from support.servers.console_stories import (
    SCHEMA,
    SECRET,
    SHOWN,
    make_many_snapshots,
    shown,
    tell_hostile_story,
    tell_story,
)
from support.servers.server_on_socket import on_socket

CHROMIUM = shutil.which("chromium") or ""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Browsers are for `make test`, and run where they are installed."""
    item.add_marker("server")
    if not CHROMIUM:
        item.add_marker(pytest.mark.skip(reason="chromium is not installed"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a module: as long as it runs, its event loop is in the way of others."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """A page in a context of its own; whatever goes wrong in it, or leaves this machine, fails the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def opened(**options: Any) -> Page:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        for address in SHOWN:
            page.goto(f"{address}/?token={SECRET}")
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" and "status of" not in m.text else None)
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.on("dialog", lambda d: (wrong.append(f"dialog {d.message}"), d.dismiss()))
        page.on("request", lambda r: None if "//127.0.0.1:" in r.url else wrong.append(r.url))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """A desktop's page, light."""
    return open_page(viewport={"width": 1280, "height": 900}, color_scheme="light")


@pytest.fixture(scope="module")
def lake_on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with a story, hostile names, many snapshots, an empty table and a broken one."""
    directory = tmp_path_factory.mktemp("shown")
    with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        tell_story(lake, "db.orders")
        tell_hostile_story(lake)
        lake.access.grant("administer", on="catalog", to="root")
        lake.access.create_role("etl", ["ann", "group:loaders"])
        lake.access.grant("write", on="table db.orders", ref="release/*", to="role:etl")
        make_many_snapshots(lake, directory)
        lake.create_table("db.empty", SCHEMA)
        broken = lake.create_table("db.broken", SCHEMA)
        Path(broken.metadata_location.removeprefix("file://")).write_text("{broken")
        yield lake


@pytest.fixture(scope="module")
def address(lake_on_disk: Lake) -> Iterator[str]:
    """The console over that lake."""
    with shown(lake_on_disk) as url:
        yield url


@pytest.fixture(scope="module")
def guarded_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a token, and the story in it."""
    directory = tmp_path_factory.mktemp("served")
    context = open_server(f"sqlite:///{directory}/lake/catalog.db")
    try:
        lake = Lake(context.catalog, "lake")
        lake.create_namespace("db")
        tell_story(lake, "db.orders")
        context.records.tokens.create("ann", TOKEN, 1, None)
        context.authenticator = Authenticator(context.records)
        with on_socket(context) as port:
            yield f"http://127.0.0.1:{port}"
    finally:
        context.catalog.close()
