"""The endpoints of checks and approvals, and what they let in."""

from typing import Any

import pytest

from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient, bearer, set_branch, snapshot

pytestmark = pytest.mark.long

SNAPSHOT = "/bergline/v1/namespaces/db/tables/orders/snapshots/2"
CHECKS, APPROVALS = f"{SNAPSHOT}/checks", f"{SNAPSHOT}/approvals"
Headers = dict[str, dict[str, str]]


@pytest.fixture
def tokens(context: ServerContext, client: AsgiClient) -> Headers:
    """`main` at 1, which needs a check and an approval; etl has written 2 to `dev`."""
    client.namespace("db")
    client.table()
    client.commit(snapshot(1, 1), set_branch("main", 1))
    assert client("POST", "/bergline/v1/rules", {"pattern": "main", "rule": "checks=nulls; approvals=1"}).status == 204
    names = ("ann", "etl", "ci")
    for name in names:
        context.records.tokens.create(name, f"bl_{name}", 0, None)
    context.authenticator = Authenticator(context.records)
    headers = {name: bearer(f"bl_{name}") for name in names}
    assert client.commit(snapshot(2, 2, 1), set_branch("dev", 2), headers=headers["etl"]).status == 200
    return headers


def publish(client: AsgiClient, tokens: Headers, who: str = "ci") -> tuple[int, str]:
    response = client.commit(set_branch("main", 2), headers=tokens[who])
    return response.status, "" if response.status == 200 else response.message


def test_reviewed_head_gets_in(client: AsgiClient, context: ServerContext, tokens: Headers) -> None:
    assert "`nulls` passed" in publish(client, tokens)[1]
    for state in ("pending", "failed"):
        body: Any = {"name": "nulls", "state": state, "detail": "3 of 10"}
        assert client("POST", CHECKS, body, headers=tokens["ci"]).status == 204
        assert "`nulls` passed" in publish(client, tokens)[1]
    assert client("POST", CHECKS, {"name": "nulls", "state": "passed"}, headers=tokens["ci"]).status == 204
    assert client("GET", CHECKS, headers=tokens["ci"]).json["checks"][0]["principal"] == "ci"
    for who in ("etl", "ci"):
        assert client("POST", APPROVALS, {}, headers=tokens[who]).status == 204
        assert "1 approval of others, and has 0" in publish(client, tokens)[1], "the author's and the publisher's own"
    assert client("POST", APPROVALS, {"detail": "looks right"}, headers=tokens["ann"]).status == 204
    assert client("DELETE", APPROVALS, headers=tokens["ann"]).status == 204
    assert publish(client, tokens)[0] == 403
    assert client("POST", APPROVALS, {}, headers=tokens["ann"]).status == 204
    found = client("GET", APPROVALS, headers=tokens["ann"]).json["approvals"]
    assert [(a["principal"], a["withdrawn"]) for a in found] == [("ann", False), ("ci", False), ("etl", False)]
    assert publish(client, tokens) == (200, "")
    rows = {(e.principal, e.operation, e.resource) for e in context.records.audit()}
    assert {
        ("ci", "report_snapshot_check", "table/db/orders"),
        ("ann", "approve_snapshot", "table/db/orders"),
        ("ann", "withdraw_approval", "table/db/orders"),
    } <= rows


def test_reviews_are_void_for_another_snapshot_under_the_same_id(client: AsgiClient, tokens: Headers) -> None:
    ci, ann = tokens["ci"], tokens["ann"]
    assert client("POST", CHECKS, {"name": "nulls", "state": "passed"}, headers=ci).status == 204
    assert client("POST", APPROVALS, {}, headers=ann).status == 204
    gone = [{"action": "remove-snapshot-ref", "ref-name": "dev"}, {"action": "remove-snapshots", "snapshot-ids": [2]}]
    another = [snapshot(2, 3, 1), set_branch("dev", 2)]
    assert client.commit(*gone, headers=ci).status == 200
    assert client.commit(*another, headers=ci).status == 200
    assert "`nulls` passed" in publish(client, tokens)[1]
    assert client("GET", CHECKS, headers=ci).json["checks"][0]["state"] == "pending"
    assert client("GET", APPROVALS, headers=ci).json["approvals"][0]["withdrawn"]


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize(
    ("method", "path", "body", "error"),
    [
        ("POST", CHECKS, {"name": "nulls", "state": "great"}, (400, "BadRequestException")),
        ("POST", CHECKS, {"name": "", "state": "passed"}, (400, "IllegalArgumentException")),
        ("POST", CHECKS.replace("/2/", "/7/"), {"name": "nulls", "state": "passed"}, (404, "NotFoundException")),
        ("POST", APPROVALS.replace("/2/", "/x/"), {}, (400, "IllegalArgumentException")),
        ("POST", APPROVALS.replace("/2/", f"/{1 << 63}/"), {}, (400, "IllegalArgumentException")),
        ("GET", APPROVALS.replace("orders", "items"), None, (404, "NoSuchTableException")),
        ("DELETE", APPROVALS, None, (404, "NotFoundException")),
    ],
)
def test_wrong_reviews_are_refused(
    client: AsgiClient, tokens: Headers, method: str, path: str, body: Any, error: tuple[int, str]
) -> None:
    assert client(method, path, body, headers=tokens["ann"]).error == error
