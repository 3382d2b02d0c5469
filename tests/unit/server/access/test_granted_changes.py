"""What commits need, by what they do to refs."""

import time
from typing import Any

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import acting_as
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import table_of
from bergline.lake.lake import Lake
from bergline.server.access.granted_changes import needed_privileges
from bergline.table.references.published_runs import PUBLISHED_RUNS
from support.fixtures.ref_histories import history, tag
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.asgi_client import set_branch, set_property, snapshot
from support.servers.granted_server import GrantedServer

PUBLISHED = {"action": "set-properties", "updates": {PUBLISHED_RUNS: "{}"}}


FORK = {1: None, 2: 1, 3: 2}
ORDERS_TABLE = TableName(("db",), "orders")
OTHER: Any = ("other",)


def needs(base: TableMetadata, result: TableMetadata | None) -> list[str]:
    """What a change needs, each as the privileges and the ref; without what each commit needs, which comes last."""
    found = list(needed_privileges(ORDERS_TABLE, base, result))
    if result is not None:
        last = found.pop()
        assert last.any_of == (Privilege.WRITE, Privilege.PUBLISH, Privilege.MANAGE_REFS)
        assert last.securable == table_of(ORDERS_TABLE)
    return [
        " ".join(
            filter(None, ("|".join(n.any_of), n.securable.ref, n.replaying and f"replaying {n.replaying.replays}"))
        )
        for n in found
    ]


BASE = history(FORK, main=1, dev=2)
AGED = SnapshotRef(2, SnapshotRefType.BRANCH, max_ref_age_ms=5)
REPLAY = {4: {"source-snapshot-id": "2"}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (BASE, []),
        (None, ["drop"]),
        (history({1: None, 2: 1}, main=1, dev=2), ["write"]),
        (history({**FORK, 4: 1}, main=1, dev=2), ["write"]),
        (history(FORK, {3: {"operation": "delete"}}, main=1, dev=2), ["write"]),
        (history({**FORK, 4: 1}, main=4, dev=2), ["write main"]),
        (history({**FORK, 4: 3, 5: 4}, main=1, dev=5), ["write dev"]),
        (history({**FORK, 4: 2, 5: 1}, main=1, dev=4), ["write dev", "write"]),
        (history({**FORK, 4: 1, 5: 2}, main=4, dev=5), ["write dev", "write main"]),
        (history({**FORK, 4: 2}, main=4, dev=4), ["write dev", "write main"]),
        (history(FORK, main=2, dev=2), ["write|publish main"]),
        (history({**FORK, 4: 1}, REPLAY, main=4, dev=2), ["write|publish main replaying ((4, 2),)"]),
        (history({**FORK, 4: 1}, REPLAY, main=1, dev=2, a=4), ["manage-refs a", "write a"]),
        (history({**FORK, 4: 1}, main=1, dev=2, a=4), ["manage-refs a", "write a"]),
        (history({**FORK, 4: 1}, main=1, dev=2, a=4, b=4), ["manage-refs a", "write a", "manage-refs b"]),
        (history({**FORK, 4: 1}, main=1, dev=2, a=tag(4)), ["manage-refs a", "write a", "write"]),
        (history(FORK, main=1, dev=2, a=1), ["manage-refs a"]),
        (history(FORK, main=1, dev=2, a=2), ["manage-refs a"]),
        (history(FORK, main=1, dev=2, a=tag(2)), ["manage-refs a"]),
        (history(FORK, main=1, dev=1), ["manage-refs dev"]),
        (history(FORK, main=1), ["manage-refs dev"]),
        (history(FORK, dev=2), ["manage-refs main"]),
        (history(FORK, main=msgspec.structs.replace(AGED, snapshot_id=1), dev=2), ["manage-refs main"]),
        (history({**FORK, 4: 1}, main=1, dev=4), ["manage-refs dev", "write dev"]),
        (history({2: 1, 3: 2}, main=3, dev=2), ["write dev", "write main", "write main", "write"]),
        (history({1: None, 2: 1}, main=1, dev=2, a=2), ["manage-refs a", "write"]),
        (msgspec.structs.replace(BASE, snapshots=BASE.snapshots[::-1]), []),
        (history({2: 1, 3: 2}, main=2, dev=2), ["write dev", "write|publish main", "write main", "write"]),
        (history(FORK, main=1, dev=AGED), ["manage-refs dev"]),
        (
            history({**FORK, 4: 2}, main=1, dev=msgspec.structs.replace(AGED, snapshot_id=4)),
            ["write dev", "manage-refs dev"],
        ),
    ],
)
def test_what_a_change_needs(result: TableMetadata | None, expected: list[str]) -> None:
    assert needs(BASE, result) == expected


@pytest.mark.parametrize("ref", [5, tag(5)])
def test_first_commit_to_main_is_a_write_and_a_tag_of_that_name_is_not(ref: int | SnapshotRef) -> None:
    expected = ["write main"] if ref == 5 else ["manage-refs main", "write main", "write"]
    assert needs(history({}), history({5: None}, main=ref)) == expected
    assert needs(history({}), history({5: None}, dev=5)) == ["manage-refs dev", "write dev"]


