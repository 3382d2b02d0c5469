"""`lake@staging`: the configuration gives a prefix, and behind it the whole lake is at that ref."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

import bergline
from bergline import Lake, Table
from bergline.format.metadata.json import parse_metadata
from bergline.lake.lake import connect
from bergline.server.context.context import ServerContext
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing
from support.servers.asgi_client import AsgiClient, AsgiResponse, set_branch, set_property, snapshot
from support.servers.granted_server import GrantedServer, with_lists
from support.servers.server_on_socket import on_socket
from support.servers.waiting_commits import body_of, queued, send_commit

TABLE = "namespaces/db/tables/orders"
STAGING = f"/v1/branch.staging/{TABLE}"
MAIN = f"/v1/{TABLE}"


@pytest.fixture
def lake(context: ServerContext) -> Lake:
    opened = Lake(context.catalog, "lake")
    opened.create_namespace("db")
    return opened


@pytest.fixture
def orders(lake: Lake) -> Table:
    """Two snapshots on `main`, one more on `staging`; tag `v1` at the first."""
    table = lake.create_table("db.orders", ORDERS)
    table.append(order_rows(1)).refs.create_tag("v1")
    table.append(order_rows(2)).refs.create_branch("staging")
    return table.append(order_rows(3), branch="staging")


def config(client: AsgiClient, warehouse: str) -> AsgiResponse:
    return client("GET", "/v1/config", query={"warehouse": warehouse})


def prefix(client: AsgiClient, ref: str) -> str:
    found: str = config(client, f"lake@{ref}").json["overrides"]["prefix"]
    return found


def shown(answer: AsgiResponse) -> Any:
    assert answer.status == 200, answer
    metadata = answer.json["metadata"]
    parse_metadata(json.dumps(metadata).encode(), "the answer")  # which checks that its parts agree
    return metadata


def rows(lake: Lake, ref: str | None = None, table: str = "db.orders") -> list[int]:
    return ids(lake.load_table(table).scan(ref=ref).to_arrow())


class TestConfig:
    def test_prefix_names_the_ref(self, client: AsgiClient, lake: Lake, orders: Table) -> None:
        orders.refs.create_branch("fix/50% é")
        assert prefix(client, "fix/50% é") == "branch.fix~2F50~25~20~C3~A9"
        assert prefix(client, "2026-11-01T02:00:00+02:00") == "time.2026-11-01T00~3A00~3A00.000Z"

    @pytest.mark.parametrize(
        ("warehouse", "status", "message"),
        [
            ("lake@", 400, "expected a branch, a tag or a time after `@`"),
            ("other@staging", 404, "no warehouse `other`"),
            ("lake@2026-13-01T00:00Z", 400, "expected a time such as"),
        ],
    )
    @pytest.mark.usefixtures("orders")
    def test_what_is_none_is_said(self, client: AsgiClient, warehouse: str, status: int, message: str) -> None:
        answer = config(client, warehouse)
        assert (answer.status, message in answer.message) == (status, True), answer

    def test_branch_in_any_table_is_a_branch(self, client: AsgiClient, lake: Lake, orders: Table) -> None:
        """Where the name is a tag in another table, that one is read only."""
        lake.create_table("db.items", ORDERS).append(order_rows(7)).refs.create_tag("staging")
        lake.load_table("db.items").append(order_rows(8))
        assert prefix(client, "staging") == "branch.staging"
        path = STAGING.replace("orders", "items")
        assert (
            shown(client("GET", path))["current-snapshot-id"] == lake.load_table("db.items").refs["staging"].snapshot_id
        )
        answer = client("POST", path, body_of(snapshot(9, 9, 1), set_branch("main", 9)))
        assert answer.error == (403, "ForbiddenException")
        assert "`db.items` is read at tag `staging`, where nothing can be written" in answer.message


class TestPrefix:
    def test_clients_may_encode_it(self, client: AsgiClient, orders: Table) -> None:
        orders.refs.create_branch("fix/50%")
        assert prefix(client, "fix/50%") == "branch.fix~2F50~25"
        orders.append(order_rows(4), branch="fix/50%")
        for segment in ("branch.fix~2F50~25", "branch.fix%7E2F50%7E25"):
            assert shown(client("GET", f"/v1/{segment}/{TABLE}"))["refs"]["main"]["snapshot-id"] == (
                orders.refresh().refs["fix/50%"].snapshot_id
            )

    @pytest.mark.parametrize(
        "segment",
        ["branch.fix%257E2F50", "branch.fix%252F50", "branch.fix%2F50", "branch.~zz", "time.yesterday", "tag.%20"],
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_one_that_nobody_gave_out_is_neither_main_nor_another_branch(
        self, client: AsgiClient, orders: Table, segment: str, method: str
    ) -> None:
        body = body_of(set_property("a", "b")) if method == "POST" else None
        answer = client(method, f"/v1/{segment}/{TABLE}", body)
        assert answer.error == (400, "IllegalArgumentException")
        assert "expected a ref of the lake in the path" in answer.message
        assert "warehouse=lake@staging" in answer.message
        assert orders.metadata_location == orders.refresh().metadata_location


class TestLoad:
    def test_main_is_the_ref(self, client: AsgiClient, orders: Table) -> None:
        refs = orders.refs
        for path, ref, log in ((STAGING, "staging", 3), (STAGING.replace("branch.staging", "tag.v1"), "v1", 1)):
            found = shown(client("GET", path))
            assert found["current-snapshot-id"] == found["refs"]["main"]["snapshot-id"] == refs[ref].snapshot_id
            assert found["refs"]["lake_main"]["snapshot-id"] == refs["main"].snapshot_id
            assert len(found["snapshot-log"]) == log
            assert found["snapshot-log"][-1]["snapshot-id"] == refs[ref].snapshot_id
            assert len(found["snapshots"]) == 3

    def test_each_ref_has_its_own_etag(self, client: AsgiClient, lake: Lake, orders: Table) -> None:
        paths = (MAIN, STAGING, STAGING.replace("branch.staging", "tag.v1"))
        tags = {path: client("GET", path).headers["etag"] for path in paths}
        assert len(set(tags.values())) == 3
        for path in paths:
            for tag in tags.values():
                answer = client("GET", path, headers={"If-None-Match": tag})
                assert answer.status == (304 if tag == tags[path] else 200)
        orders.append(order_rows(4))
        assert [client("GET", path, headers={"If-None-Match": tags[path]}).status for path in paths] == [200] * 3

    def test_snapshots_of_refs_alone(self, client: AsgiClient, orders: Table) -> None:
        some, every = (client("GET", STAGING, query={"snapshots": mode}) for mode in ("refs", "all"))
        assert some.headers["etag"] != every.headers["etag"]
        assert {s["snapshot-id"] for s in shown(some)["snapshots"]} == {
            orders.refs[ref].snapshot_id for ref in orders.refs
        }
        assert len(shown(every)["snapshots"]) == 3
        main = client("GET", MAIN, query={"snapshots": "refs"})
        assert shown(main)["current-snapshot-id"] != shown(some)["current-snapshot-id"]

    def test_lake_main_that_is_a_branch_of_the_table_stays_it(self, client: AsgiClient, orders: Table) -> None:
        orders.append(order_rows(5), branch="staging").refs.create_branch("lake_main", at="v1")
        found = shown(client("GET", STAGING))
        assert found["refs"]["lake_main"]["snapshot-id"] == orders.refs["v1"].snapshot_id
        at_it = shown(client("GET", STAGING.replace("staging", "lake_main")))
        assert at_it["current-snapshot-id"] == orders.refs["v1"].snapshot_id
        assert at_it["refs"]["lake_main"] == at_it["refs"]["main"]

    def test_table_without_the_tag_is_not_found(self, client: AsgiClient, lake: Lake, orders: Table) -> None:
        lake.create_table("db.items", ORDERS).append(order_rows(1))
        answer = client("GET", "/v1/tag.v1/namespaces/db/tables/items")
        assert answer.error == (404, "NoSuchTableException")

    def test_scan_is_planned_there(self, client: AsgiClient, orders: Table) -> None:
        planned = [
            sorted(
                task["data-file"]["record-count"] for task in client("POST", f"{path}/plan", {}).json["file-scan-tasks"]
            )
            for path in (MAIN, STAGING, STAGING.replace("branch.staging", "tag.v1"))
        ]
        assert planned == [[1, 1], [1, 1, 1], [1]]


class TestCommit:
    def test_requirement_on_the_branch_holds_for_it_and_not_for_main(
        self, client: AsgiClient, lake: Lake, orders: Table
    ) -> None:
        of_main = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": orders.refs["main"].snapshot_id}
        body = body_of(snapshot(9, 4), set_branch("main", 9), requirements=[of_main])
        assert client("POST", STAGING, body).error == (409, "CommitFailedException")
        seen_as = {**of_main, "ref": "lake_main"}
        assert client("POST", STAGING, body_of(set_property("a", "b"), requirements=[seen_as])).status == 200

    @pytest.mark.parametrize("ref", ["tag.v1", "time.2100-01-01T00~3A00~3A00.000Z"])
    def test_nothing_is_written_at_a_tag_or_a_time(self, client: AsgiClient, orders: Table, ref: str) -> None:
        for change in (set_property("a", "b"), set_branch("other", orders.refs["v1"].snapshot_id)):
            answer = client("POST", f"/v1/{ref}/{TABLE}", body_of(change))
            assert answer.error == (403, "ForbiddenException")
            assert "where nothing can be written" in answer.message
            assert "bergline branch create" in answer.message
        changes = {"table-changes": [{"identifier": {"namespace": ["db"], "name": "orders"}, **body_of(change)}]}
        assert client("POST", f"/v1/{ref}/transactions/commit", changes).status == 403
        created = {"name": "new", "schema": {"type": "struct", "schema-id": 0, "fields": []}}
        assert client("POST", f"/v1/{ref}/namespaces/db/tables", created).status == 403
        assert client("POST", f"/v1/{ref}/namespaces", {"namespace": ["new"]}).status == 403
        assert orders.metadata_location == orders.refresh().metadata_location

    def test_key_replays_what_was_answered_at_that_ref(
        self, client: AsgiClient, context: ServerContext, orders: Table
    ) -> None:
        key = {"Idempotency-Key": str(uuid4())}
        body = body_of(*with_lists(context, orders.name, [snapshot(9, 4), set_branch("main", 9)]))
        first = client("POST", STAGING, body, headers=key)
        orders.refresh().append(order_rows(5), branch="staging")
        second = client("POST", STAGING, body, headers=key)
        assert shown(first) == shown(second)
        assert shown(second)["current-snapshot-id"] == 9
        assert first.headers["etag"] == second.headers["etag"]
        assert client("POST", MAIN, body, headers=key).status == 422
        assert client("POST", STAGING.replace("staging", "other"), body, headers=key).status == 422


def test_commits_that_wait_together_land_where_each_was_sent(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table
) -> None:
    """To `main` and at two refs, one of which begins with them: one metadata file, each branch with its own."""
    lake.branches.create("dev")
    versions = len(orders.metadata.metadata_log)
    main, staging = orders.refs["main"].snapshot_id, orders.refs["staging"].snapshot_id

    def append(number: int, parent: int) -> dict[str, Any]:
        require = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}
        updates = with_lists(context, orders.name, [snapshot(number, 4, parent), set_branch("main", number)])
        return body_of(*updates, requirements=[require])

    sent = [
        (MAIN, append(11, main)),
        (STAGING, append(12, staging)),
        (f"/v1/branch.dev/{TABLE}", append(13, main)),
        (STAGING, append(14, staging)),
        (f"/v1/tag.v1/{TABLE}", append(15, main)),
    ]

    async def run() -> list[AsgiResponse]:
        release = await context.locks.take([orders.name])
        tasks = []
        for number, (path, body) in enumerate(sent, 1):
            tasks.append(asyncio.create_task(send_commit(client, body, path=path)))
            await queued(client, number)
        release()
        return list(await asyncio.gather(*tasks))

    answers = asyncio.run(run())
    assert [a.status for a in answers] == [200, 200, 200, 409, 403], answers
    assert [shown(a)["current-snapshot-id"] for a in answers[:3]] == [11, 12, 13]
    assert len({a.headers["etag"] for a in answers[:3]}) == 3
    refs = orders.refresh().refs
    assert [refs[name].snapshot_id for name in ("main", "staging", "dev")] == [11, 12, 13]
    assert orders.metadata.snapshot(13).parent_snapshot_id == main
    assert len(orders.metadata.metadata_log) == versions + 1


def test_our_clients_appends_are_put_on_the_head_of_the_branch(
    context: ServerContext, lake: Lake, orders: Table
) -> None:
    lake.branches.create("staging")
    lake.create_table("db.items", ORDERS).append(order_rows(1))
    with on_socket(context) as port, connect(f"http://127.0.0.1:{port}", warehouse="lake@staging") as at:
        handles = [at.load_table(name) for name in ("db.orders", "db.orders", "db.items", "db.items")]
        for number, handle in enumerate(handles, 10):
            lake.load_table(handle.name).append(order_rows(number + 10))
            handle.append(order_rows(number))
    assert rows(lake, "staging") == [1, 2, 3, 10, 11]
    assert rows(lake) == [1, 2, 20, 21]
    assert rows(lake, "staging", "db.items") in ([1, 12, 13], [1, 12, 13, 22])
    assert rows(lake, None, "db.items") == [1, 22, 23]
    for name in ("db.orders", "db.items"):
        check_nothing_is_missing(lake.load_table(name))


class TestBadTimes:
    """What happens meanwhile to a table that an engine has loaded at a ref."""

    @pytest.fixture
    def at(self, context: ServerContext, orders: Table) -> Iterator[Lake]:
        with on_socket(context) as port, connect(f"http://127.0.0.1:{port}", warehouse="lake@staging") as opened:
            yield opened

    def test_table_is_dropped_and_created_again_on_main(self, lake: Lake, at: Lake) -> None:
        """The new one has no branch: the old one's rows are in neither."""
        handle = at.load_table("db.orders")
        lake.drop_table("db.orders")
        lake.create_table("db.orders", ORDERS).append(order_rows(100))
        with pytest.raises(bergline.errors.BerglineError, match="it was dropped and re-created"):
            handle.append(order_rows(4))
        assert rows(lake) == rows(at) == [100]
        assert set(lake.load_table("db.orders").refs) == {"main"}

    def test_branch_is_dropped_while_an_engine_writes(self, client: AsgiClient, lake: Lake, orders: Table) -> None:
        """What it has read is nowhere any more: its commit is refused, and rows of the branch do not come back."""
        head = orders.refs["staging"].snapshot_id
        require = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}
        body = body_of(snapshot(9, 4, head), set_branch("main", 9), requirements=[require])
        lake.drop_ref("staging")
        assert client("POST", STAGING, body).error == (404, "NotFoundException")
        lake.branches.create("staging")  # another one of its name
        assert client("POST", STAGING, body).error == (409, "CommitFailedException")
        assert rows(lake) == [1, 2]
        assert set(orders.refresh().refs) == {"main", "v1"}

    def test_main_is_rolled_back_below_where_the_branch_began(self, lake: Lake, at: Lake, orders: Table) -> None:
        """The branch keeps its rows; published, what it began with comes back, which only a fast-forward can do."""
        orders.refs.rollback(to="v1")
        at.load_table("db.orders").append(order_rows(4))
        assert rows(at) == [1, 2, 3, 4]
        assert rows(lake) == [1]
        lake.publish("staging")
        assert rows(lake) == [1, 2, 3, 4]

    def test_first_commit_after_main_was_rolled_back_is_refused(
        self, client: AsgiClient, lake: Lake, orders: Table
    ) -> None:
        """It has read rows that are taken back: no branch begins there."""
        main = orders.refs["main"].snapshot_id
        lake.branches.create("dev")
        orders.refs.rollback(to="v1")
        require = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main}
        body = body_of(snapshot(9, 4, main), set_branch("main", 9), requirements=[require])
        assert client("POST", f"/v1/branch.dev/{TABLE}", body).error == (409, "CommitFailedException")
        assert "dev" not in orders.refresh().refs


