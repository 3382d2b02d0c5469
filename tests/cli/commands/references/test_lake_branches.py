"""`bergline branch` over the whole lake."""

import json

import pyarrow as pa
import pytest

from bergline import Lake, Table
from support.fixtures.rows import ids, order_rows
from support.processes.command_line import Command, Terminal


@pytest.fixture
def two(lake: Lake, orders: Table) -> Lake:
    """`db.orders` and `db.items` with a row each."""
    orders.append(order_rows(1))
    lake.create_table("db.items", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    return lake


def test_branch_from_creating_to_publishing(bl: Command, two: Lake) -> None:
    done = bl("branch", "create", "staging", "--expires", "7d")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "branch `staging` of the lake, of all tables, expires in 7 days\n"
    done = bl("branch", "create", "staging")
    assert (done.returncode, done.stderr) == (1, "error: the lake has a branch `staging` already\n")
    assert bl("branch", "create", "staging", "--if-not-exists").returncode == 0
    two.at("staging").load_table("db.orders").append(order_rows(2, 3))
    (found,) = json.loads(bl("branch", "list", "--json").stdout)
    assert (found["name"], found["tables"], found["joined"]) == ("staging", [], ["db.orders"])
    assert (found["pinned_bytes"] > 0, found["expires_ms"] - found["created_ms"]) == (True, 604_800_000)
    shown = bl("branch", "list").stdout.splitlines()
    assert shown[0].split() == ["name", "owner", "created", "expires", "of", "tables", "pinned"]
    assert "staging" in shown[-1]
    (found,) = json.loads(bl("branch", "diff", "staging", "--json").stdout)
    assert (found["table"], found["ahead"], found["behind"], found["added_rows"]) == ("db.orders", 1, 0, 2)
    assert "db.orders" in bl("branch", "diff", "staging").stdout
    done = bl("branch", "publish", "staging", "--tag", "v1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (moved,) = json.loads(done.stdout)["tables"]
    assert (moved["table"], moved["what"]) == ("db.orders", "fast-forwarded")
    orders = two.load_table("db.orders")
    assert (ids(orders.scan().to_arrow()), list(orders.refs)) == ([1, 2, 3], ["main", "v1"])
    assert json.loads(bl("branch", "list", "--json").stdout) == []


def test_branch_of_some_tables(bl: Command, two: Lake) -> None:
    done = bl("branch", "create", "staging", "--tables", "db.o*", "--tables", "sales.*", "--json")
    assert json.loads(done.stdout)["tables"] == ["db.o*", "sales.*"]
    two.branches.drop("staging")
    assert bl("branch", "create", "staging", "--tables", "db.o*").stdout == "branch `staging` of the lake, of db.o*\n"


def test_drop_shows_what_only_the_branch_has_and_asks(bl: Command, two: Lake) -> None:
    two.branches.create("staging")
    two.at("staging").load_table("db.items").append(pa.table({"id": [2]}))
    done = bl("branch", "drop", "staging")
    assert (done.returncode, done.stdout) == (2, "")
    assert "drop branch `staging` of the lake, in 1 table; 1 snapshot will go with expiry, " in done.stderr
    assert bl("branch", "drop", "staging", stdin=Terminal("n\n")).returncode == 1
    assert [branch.name for branch in two.branches.list()] == ["staging"]
    done = bl("branch", "drop", "staging", "--yes", "--json")
    assert (done.returncode, [t["what"] for t in json.loads(done.stdout)["tables"]]) == (0, ["dropped"])
    assert (two.branches.list(), two.tables_with_ref("staging")) == ([], [])
    assert bl("branch", "drop", "staging", "--if-exists", "--yes").returncode == 0
    done = bl("branch", "drop", "stagin", "--yes")
    assert (done.returncode, done.stderr) == (1, "error: no branch `stagin` of the lake\n")
    bl("branch", "create", "empty")
    assert bl("branch", "publish", "empty").stdout == "published `empty`, which no table has joined\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "main"], "expected another name for a branch of the lake, found `main`"),
        (["create", "2026-11-01T00:00:00Z"], "expected a name for a branch of the lake, found the time"),
        (["create", "db.orders"], "expected the name of a branch behind table `db.orders`, found none"),
        (["create", "staging", "--at", "main"], "expected --at only with a branch of a table"),
        (["create", "db.orders", "dev", "--expires", "7d"], "expected --expires only with a branch of the whole lake"),
        (["create", "staging", "--expires", "soon"], "expected a duration like 90d, 12h or 30m, found `soon`"),
        (["create", "staging", "--tables", "sales"], "expected a pattern of tables such as `sales.*`, found `sales`"),
        (["diff", "db.orders", "main"], "expected two refs of table `db.orders`, found `main` alone"),
        (["diff", "db.orders"], "expected the name of a branch behind table `db.orders`, found none"),
        (["publish", "staging"], "no branch `staging` of the lake"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_are_refused(bl: Command, two: Lake, arguments: list[str], message: str) -> None:
    done = bl("branch", *arguments)
    assert done.returncode in {1, 2}
    assert message in done.stderr
    assert two.branches.list() == []
    assert list(two.load_table("db.orders").refs) == ["main"]
