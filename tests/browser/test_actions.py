"""Every action of the console in a real browser: the form, the review, the deed."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable
from bergline.catalog.sql.records import sql_store_of
from bergline.console.actions.registry import ACTIONS
from support.servers.accessibility import check_accessible
from support.servers.console_stories import shown, tell_story

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def acted_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with the story, which the actions carry on."""
    directory = tmp_path_factory.mktemp("acted")
    with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        tell_story(lake, "db.orders").refs.create_branch("behind")
        yield lake


@pytest.fixture(scope="module")
def address(acted_on: Lake) -> Iterator[str]:
    with shown(acted_on) as url:
        yield url


@pytest.fixture
def table(acted_on: Lake) -> Table:
    return acted_on.load_table("db.orders")


def review(page: Page, address: str, key: str, **answers: str | bool) -> None:
    """Fill in a form, and ask what would happen."""
    page.goto(f"{address}/table/actions?name=db.orders")
    page.get_by_role("link", name=ACTIONS[key].title, exact=True).click()
    for field in ACTIONS[key].fields:
        answer, box = answers.get(field.name), page.get_by_label(field.label, exact=True)
        if answer is True:
            box.check()
        elif isinstance(answer, str) and field.kind in {"ref", "branch"}:
            box.select_option(answer)
        elif isinstance(answer, str):
            box.fill(answer)
    page.get_by_role("button", name="Review").click()


def confirm(page: Page, key: str) -> None:
    expect(page.get_by_role("heading", name="Command line")).to_be_visible()
    page.get_by_role("button", name=ACTIONS[key].button, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{ACTIONS[key].title}: done")


def do(page: Page, address: str, key: str, **answers: str | bool) -> str:
    """Do something; its key."""
    review(page, address, key, **answers)
    confirm(page, key)
    return key


def test_every_action_is_done_as_reviewed(open_page: Opener, address: str, table: Table) -> None:
    page = open_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    done = {
        do(page, address, "create-branch", new="dev", at="v1", min_snapshots="2"),
        do(page, address, "create-tag", new="v2"),
        do(page, address, "set-retention", ref="dev", max_ref_age="5 d"),
        do(page, address, "rename-ref", ref="dev", new="lab"),
    }
    refs = table.refresh().refs
    assert (refs["lab"].snapshot_id, refs["lab"].max_ref_age_ms) == (refs["v1"].snapshot_id, 432_000_000)
    assert refs["v2"].snapshot_id == refs["main"].snapshot_id
    review(page, address, "drop-ref", ref="lab")
    check_accessible(page, "review")
    confirm(page, "drop-ref")
    check_accessible(page, "done")
    done.add("drop-ref")
    assert "lab" not in table.refresh().refs
    page = open_page(java_script_enabled=False, viewport={"width": 390, "height": 844}, color_scheme="dark")
    head = table.refs["main"].snapshot_id
    done.add(do(page, address, "merge", branch="fork", into="main"))
    assert 7 in table.refresh().scan().to_arrow()["id"].to_pylist()
    done.add(do(page, address, "fast-forward", branch="behind", to="main"))
    assert table.refresh().refs["behind"].snapshot_id == table.refs["main"].snapshot_id
    done.add(do(page, address, "roll-back", branch="main", to=str(head)))
    assert table.refresh().refs["main"].snapshot_id == head
    done.add(expire_after_a_stale_review(page, address, table))
    assert done == set(ACTIONS)


def expire_after_a_stale_review(page: Page, address: str, table: Table) -> str:
    """Expire; first by a plan that others have made stale, which does nothing."""
    review(page, address, "expire", older_than="1 ms", retain_last="1")
    expect(page.get_by_role("heading", name="Files that are deleted")).to_be_visible()
    staged = table.refs.staged("night").snapshot_id
    table.refs.create_tag("saved", at=staged)
    page.get_by_role("button", name="Expire as planned").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done")
    before = len(table.refresh().metadata.snapshots)
    table.refs.drop_tag("saved")
    review(page, address, "expire", older_than="1 ms", retain_last="1")
    confirm(page, "expire")
    assert len(table.refresh().metadata.snapshots) < before
    return "expire"


def test_conflict_is_shown_before_the_merge(page: Page, address: str, table: Table) -> None:
    table.refs.create_branch("rival")
    table.delete("id = 3", branch="rival")
    table.delete("id = 4")
    review(page, address, "merge", branch="rival", into="main")
    expect(page.get_by_role("alert")).to_contain_text("cannot merge `rival` into `main`")
    expect(page.get_by_role("button", name="Merge", exact=True)).to_have_count(0)


def test_dropped_table_comes_back_from_the_trash(page: Page, address: str, acted_on: Lake) -> None:
    store = sql_store_of(acted_on.catalog)
    dropped = acted_on.create_table("db.dropped", pa.schema([("id", pa.int64())]))
    acted_on.drop_table(dropped.name)
    with store.database.changing() as connection:
        kept = DroppedTable(dropped.name, dropped.metadata_location, 1, 2, "ann", purges_files=True)
        store.table_trash.add(connection, kept)
    page.goto(address)
    page.get_by_role("link", name="Trash", exact=True).click()
    check_accessible(page, "trash")
    page.get_by_role("link", name="Bring back db.dropped").click()
    page.get_by_label("Another name").fill("db.back")
    page.get_by_role("button", name="Review").click()
    check_accessible(page, "review")
    page.get_by_role("button", name="Bring it back").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bring back table db.dropped: done")
    page.get_by_role("link", name="Show it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("db.back")
    assert acted_on.list_tables().count("db.back") == 1
