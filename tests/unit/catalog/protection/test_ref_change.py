"""What a change adds and removes, of which records are kept."""

from typing import Any

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, acting_as
from bergline.catalog.protection.ref_change import NoRecords, RefChange, may_change, named_rules
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.protection.rule_scope import TABLE, RuleLevel
from bergline.catalog.protection.table_rules import UnreadableRule
from bergline.format.metadata.table_metadata import TableMetadata
from support.fixtures.ref_histories import history

LINE = {1: None, 2: 1, 3: 2}
BASE = msgspec.structs.replace(history(LINE, main=3), table_uuid="a")


def change(result: TableMetadata | None) -> RefChange:
    after = None if result is None else msgspec.structs.replace(result, table_uuid="a")
    return RefChange(TableName(("db",), "orders"), BASE, after)


def test_snapshots_that_stay_are_neither_added_nor_lost() -> None:
    found = change(history({**LINE, 4: 3}, main=4))
    assert (found.added_snapshots, found.lost_snapshots) == ({4}, set())
    found = change(history({2: 1, 3: 2, 4: 3}, main=4))
    assert (found.added_snapshots, found.lost_snapshots) == ({4}, {1})


def test_snapshots_under_the_ids_of_others_are_added_and_lost() -> None:
    found = change(history(LINE, {2: {"operation": "delete"}}, main=3))
    assert (found.added_snapshots, found.lost_snapshots) == ({2}, {2})


def test_a_table_that_goes_loses_all() -> None:
    found = change(None)
    assert (found.added_snapshots, found.lost_snapshots) == (set(), {1, 2, 3})
    another = msgspec.structs.replace(BASE, table_uuid="b")
    found = RefChange(TableName(("db",), "orders"), BASE, another)
    assert (found.added_snapshots, found.lost_snapshots) == (set(), {1, 2, 3})


def test_old_table_has_an_empty_uuid() -> None:
    assert change(None).table_uuid == "a"
    assert RefChange(TableName(("db",), "orders"), history(LINE, main=3), None).table_uuid == ""


def test_what_is_tried_out_is_decided_for_its_caller_or_left_to_the_server() -> None:
    rule = {"bergline.ref-rules.main": "only-publish; bypass=ann"}
    base = history(LINE, None, rule, main=3)
    found = RefChange(TableName(("db",), "orders"), base, history({**LINE, 4: 3}, None, rule, main=4))

    def refused(caller: str, *, server_decides: bool = False) -> int:
        with acting_as(caller):
            return len(list(found.refusals(NoRecords(), server_decides=server_decides)))

    assert (refused("ann"), refused("bob")) == (0, 1)
    with acting_as("bob"):
        assert len(list(found.refusals(NoRecords()))) == 1
    assert (refused("ann", server_decides=True), refused("bob", server_decides=True)) == (0, 0)


def test_replay_is_published_if_it_has_the_files_of_its_source_looked_at_once() -> None:
    rule, forked = {"bergline.ref-rules.main": "only-publish"}, {1: None, 2: 1}
    base = history(forked, None, rule, main=1, dev=2)
    result = history({**forked, 4: 1}, {4: {"source-snapshot-id": "2"}}, rule, main=4, dev=2)
    for is_same in (True, False):
        asked: list[str] = []

        def check(*given: Any, answer: bool = is_same, to: list[str] = asked) -> bool:
            to.append(given[2].ref)
            return answer

        found = RefChange(TableName(("db",), "orders"), base, result, None, check)
        assert [len(list(found.refusals(NoRecords()))) for _ in range(2)] == [0 if is_same else 1] * 2
        assert asked == ["main"]


def test_rule_with_bypass_is_changed_by_those_and_by_who_administers() -> None:
    ann, root, rule = Caller("ann"), Caller("root"), RefRule(pattern="main", only_publish=True, bypass=("bob",))
    root.administers = True
    assert [may_change(rule, one) for one in (ann, root, Caller("bob"))] == [False, True, True]
    assert may_change(msgspec.structs.replace(rule, bypass=()), ann)
    assert may_change(UnreadableRule("main", "nonsense"), ann)


def test_rules_that_cannot_be_read_have_no_name() -> None:
    rule = RefRule(pattern="main", only_publish=True)
    assert [one for _, one in named_rules([RuleLevel(TABLE, (UnreadableRule("v*", "nonsense"), rule))])] == [rule]
