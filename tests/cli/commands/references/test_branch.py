"""`bergline branch`."""

import json
from pathlib import Path

import pytest

from bergline import Table
from support.fixtures.rows import ids, order_rows
from support.processes.command_line import Command, Terminal


@pytest.fixture
def staged(orders: Table) -> Table:
    """`staging` is one append before `main`."""
    orders.append(order_rows(1))
    orders.append(order_rows(2), branch="staging")
    return orders


def test_create_list_rename_and_retention(bl: Command, staged: Table) -> None:
    first = str(staged.metadata.snapshots[0].snapshot_id)
    keep = ("--min-snapshots-to-keep", "2", "--max-snapshot-age", "7d", "--max-ref-age", "12h")
    done = bl("branch", "create", "db.orders", "audit", "--at", first, *keep)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"branch `audit` is at snapshot {first}\n", "")
    assert bl("branch", "create", "db.orders", "audit").returncode == 1
    assert bl("branch", "create", "db.orders", "audit", "--if-not-exists").returncode == 0
    assert bl("branch", "rename", "db.orders", "audit", "checked").stdout.startswith("branch `checked` is at")
    done = bl("branch", "retention", "db.orders", "checked", "--clear", "max-ref-age", "--max-snapshot-age", "1d")
    assert (done.returncode, done.stderr) == (0, "")
    assert "at least 2 snapshots, snapshots for 1 day" in done.stdout
    found = {ref["name"]: ref for ref in json.loads(bl("branch", "list", "db.orders", "--json").stdout)}
    assert set(found) == {"main", "staging", "checked"}
    assert (found["checked"]["max_snapshot_age_ms"], found["checked"]["max_ref_age_ms"]) == (86_400_000, None)


def test_drop_shows_what_only_the_branch_has_and_asks(bl: Command, staged: Table) -> None:
    done = bl("branch", "drop", "db.orders", "staging")
    assert (done.returncode, done.stdout) == (2, "")
    assert "1 snapshot will be on no other ref" in done.stderr
    assert bl("branch", "drop", "db.orders", "staging", stdin=Terminal("n\n")).returncode == 1
    assert "staging" in staged.refresh().refs
    done = bl("branch", "drop", "db.orders", "staging", "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout)["dropped"]) == (0, True)
    assert "staging" not in staged.refresh().refs
    assert bl("branch", "drop", "db.orders", "staging", "--if-exists", "--yes").returncode == 0
    done = bl("branch", "drop", "db.orders", "stagin", "--yes")
    assert (done.returncode, done.stderr) == (1, "error: no branch `stagin`\n")
    done = bl("branch", "drop", "db.orders", "main", "--yes")
    assert (done.returncode, "main" in staged.refresh().refs) == (1, True)


def test_fast_forward_and_rollback(bl: Command, staged: Table) -> None:
    first, second = (str(s.snapshot_id) for s in staged.metadata.snapshots)
    done = bl("branch", "fast-forward", "db.orders", "main", "--to", "staging", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "table": "db.orders",
        "name": "main",
        "previous_snapshot_id": first,
        "snapshot_id": second,
        "replayed": {},
    }
    assert bl("branch", "rollback", "db.orders", "--to", first).returncode == 2
    assert ids(staged.refresh().scan().to_arrow()) == [1, 2]
    done = bl("branch", "rollback", "db.orders", "main", "--to", first, "--yes")
    assert done.returncode == 0
    assert ids(staged.refresh().scan().to_arrow()) == [1]


def test_merge_replays_and_a_conflict_has_its_exit_code(bl: Command, staged: Table) -> None:
    staged.append(order_rows(3))
    done = bl("branch", "merge", "db.orders", "staging", "--into", "main", "--json")
    assert (done.returncode, done.stderr, len(json.loads(done.stdout)["replayed"])) == (0, "", 1)
    assert ids(staged.refresh().scan().to_arrow()) == [1, 2, 3]
    staged.refs.create_branch("other")
    staged.delete("id = 1", branch="other")
    staged.delete("id = 1")
    before = staged.metadata_location
    done = bl("branch", "merge", "db.orders", "other")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")
    assert staged.refresh().metadata_location == before


def test_rebase_moves_the_branch(bl: Command, staged: Table) -> None:
    staged.append(order_rows(3))
    done = bl("branch", "rebase", "db.orders", "staging", "--onto", "main")
    assert (done.returncode, done.stderr) == (0, "")
    assert "`staging` of `db.orders`: " in done.stdout
    assert ids(staged.refresh().scan(ref="staging").to_arrow()) == [1, 2, 3]
    assert ids(staged.scan().to_arrow()) == [1, 3]


def test_diff_of_two_refs(bl: Command, staged: Table) -> None:
    done = bl("branch", "diff", "db.orders", "main", "staging")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{staged.refs.diff('main', 'staging')}\n"
    found = json.loads(bl("branch", "diff", "db.orders", "main", "staging", "--json").stdout)
    assert found["common_ancestor_id"] == str(staged.metadata.snapshots[0].snapshot_id)
    assert [s["snapshot_id"] for s in found["only_to"]] == [str(staged.metadata.snapshots[1].snapshot_id)]
    assert (found["only_from"], found["partitions"][0]["added_rows"], found["rows"]) == ([], 1, None)
    found = json.loads(bl("branch", "diff", "db.orders", "main", "staging", "--rows", "5", "--json").stdout)
    assert [(row["_change_type"], row["id"]) for row in found["rows"]] == [("INSERT", "2")]
    assert "INSERT" in bl("branch", "diff", "db.orders", "main", "staging", "--rows", "1").stdout


def test_diff_with_files_that_are_gone_shows_the_rest(bl: Command, staged: Table) -> None:
    head = staged.metadata.snapshot(staged.refs["staging"].snapshot_id)
    Path(str(head.manifest_list).removeprefix("file://")).unlink()
    done = bl("branch", "diff", "db.orders", "main", "staging", "--json")
    assert (done.returncode, json.loads(done.stdout)["problems"][0]["what"]) == (1, "the files that differ")
    assert "error: cannot show the files that differ: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["create", "db.orders", ""], 2, "error: expected a ref name of 1 to 255 characters, found 0"),
        (["create", "db.orders", "b", "--max-ref-age", "soon"], 2, "error: expected a duration like 90d"),
        (["create", "db.orders", "b", "--at", "stagin"], 1, "error: no branch or tag `stagin`"),
        (["create", "db.orders", "b", "--at", "123"], 1, "error: no snapshot with id 123"),
        (["create", "db.orders", "b", "--at", "2020-01-01"], 1, "error: "),
        (["create", "db.orders"], 2, "expected the name of a branch behind table `db.orders`"),
        (["fast-forward", "db.orders", "staging", "--to", "main"], 1, "error: cannot fast-forward"),
        (["retention", "db.orders", "main", "--clear", "age"], 2, "error: "),
    ],
)
def test_bad_input_is_one_error_and_changes_nothing(
    bl: Command, staged: Table, arguments: list[str], code: int, message: str
) -> None:
    before = staged.metadata_location
    done = bl("branch", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert staged.refresh().metadata_location == before