def test_grant_for_the_branch_is_enough_there_and_nowhere_else(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    lake.drop_table("db.orders")
    orders = lake.create_table("db.orders", ORDERS)
    orders.append(order_rows(1)).refs.create_branch("staging")
    orders.refs.create_branch("dev")
    granted.grant("read", "table db.orders", "ann")
    granted.grant("write", "table db.orders", "ann", "staging")
    head = orders.refs["main"].snapshot_id

    def body(number: int) -> Any:
        return body_of(*granted.with_lists(snapshot(number, 2, head), set_branch("main", number)))

    assert granted("ann", "POST", STAGING, body(9)).status == 200
    for path, ref in ((MAIN, "main"), (STAGING.replace("staging", "dev"), "dev")):
        answer = granted("ann", "POST", path, body(10))
        assert answer.error == (403, "ForbiddenException")
        assert f"for ref `{ref}`" in answer.message
    assert granted("bob", "GET", STAGING).error == (404, "NoSuchTableException")
    assert granted("bob", "POST", STAGING, body(11)).status == 404
    assert orders.refresh().refs["staging"].snapshot_id == 9
    assert orders.refs["main"].snapshot_id == orders.refs["dev"].snapshot_id == head


def test_names_of_refs_are_not_for_who_may_see_no_table(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    lake.drop_table("db.orders")
    lake.create_table("db.orders", ORDERS).append(order_rows(1)).refs.create_branch("staging")
    answer = granted("bob", "GET", "/v1/config", query={"warehouse": "lake@stagin"})
    assert answer.status == 404
    assert "`staging`" not in answer.message


def test_rule_of_the_branch_holds_there(client: AsgiClient, lake: Lake, orders: Table) -> None:
    orders.refs.protect("staging", no_rollback=True)
    answer = client("POST", STAGING, body_of(set_branch("main", orders.refs["v1"].snapshot_id)))
    assert answer.error == (403, "ForbiddenException")
    assert "branch `staging` of table `db.orders` is protected" in answer.message
    orders.refs.protect("main", only_publish=True)
    assert client("POST", STAGING, body_of(snapshot(9, 4), set_branch("main", 9))).status == 200
    assert client("POST", MAIN, body_of(snapshot(10, 5), set_branch("main", 10))).status == 403
