"""Every action: reviewed, done as reviewed, and the same in Python, in SQL and on the command line."""

import datetime as dt
import html
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.cli.main import COMMANDS
from bergline.console.actions.registry import ACTIONS
from support.fixtures.sql_statements import run_text
from support.processes.command_line import run_here

pytestmark = pytest.mark.long

SITUATIONS: list[tuple[str, dict[str, str], str]] = [
    ("create-branch", {"new": "dev"}, "branch `dev` is created at snapshot"),
    (
        "create-branch",
        {"new": "a b", "at": "v1", "min_snapshots": "3", "max_snapshot_age": "7 d", "max_ref_age": "12 h"},
        "at least 3 of its snapshots are kept",
    ),
    ("create-branch", {"new": "-it's", "at": "v1"}, "the head of `v1`"),
    ("create-tag", {"new": "v2", "at": "audit", "max_ref_age": "30 min"}, "tag `v2` is created"),
    ("rename-ref", {"ref": "v1", "new": "first"}, "tag `v1` is called `first`"),
    ("rename-ref", {"ref": "fork", "new": "other"}, "branch `fork` is called `other`"),
    ("drop-ref", {"ref": "v1"}, "`audit`, `fork`, `kept`, `main` lead to it"),
    ("drop-ref", {"ref": "audit"}, "no other branch or tag leads to snapshot"),
    ("set-retention", {"ref": "fork", "min_snapshots": "2", "max_ref_age": "5 d"}, "removed once its snapshot"),
    ("set-retention", {"ref": "kept", "max_snapshot_age": "2 h"}, "kept for 2 hours"),
    ("fast-forward", {"branch": "main", "to": "audit"}, "`main` is moved from snapshot"),
    ("merge", {"branch": "audit", "into": "main"}, "it only moves forward"),
    ("merge", {"branch": "fork", "into": "main"}, "no conflict: 1 snapshot of `fork` replayed on `main`"),
    ("merge", {"branch": "fork", "into": "main", "squash": "yes"}, "no conflict: 1 snapshot"),
    ("roll-back", {"branch": "main", "to": "v1"}, "leaves 1 snapshot out of its history"),
    ("roll-back", {"branch": "audit", "to": "main"}, "no file is deleted before the next expiry"),
    ("expire", {"older_than": "1 ms", "retain_last": "1"}, "removes 1 snapshot and 0 refs"),
]
IDS = [f"{key}-{number}" for number, (key, _, _) in enumerate(SITUATIONS)]


@pytest.fixture
def table(story: Table) -> Table:
    """The story, with a branch that has a retention and a snapshot that only expiry wants."""
    story.refs.create_branch("kept", min_snapshots_to_keep=4)
    story.refs.create_branch("gone")
    story.delete("id = 3", branch="gone")
    story.refs.drop_branch("gone")
    return story


def state(lake: Lake) -> dict[str, Any]:
    """All that actions change: refs by rows and retention, and how many snapshots there are."""
    table = lake.load_table("db.orders")
    heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
    rows = {head: sorted(table.scan(snapshot_id=head).to_arrow()["id"].to_pylist()) for head in heads}
    refs = {
        name: (
            str(ref.snapshot_ref_type),
            rows[ref.snapshot_id],
            len(list(table.metadata.ancestors(ref.snapshot_id))),
            ref.min_snapshots_to_keep,
            ref.max_snapshot_age_ms,
            ref.max_ref_age_ms,
        )
        for name, ref in table.metadata.refs.items()
    }
    return {"refs": refs, "snapshots": len(table.metadata.snapshots)}


def codes(page: str) -> list[str]:
    """What stands beside an action to be copied."""
    return [
        html.unescape(found) for found in re.findall(r"<pre class=\"wrap\"><code>(.*?)</code></pre>", page, re.DOTALL)
    ]


def test_every_action_is_in_a_situation() -> None:
    assert {key for key, _, _ in SITUATIONS} == set(ACTIONS)


@pytest.mark.parametrize(("key", "answers", "says"), SITUATIONS, ids=IDS)
def test_review_changes_nothing_and_confirming_does_what_it_said_as_elsewhere(
    browser: Any, host: Any, table: Table, lake: Lake, tmp_path: Path, key: str, answers: dict[str, str], says: str
) -> None:
    start = table.refresh().metadata_location
    shutil.copytree(tmp_path / "warehouse", tmp_path / "kept")
    before, files = state(lake), set(tmp_path.rglob("*"))
    review = browser.review(key, **answers)
    assert review.status == 200
    assert says in html.unescape(review.text)
    assert state(lake) == before
    assert set(tmp_path.rglob("*")) == files
    done = browser.confirm(key, review, **answers)
    assert done.status == 200, done
    assert f"{ACTIONS[key].title}: done" in done.text
    after = state(lake)
    assert after != before
    assert host.changes == [("ann", key, "db.orders")]
    again = browser.confirm(key, review, **answers)  # as when a page is loaded again
    assert again.status >= 400
    assert state(lake) == after
    check_equivalents(lake, review, tmp_path, start, after)


