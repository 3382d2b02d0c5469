"""What commits need, by what they do to refs."""

from asgi_client import set_branch, set_property, snapshot
from granted_server import GrantedServer

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import acting_as
from bergline.lake.lake import Lake

PUBLISHED = {"action": "set-properties", "updates": {"bergline.pipeline.published-runs": "{}"}}


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
