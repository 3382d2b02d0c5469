"""`bergline pr`."""

import json

import pytest

from bergline import Lake, Table
from bergline.catalog.protection.caller import acting_as
from support.fixtures.rows import order_rows
from support.processes.command_line import Command


@pytest.fixture
def work(lake: Lake, orders: Table) -> Table:
    """A branch `work` with one row more, and ann's pull request for it."""
    orders.append(order_rows(1)).refs.create_branch("work")
    orders.append(order_rows(2), branch="work")
    with acting_as("ann"):
        lake.pull_requests.open("work", title="More rows")
    return orders


def test_pull_request_is_shown_reviewed_and_published(bl: Command, work: Table) -> None:
    head = work.refresh().refs["work"].snapshot_id
    shown = bl("pr", "show", "1")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "More rows, by ann\npull request 1 (open): `work` into `main` of `db.orders`" in shown.stdout
    assert f"table `db.orders` at snapshot {head}: fast-forward, 1 snapshot, +1 row in 1 file" in shown.stdout
    assert "+1 row in 1 data file" in bl("pr", "diff", "1").stdout
    (difference,) = json.loads(bl("pr", "diff", "1", "--rows", "5", "--json").stdout)
    assert (difference["table"], len(difference["rows"])) == ("db.orders", 1)
    assert bl("pr", "comment", "1", "looks fine").returncode == 0
    assert bl("pr", "check", "1", "nulls", "failed", "--detail", "3 rows").returncode == 0
    refused = bl("pr", "publish", "1")
    assert (refused.returncode, "check `nulls` is failed" in refused.stderr) == (1, True)
    assert bl("pr", "check", "1", "nulls", "passed").returncode == 0
    stale = bl("pr", "approve", "1", "--head", "db.orders=5")
    assert (stale.returncode, "look at the pull request again" in stale.stderr) == (3, True)
    assert bl("pr", "approve", "1", "--head", f"db.orders={head}").returncode == 0
    overview = json.loads(bl("pr", "show", "1", "--json").stdout)
    assert (overview["changes"][0]["head"], len(overview["approved_by"])) == (str(head), 1)
    assert overview["uncounted"] == {}
    work.refs.protect("main", approvals=1)
    (own,) = overview["approved_by"]
    shown = bl("pr", "show", "1").stdout
    assert f"approved by {own} (does not count: who publishes it cannot approve it)" in shown
    work.refs.unprotect("main")
    assert bl("pr", "withdraw", "1").returncode == 0
    done = bl("pr", "publish", "1")
    assert done.stdout == "published pull request 1 (published): `work` into `main` of `db.orders`\n"
    assert work.refresh().scan().to_arrow().num_rows == 2
    assert "work" not in work.refs
    assert bl("pr", "publish", "1").returncode == 3
    assert bl("pr", "diff", "1").returncode == 2


def test_pull_requests_are_created_listed_closed_and_reopened(bl: Command, work: Table) -> None:
    assert bl("pr", "create", "work").returncode == 1
    assert bl("pr", "close", "1").stdout.startswith("closed pull request 1")
    created = bl("pr", "create", "work", "--title", "Again", "--table", "db.orders", "--json")
    assert json.loads(created.stdout)["number"] == 2
    assert [r["number"] for r in json.loads(bl("pr", "list", "--json").stdout)] == [2]
    assert [line.split()[0] for line in bl("pr", "list", "--all").stdout.splitlines()] == ["number", "2", "1"]
    own = bl("pr", "approve", "2")
    assert (own.returncode, "cannot approve it" in own.stderr) == (1, True)
    assert bl("pr", "close", "2").returncode == 0
    assert bl("pr", "reopen", "1").returncode == 0
    assert bl("pr", "show", "9").returncode == 1
    assert bl("pr", "approve", "1", "--head", "db.orders=x").returncode == 2
    work.refs.drop_branch("work")
    gone = bl("pr", "show", "1")
    assert (gone.returncode, "branch `work` of table `db.orders` is gone" in gone.stdout) == (0, True)
