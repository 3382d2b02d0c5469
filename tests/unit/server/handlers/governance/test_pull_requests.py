"""Pull requests over HTTP, by two people with tokens of their own."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

import bergline
from bergline.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError, RefusedError
from bergline.governance.pull_requests.model import PullRequestState
from bergline.lake.lake import Lake
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient, bearer
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

PULLS = "/bergline/v1/pull-requests"
KEY = {"Idempotency-Key": "0193f2a1-0000-7000-8000-000000000001"}
TABLES = ("db.orders", "db.items")


@pytest.fixture(autouse=True)
def served(context: ServerContext) -> Lake:
    """Two tables with a branch `work`, and tokens for ann and bob."""
    for name in ("ann", "bob"):
        context.records.tokens.create(name, f"bl_{name}", 1, None)
    context.authenticator = Authenticator(context.records)
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    for name in TABLES:
        lake.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    lake.branch("work", TABLES)
    push(lake)
    return lake


@pytest.fixture
def port(context: ServerContext) -> Iterator[int]:
    """The server on a socket."""
    with on_socket(context) as listening:
        yield listening


def push(lake: Lake, *tables: str) -> None:
    for name in tables or TABLES:
        lake.load_table(name).append(pa.table({"id": [2]}), branch="work")


def connected(port: int, name: str) -> Lake:
    return bergline.connect(f"http://127.0.0.1:{port}", properties={"token": f"bl_{name}"})


def test_pull_request_from_opening_to_publishing(port: int, served: Lake, context: ServerContext) -> None:
    with connected(port, "ann") as ann, connected(port, "bob") as bob:
        request = ann.pull_requests.open("work", title="More rows")
        with pytest.raises(AlreadyExistsError, match="pull request 1 is already open to publish"):
            ann.pull_requests.open("work")
        with pytest.raises(RefusedError, match="cannot approve"):
            request.approve()
        seen = bob.pull_requests.get(1)
        assert [(t.snapshots, t.added_rows) for t in seen.overview.tables] == [(1, 1), (1, 1)]
        push(served, "db.items")
        with pytest.raises(ConflictError, match="moved"):
            seen.approve()
        seen.look()
        seen.approve().comment("fine").report_check("nulls", "failed", detail="one row")
        with pytest.raises(ConflictError, match="has changed since you looked at it"):
            request.publish()
        request.look()
        with pytest.raises(RefusedError, match="check `nulls` is failed"):
            request.publish()
        seen.report_check("nulls", "passed")
        overview = request.look()
        assert (overview.approved_by, overview.obstacles) == (("bob",), ())
        assert request.publish().state is PullRequestState.PUBLISHED
        assert [r.number for r in ann.pull_requests.list("published")] == [1]
        with pytest.raises(ConflictError, match="which is published"):
            seen.close()
        with pytest.raises(NotFoundError, match="no pull request 5"):
            ann.pull_requests.get(5)
    assert served.load_table("db.items").scan().to_arrow().num_rows == 3
    assert served.tables_with_ref("work") == []
    audited = [(entry.principal, entry.operation, entry.resource) for entry in context.records.audit()]
    assert ("ann", "open_pull_request", "pull-request") in audited
    assert ("bob", "approve_pull_request", "pull-request/1") in audited
    assert ("ann", "publish_pull_request", "table/db/items") in audited


def test_withdraw_close_reopen_and_edit(port: int) -> None:
    with connected(port, "ann") as ann, connected(port, "bob") as bob:
        request = ann.pull_requests.open("work")
        other = bob.pull_requests.get(1).approve().withdraw()
        assert other.overview.approved_by == ()
        assert request.close().state is PullRequestState.CLOSED
        assert ann.pull_requests.list() == ()
        assert request.reopen().edit(title="Rows", description="of May").record.title == "Rows"
        assert request.overview.record.description == "of May"


def test_repeated_key_is_one_pull_request_and_one_publish(client: AsgiClient) -> None:
    body, ann = {"title": "More rows", "branch": "work"}, bearer("bl_ann")
    first = client("POST", PULLS, body, headers={**ann, **KEY})
    again = client("POST", PULLS, body, headers={**ann, **KEY})
    assert (first.status, again.json) == (200, first.json)
    overview = client("GET", f"{PULLS}/1", headers=ann).json
    heads = [{"name": t["name"], "snapshot-id": t["head"]} for t in overview["tables"]]
    key = {"Idempotency-Key": "0193f2a1-0000-7000-8000-000000000002"}
    done = client("POST", f"{PULLS}/1/publish", {"heads": heads}, headers={**ann, **key})
    assert done.json["state"] == "published"
    assert client("POST", f"{PULLS}/1/publish", {"heads": heads}, headers={**ann, **key}).json == done.json
    assert client("POST", f"{PULLS}/1/publish", {"heads": heads}, headers=ann).error == (409, "CommitFailedException")


def test_pages_are_newest_first(client: AsgiClient, served: Lake) -> None:
    ann = bearer("bl_ann")
    for number in range(5):
        served.branch(f"b{number}", ["db.orders"])
        assert client("POST", PULLS, {"title": "t", "branch": f"b{number}"}, headers=ann).status == 200
    numbers, token = [], ""
    while True:
        page = client("GET", PULLS, query={"pageSize": "2", "pageToken": token, "state": "open"}, headers=ann).json
        numbers += [r["number"] for r in page["pull-requests"]]
        token = page.get("next-page-token")
        if not token:
            break
    assert numbers == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", f"{PULLS}/x", None, 400),
        ("GET", f"{PULLS}/99", None, 404),
        ("GET", f"{PULLS}?state=merged", None, 400),
        ("POST", PULLS, {"title": "t"}, 400),
        ("POST", PULLS, {"title": "t", "branch": "nope"}, 404),
        ("POST", f"{PULLS}/99/close", None, 404),
        ("POST", f"{PULLS}/99/publish", {"heads": []}, 404),
        ("POST", f"{PULLS}/99/checks", {"name": "n", "state": "green"}, 400),
    ],
)
def test_bad_requests_are_told(client: AsgiClient, method: str, path: str, body: object, status: int) -> None:
    path, _, query = path.partition("?")
    asked = dict([query.split("=")]) if query else None
    assert client(method, path, body, query=asked, headers=bearer("bl_ann")).status == status


def test_without_a_token_nothing_is_told(client: AsgiClient) -> None:
    assert client("GET", PULLS).status == 401
    assert client("POST", PULLS, {"title": "t", "branch": "work"}).status == 401


def test_unknown_state_is_refused_before_it_is_sent(port: int) -> None:
    with connected(port, "ann") as ann, pytest.raises(InvalidInputError, match="one of open, closed, published"):
        ann.pull_requests.list("merged")


def test_branch_that_is_gone_is_told(port: int, served: Lake) -> None:
    with connected(port, "ann") as ann, connected(port, "bob") as bob:
        ann.pull_requests.open("work")
        seen = bob.pull_requests.get(1)
        served.load_table("db.items").refs.drop_branch("work")
        with pytest.raises(NotFoundError, match=r"branch `work` of table `db\.items` is gone"):
            seen.approve()


def test_merge_that_is_tried_out_is_a_publish(port: int, served: Lake) -> None:
    served.rules.protect("main", only_publish=True)
    served.branch("other", ["db.orders"])
    served.load_table("db.orders").append(pa.table({"id": [3]}), branch="other")
    with connected(port, "ann") as ann:
        request = ann.pull_requests.open("work")
        served.publish("other")
        assert [str(table.standing) for table in request.look().tables] == ["fast-forward", "diverged"]
        assert request.overview.obstacles == ()
        assert request.publish(method="merge").state is PullRequestState.PUBLISHED


def test_with_grants_tables_are_those_that_the_author_may_read_and_everybody_is_told_the_rules(
    port: int, served: Lake
) -> None:
    served.rules.protect("main", only_publish=True, checks=["nulls"])
    served.access.grant("administer", on="catalog", to="root")
    served.access.grant("read", on="table db.orders", to="ann")
    with connected(port, "ann") as ann:
        with pytest.raises(NotFoundError, match="no table with a branch `wor`"):
            ann.pull_requests.open("wor")
        request = ann.pull_requests.open("work")
        assert [str(table.name) for table in request.record.tables] == ["db.orders"]
        assert "`nulls` passed" in request.look().obstacles[0]
        served.rules.unprotect("main")
        assert "privilege `publish` on table `db.orders` for ref `main`" in request.look().obstacles[0]


def test_pull_request_that_is_hidden_stops_and_tells_nobody(port: int, served: Lake) -> None:
    served.access.grant("administer", on="catalog", to="root")
    served.access.grant("read", on="catalog", to="bob")
    served.access.grant("read", on="table db.orders", to="ann")
    with connected(port, "ann") as ann, connected(port, "bob") as bob:
        assert bob.pull_requests.open("work").number == 1
        with pytest.raises(NotFoundError):
            ann.pull_requests.get(1)
        assert [str(table.name) for table in ann.pull_requests.open("work").record.tables] == ["db.orders"]
        with pytest.raises(AlreadyExistsError, match="pull request 2 is already open"):
            ann.pull_requests.open("work")


def test_obstacles_are_all_that_publishing_would_be_refused_for(port: int, served: Lake) -> None:
    served.rules.protect("main", only_publish=True, approvals=1)
    served.access.grant("administer", on="catalog", to="root")
    served.access.grant("read", on="catalog", to="ann")
    with connected(port, "ann") as ann:
        request = ann.pull_requests.open("work", tables=["db.orders"])
        rule, publish, manage = request.look().obstacles
        assert "with 1 approval of others" in rule
        assert "privilege `publish` on table `db.orders` for ref `main`" in publish
        assert "privilege `manage-refs` on table `db.orders` for ref `work`" in manage
        assert manage.endswith("or keep the branch")
        served.rules.unprotect("main")
        served.access.grant("publish", on="namespace db", ref="main", to="ann")
        assert request.look().obstacles == (manage,)
        with pytest.raises(RefusedError, match=r"`manage-refs` on table `db\.orders` for ref `work`"):
            request.publish()
        request.look()
        assert request.publish(keep_branch=True).state is PullRequestState.PUBLISHED


def test_approval_that_does_not_count_is_told_with_why(port: int, served: Lake, context: ServerContext) -> None:
    served.rules.protect("main", approvals=2)
    context.records.tokens.create("cam", "bl_cam", 1, None)
    with connected(port, "ann") as ann, connected(port, "bob") as bob, connected(port, "cam") as cam:
        cam.load_table("db.orders").append(pa.table({"id": [3]}), branch="work")
        ann.pull_requests.open("work", tables=["db.orders"])
        for lake in (bob, cam):
            lake.pull_requests.get(1).approve()
        wrote, publishes = "who wrote to the branch cannot approve it", "who publishes it cannot approve it"
        for lake, uncounted in (ann, {"cam": wrote}), (bob, {"bob": publishes, "cam": wrote}):
            overview = lake.pull_requests.get(1).overview
            assert (overview.approved_by, overview.uncounted) == (("bob", "cam"), uncounted)
            assert f"has {2 - len(uncounted)}" in overview.obstacles[0]
        served.rules.unprotect("main")
        assert bob.pull_requests.get(1).overview.uncounted == {}


def test_reviews_for_another_target_do_not_count_for_main(port: int, served: Lake, context: ServerContext) -> None:
    """Bob may publish into `load/b`, and has no right on `main`: what he says there is nothing about `main`."""
    context.records.tokens.create("cam", "bl_cam", 1, None)
    served.rules.protect("main", approvals=1, checks=["nulls"])
    served.branch("load/b", ["db.orders"])
    served.access.grant("administer", on="catalog", to="root")
    served.access.grant("read", on="catalog", to="ann")
    served.access.grant("manage-refs", on="catalog", to="ann")
    served.access.grant("read", on="catalog", to="bob")
    served.access.grant("read", on="catalog", to="cam")
    served.access.grant("publish", on="catalog", ref="load/*", to="bob")
    served.access.grant("publish", on="catalog", ref="main", to="cam")
    served.access.grant("publish", on="catalog", to="ann")
    with connected(port, "ann") as ann, connected(port, "bob") as bob, connected(port, "cam") as cam:
        into_main = ann.pull_requests.open("work", tables=["db.orders"])
        ann.pull_requests.open("work", into="load/b", tables=["db.orders"])
        bob.pull_requests.get(2).approve().report_check("nulls", "passed")
        for act in (lambda: bob.pull_requests.get(1).approve(), lambda: _check(bob, 1)):
            with pytest.raises(RefusedError, match=r"privilege `publish` on table `db\.orders` for ref `main`"):
                act()
        head = served.load_table("db.orders").refs["work"].snapshot_id
        with pytest.raises(RefusedError, match="privilege `publish`"):
            bob.reviews.approve("db.orders", head)
        overview = into_main.look()
        assert (overview.approved_by, overview.tables[0].checks) == ((), ())
        with pytest.raises(RefusedError, match="`nulls` passed, and only with 1 approval of others, and has 0"):
            into_main.publish()
        with pytest.raises(RefusedError, match="`nulls` passed, and only with 1 approval of others, and has 0"):
            ann.publish("work", tables=["db.orders"])
        bob.pull_requests.get(2).report_check("nulls", "failed")
        _check(cam, 1)
        cam.pull_requests.get(1).approve()
        into_main.look()
        assert into_main.publish().state is PullRequestState.PUBLISHED
        assert served.load_table("db.orders").scan().to_arrow().num_rows == 2


def _check(lake: Lake, number: int) -> None:
    lake.pull_requests.get(number).report_check("nulls", "passed")