BY_COMMITS = {
    "last_sequence_number": 9,
    "last_updated_ms": 9,
    "current_snapshot_id": 9,
    "snapshot_log": OTHER,
    "metadata_log": OTHER,
    "next_row_id": 9,
}
"""What changes with each commit, or is derived from refs."""


@pytest.mark.parametrize("field", sorted({*TableMetadata.__struct_fields__} - {"refs", "snapshots", "properties"}))
def test_what_belongs_to_the_table_is_a_write_to_all_of_it(field: str) -> None:
    after = msgspec.structs.replace(BASE, **{field: BY_COMMITS.get(field, OTHER)})
    of_the_table = ["write"] if field in {"statistics", "partition_statistics"} else ["write *"]
    if field == "table_uuid":
        after = msgspec.structs.replace(BASE, table_uuid="a")
        assert needs(BASE, after) == []  # an old table gets one with its first commit
        assert needs(after, msgspec.structs.replace(BASE, table_uuid="b")) == of_the_table
    else:
        assert needs(BASE, after) == ([] if field in BY_COMMITS else of_the_table)


def test_properties_are_the_table_s_and_published_runs_are_of_who_publishes() -> None:
    assert needs(BASE, history(FORK, None, {"a": "b"}, main=1, dev=2)) == ["write *"]
    runs = history(FORK, None, {PUBLISHED_RUNS: "{}"}, main=1, dev=2)
    assert needs(BASE, runs) == needs(runs, BASE) == ["write|publish"]


def test_who_tries_a_change_out_hears_of_all_that_is_missing(granted: GrantedServer) -> None:
    guard, change = granted.context.catalog.guard, (BASE, history({**FORK, 4: 1, 5: 2}, main=4, dev=5))

    def told() -> list[str]:
        with acting_as("ann"):
            return [str(refused).rpartition(" for ")[2] for refused in guard.refusals(ORDERS_TABLE, *change)]

    assert len(told()) == 2
    granted.grant("manage-refs", "table db.orders", "ann")
    assert [ref in text for ref, text in zip(("`dev`", "`main`"), told(), strict=True)] == [True, True]
    granted.grant("write", "table db.orders", "ann", "dev")
    assert len(told()) == 1
    granted.grant("write", "table db.orders", "ann", "main")
    assert told() == []
    with acting_as("bob"):
        assert len(list(guard.refusals(ORDERS_TABLE, BASE, BASE))) == 1


def prepared(granted: GrantedServer) -> GrantedServer:
    """Branches `main` at 2 and `dev/a` at 3, which is ahead of it."""
    heads = [snapshot(1, 1), snapshot(2, 2, 1), snapshot(3, 3, 2)]
    assert granted.commit("root", *heads, set_branch("main", 2), set_branch("dev/a", 3)).status == 200
    return granted


def test_pattern_says_which_branches_are_written(granted: GrantedServer) -> None:
    prepared(granted).grant("write", "table db.orders", "ann", "dev/*")
    assert granted.commit("ann", snapshot(4, 4, 3), set_branch("dev/a", 4)).status == 200
    refused = granted.commit("ann", snapshot(5, 5, 2), set_branch("main", 5))
    assert refused.error == (403, "ForbiddenException")
    assert "expected the privilege `write` on table `db.orders` for ref `main`" in refused.message
    assert granted.commit("ann", set_property("a", "b")).status == 403
    assert granted.commit("ann", snapshot(5, 5, 4), set_branch("dev/b", 5)).status == 403
    granted.grant("manage-refs", "table db.orders", "ann", "dev/*")
    assert granted.commit("ann", snapshot(5, 5, 4), set_branch("dev/b", 5)).status == 200
    assert granted.commit("ann", {"action": "remove-snapshot-ref", "ref-name": "main"}).status == 403


def test_who_writes_to_one_branch_takes_no_time_from_the_others(granted: GrantedServer) -> None:
    prepared(granted).grant("write", "table db.orders", "ann", "dev/*")
    now = time.time_ns() // 1_000_000
    late, early = snapshot(4, 4, 3), snapshot(5, 4, 3)
    late["snapshot"]["timestamp-ms"] = now + 3_660_000
    refused = granted.commit("ann", late, set_branch("dev/a", 4))
    assert refused.error == (403, "ForbiddenException")
    assert refused.message == (
        "expected a snapshot at most 10 minutes ahead of the server's clock, found one 60 minutes ahead"
    )
    early["snapshot"]["timestamp-ms"] = now + 500_000
    assert granted.commit("ann", early, set_branch("dev/a", 5)).status == 200
    late["snapshot"] |= {"sequence-number": 5, "parent-snapshot-id": 5}
    granted.grant("write", "table db.orders", "ann")
    assert granted.commit("ann", late, set_branch("dev/a", 4)).status == 200, "who may write to all may say it"