def check_equivalents(lake: Lake, review: Any, tmp_path: Path, start: str, done: dict[str, Any]) -> None:
    """From the same start, what a review shows in Python, in SQL and on the command line leads to the same state."""
    python, *others = codes(review.text)
    command = shlex.split(others[-1])[1:]
    verbs = 1 if command[0] == "expire" else 2
    command[verbs:verbs] = ["--catalog", f"sqlite:///{tmp_path}/catalog.db"]
    ways: list[Callable[[], object]] = [lambda: eval(python, {"lake": lake, "datetime": dt})]  # noqa: S307
    if len(others) > 1:
        ways.append(lambda: run_text(lake, others[0]))
    else:
        assert command[1] in {"rename", "rollback", "retention"}
    if command[0] in COMMANDS:
        ways.append(lambda: run_here(*command, cwd=tmp_path))
    for way in ways:
        lake.unregister_table("db.orders")
        shutil.copytree(tmp_path / "kept", tmp_path / "warehouse", dirs_exist_ok=True)
        lake.register_table("db.orders", start)
        assert state(lake) != done
        way()
        assert state(lake) == done


def test_review_that_others_made_stale_is_not_done(browser: Any, table: Table, lake: Lake) -> None:
    answers = {"branch": "fork", "into": "main"}
    review = browser.review("merge", **answers)
    table.append(table.scan("id = 1").to_arrow())
    now = state(lake)
    stale = browser.confirm("merge", review, **answers)
    assert stale.status == 409
    assert "Nothing was done" in stale.text
    assert state(lake) == now
    assert browser.confirm("merge", stale, **answers).status == 200


def test_conflicts_of_a_merge_are_shown_before_it(browser: Any, table: Table, lake: Lake) -> None:
    table.delete("id = 1", branch="fork")
    table.delete("id = 2")
    before = state(lake)
    shown = browser.review("merge", branch="fork", into="main")
    assert shown.status == 409
    assert "cannot merge `fork` into `main`" in html.unescape(shown.text)
    assert 'name="confirm"' not in shown.text
    assert state(lake) == before


@pytest.mark.parametrize(
    ("key", "answers", "problem"),
    [
        ("create-branch", {"new": ""}, "expected something for `Name of the branch`"),
        ("create-branch", {"new": "audit"}, "exists already"),
        ("create-tag", {"new": "x", "at": "nothing"}, "no branch or tag `nothing`"),
        ("create-branch", {"new": "x", "min_snapshots": "many"}, "expected a whole number from 1 on"),
        ("create-branch", {"new": "x", "max_ref_age": "soon"}, "expected a time like `7 d`"),
        ("drop-ref", {"ref": "main"}, "main"),
        ("rename-ref", {"ref": "v1", "new": "audit"}, "audit"),
        ("set-retention", {"ref": "v1", "min_snapshots": "3"}, "a tag names one snapshot"),
        ("fast-forward", {"branch": "main", "to": "fork"}, "fork"),
        ("roll-back", {"branch": "main", "to": "fork"}, "not in the history of `main`"),
        ("expire", {"retain_last": "0"}, "expected a whole number from 1 on"),
    ],
)
def test_what_cannot_be_done_is_said_at_the_form(
    browser: Any, table: Table, lake: Lake, key: str, answers: dict[str, str], problem: str
) -> None:
    before = state(lake)
    page = browser.review(key, **answers)
    assert 400 <= page.status < 500
    said = re.search(r'<div class="problem" role="alert" id="problem">(.*?)</div>', page.text, re.DOTALL)
    assert said
    assert problem in html.unescape(said[1])
    assert state(lake) == before


def test_nothing_to_expire_offers_no_button(browser: Any, story: Table) -> None:
    page = browser.review("expire")
    assert "There is nothing to do" in page.text
    assert 'name="confirm"' not in page.text


def test_expiry_does_what_was_confirmed_or_nothing(browser: Any, table: Table, lake: Lake) -> None:
    answers = {"older_than": "1 ms", "retain_last": "1"}
    review = browser.review("expire", **answers)
    gone = re.search(r"<td><bdi>([0-9]{5,})</bdi></td>", review.text)
    assert gone
    table.refs.create_tag("saved", at=int(gone[1]))
    refused = browser.confirm("expire", review, **answers)
    assert refused.status == 409
    assert lake.load_table("db.orders").metadata.snapshot(int(gone[1]))


def test_form_of_a_retention_begins_with_what_the_ref_has(browser: Any, table: Table) -> None:
    page = browser.get("/table/actions/set-retention", name="db.orders", ref="kept")
    assert 'name="min_snapshots" value="4"' in page.text


def test_branch_of_an_empty_table_starts_empty(browser: Any, lake: Lake) -> None:
    lake.create_table("db.orders", pa.schema([("id", pa.int64())]))
    review = browser.review("create-branch", new="dev")
    assert "an empty snapshot, for the table has none" in review.text
    assert browser.confirm("create-branch", review, new="dev").status == 200
    assert list(lake.load_table("db.orders").refs) == ["dev"]
