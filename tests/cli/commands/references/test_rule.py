"""`bergline rule`."""

import json

from bergline import Lake, Table
from support.processes.command_line import Command


def test_rules_of_catalog_namespace_and_table_are_set_listed_and_removed(
    bl: Command, lake: Lake, orders: Table
) -> None:
    done = bl("rule", "set", "main", "--table", "db.orders", "--only-publish", "--writers", "alice,group:ops",
              "--approvals", "1", "--check", "nulls", "--check", "pii", "--bypass", "ann")  # fmt: skip
    text = "only-publish; writers=alice,group:ops; checks=nulls,pii; bypass=ann; approvals=1"
    assert (done.returncode, done.stdout) == (0, f"the rule `main` of table `db.orders` is: {text}\n")
    assert orders.refresh().properties["bergline.ref-rules.main"] == text
    done = bl("rule", "set", "v*", "--kind", "tag", "--no-move", "--namespace", "db", "--json")
    assert json.loads(done.stdout) == {
        "pattern": "v*",
        "of": "namespace",
        "namespace": "db",
        "rule": "kind=tag; no-move",
    }
    assert bl("rule", "set", "main", "--no-rollback").stdout == "the rule `main` of the catalog is: no-rollback\n"
    assert [line.split() for line in bl("rule", "list").stdout.splitlines()[1:]] == [
        ["catalog", "main", "no-rollback"],
        ["namespace", "db", "v*", "kind=tag;", "no-move"],
    ]
    shown = json.loads(bl("rule", "list", "--table", "db.orders", "--json").stdout)
    assert [rule["of"] for rule in shown] == ["table", "catalog", "namespace"]
    assert bl("rule", "remove", "main").stdout == "removed the rule `main` of the catalog\n"
    assert json.loads(bl("rule", "remove", "v*", "--namespace", "db", "--json").stdout)["removed"]
    assert lake.rules.list() == ()


def test_wrong_rules_are_refused(bl: Command, lake: Lake) -> None:
    for arguments, sentence in (
        (("set", "main", "--no-move", "--only-publish"), "found both: the one forbids what the other allows"),
        (("set", "main"), "expected a restriction in the rule `main`, found none"),
        (("set", "main", "--no-drop", "--table", "db.t", "--namespace", "db"), "either --namespace or --table"),
        (("set", "main", "--no-drop", "--namespace", "bd"), "no namespace `bd`"),
        (("remove", "main"), "no rule `main` of the catalog"),
    ):
        done = bl("rule", *arguments)
        assert done.returncode != 0
        assert sentence in done.stderr
    assert lake.rules.list() == ()