def test_first_commit_to_main_is_a_write(granted: GrantedServer) -> None:
    granted.grant("write", "table db.orders", "ann")
    assert granted.commit("ann", snapshot(1, 1), set_branch("main", 1)).status == 200


def test_publisher_publishes_and_writes_nothing(granted: GrantedServer) -> None:
    prepared(granted).grant("read,publish", "table db.orders", "ann")
    assert granted.commit("ann", snapshot(4, 4, 2), set_branch("main", 4)).status == 403
    staged = snapshot(4, 4, 2)
    staged["snapshot"]["summary"]["wap.id"] = "w"
    assert granted.commit("ann", staged, set_branch("main", 3)).status == 403
    assert granted.commit("ann", set_branch("main", 3), PUBLISHED).status == 200


def test_publisher_who_forges_a_source_writes_nothing(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    sales = lake.create_table("db.sales", ORDERS)
    sales.append(order_rows(1)).refs.create_branch("dev")
    sales.append(order_rows(3))
    sales.append(order_rows(2), branch="dev").refs.create_branch("side")
    sales.append(order_rows(9), branch="side")
    granted.grant("read", "table db.sales", "ann")
    granted.grant("publish", "table db.sales", "ann", "main")
    heads = {name: ref.snapshot_id for name, ref in sales.metadata.refs.items()}
    forged = snapshot(77, sales.metadata.last_sequence_number + 1, heads["main"])
    forged["snapshot"]["manifest-list"] = sales.metadata.snapshot(heads["side"]).manifest_list
    forged["snapshot"]["summary"]["source-snapshot-id"] = str(heads["dev"])
    refused = granted.commit("ann", forged, set_branch("main", 77), table="sales")
    assert refused.error == (403, "ForbiddenException")
    assert "expected the privilege `write` on table `db.sales` for ref `main`" in refused.message
    with acting_as("ann"):
        lake.load_table("db.sales").refs.merge("dev", into="main")
    now = lake.load_table("db.sales")
    assert ids(now.scan().to_arrow()) == [1, 2, 3]
    forged["snapshot"]["sequence-number"] = now.metadata.last_sequence_number + 1
    forged["snapshot"]["parent-snapshot-id"] = now.refs["main"].snapshot_id
    granted.grant("write", "table db.sales", "ann", "main")
    assert granted.commit("ann", forged, set_branch("main", 77), table="sales").status == 200, "a writer may say it"


def test_who_may_only_read_commits_nothing(granted: GrantedServer) -> None:
    granted.grant("read", "table db.orders", "ann")
    for update in (PUBLISHED, {"action": "remove-properties", "removals": ["none"]}):
        assert granted.commit("ann", update).error == (403, "ForbiddenException")
    granted.grant("manage-refs", "table db.orders", "ann")
    assert granted.commit("ann", PUBLISHED).status == 403


def test_snapshot_that_comes_back_as_another_is_a_write(granted: GrantedServer) -> None:
    prepared(granted).grant("read,manage-refs", "table db.orders", "ann")
    forged = snapshot(2, 9, 1)
    forged["snapshot"]["manifest-list"] = "file:///nowhere/forged.avro"
    removed = {"action": "remove-snapshots", "snapshot-ids": [2]}
    refused = granted.commit("ann", set_branch("main", 1), removed, forged, set_branch("main", 2))
    assert (refused.status, "expected the privilege `write`" in refused.message) == (403, True)


def test_rules_about_refs_hold_for_those_with_privileges(granted: GrantedServer) -> None:
    prepared(granted)
    rule = set_property("bergline.ref-rules.main", "only-publish")
    assert granted.commit("root", rule).status == 200
    refused = granted.commit("root", snapshot(4, 4, 2), set_branch("main", 4))
    assert (refused.status, "protected by the rule" in refused.message) == (403, True)


def test_transaction_needs_the_privilege_for_each_table(granted: GrantedServer) -> None:
    granted.grant("create", "namespace db", "bob")
    body = {"name": "mine", "schema": {"type": "struct", "schema-id": 0, "fields": []}}
    assert granted("bob", "POST", "/v1/namespaces/db/tables", body).status == 200
    granted.grant("read", "table db.orders", "bob")

    def change(*names: str) -> int:
        changes = [
            {
                "identifier": {"namespace": ["db"], "name": name},
                "requirements": [],
                "updates": [set_property("a", name)],
            }
            for name in names
        ]
        return granted("bob", "POST", "/v1/transactions/commit", {"table-changes": changes}).status

    assert change("mine", "orders") == 403
    loaded = granted("bob", "GET", "/v1/namespaces/db/tables/mine").json["metadata"]["properties"]
    assert "a" not in loaded
    granted.grant("write", "table db.orders", "bob")
    assert change("mine", "orders") == 204


def test_server_itself_needs_no_privilege(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    lake.rename_table("db.orders", "db.sales")
    assert granted.context.catalog.pointer(TableName(("db",), "sales"))
    with acting_as("root"):
        lake.rename_table("db.sales", "db.orders")
