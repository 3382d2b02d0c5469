"""The retention of a ref, set by one client while another has a commit under way that knows only the old one."""

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from bergline.server.context.context import ServerContext
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing, pointer_line
from support.servers.asgi_client import AsgiClient, set_branch, set_property, snapshot
from support.servers.late_commits import Late
from support.servers.server_on_socket import on_socket
from support.servers.waiting_commits import body_of, commit_all

pytestmark = pytest.mark.long

DAY_MS = 86_400_000


@pytest.fixture
def uri(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def table(uri: str) -> Iterator[Table]:
    """With two snapshots on `main`, of which `dev` has one."""
    with bergline.connect(uri) as lake:
        lake.create_namespace("db")
        created = lake.create_table("db.t", ORDERS).append(order_rows(1))
        created.refs.create_branch("dev", max_ref_age_ms=1)
        yield created.append(order_rows(2))


def keep_for_days(table: Table, ref: str = "main") -> None:
    table.refs.set_retention(ref, min_snapshots_to_keep=10, max_ref_age_ms=DAY_MS)


def late(uri: str, rival: Callable[[], object], act: Callable[[Table], object]) -> None:
    """What a client does whose commit comes after what a rival does."""
    with bergline.connect(uri) as lake:
        act(Lake(Late(lake.catalog, rival), "lake").load_table("db.t"))  # type: ignore[arg-type]


def retention(table: Table, ref: str = "main") -> tuple[int | None, ...]:
    return table.refresh().metadata.refs[ref].retention


def set_only(_: Table) -> None:
    """The rival does nothing but set the retention."""


def append_elsewhere(table: Table) -> None:
    table.append(order_rows(8), branch="dev")


def append_here(table: Table) -> None:
    table.append(order_rows(8))


@pytest.mark.parametrize("before", [set_only, append_elsewhere, append_here])
def test_late_append_keeps_it(uri: str, table: Table, before: Callable[[Table], None]) -> None:
    def rival() -> None:
        before(table)
        keep_for_days(table)

    late(uri, rival, lambda slow: slow.append(order_rows(9)))
    assert retention(table) == (10, None, DAY_MS)
    assert ids(table.scan().to_arrow()) == ([1, 2, 8, 9] if before is append_here else [1, 2, 9])
    check_nothing_is_missing(table)
    pointer_line(table)


@pytest.mark.parametrize(
    ("act", "age"),
    [
        (lambda slow: slow.delete("id = 1"), None),
        (lambda slow: slow.refs.rollback(to="dev"), None),
        (lambda slow: slow.refs.set_retention("main", max_snapshot_age_ms=5), 5),
    ],
)
def test_late_change_of_another_kind_keeps_it(
    uri: str, table: Table, act: Callable[[Table], object], age: int | None
) -> None:
    late(uri, lambda: keep_for_days(table), act)
    assert retention(table) == (10, age, DAY_MS)


def test_late_transaction_keeps_it(uri: str, table: Table) -> None:
    with bergline.connect(uri) as lake:
        other = lake.create_table("db.u", ORDERS)
        slow = Lake(Late(lake.catalog, lambda: keep_for_days(table)), "lake")  # type: ignore[arg-type]
        with slow.transaction() as tx:
            tx.load_table("db.t").append(order_rows(9))
            tx.load_table("db.u").append(order_rows(9))
        assert retention(table) == (10, None, DAY_MS)
        assert ids(table.scan().to_arrow()) == [1, 2, 9]
        assert ids(other.refresh().scan().to_arrow()) == [9]


def test_renamed_branch_keeps_it(uri: str, table: Table) -> None:
    late(uri, lambda: keep_for_days(table, "dev"), lambda slow: slow.refs.rename_branch("dev", to="new"))
    assert retention(table, "new") == (10, None, DAY_MS)


def test_late_expiry_heeds_it(uri: str, table: Table) -> None:
    """What was about to go, the first snapshot and a branch of its age, is to stay by now."""

    def rival() -> None:
        keep_for_days(table)
        keep_for_days(table, "dev")

    soon = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    late(uri, rival, lambda slow: slow.expire(older_than=soon))
    assert ids(table.refresh().scan(ref="dev").to_arrow()) == [1]
    assert len(table.metadata.snapshots) == 2
    check_nothing_is_missing(table)


def test_group_refuses_only_the_commit_that_requires_another_one(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()
    assert client.commit(snapshot(1, 1), set_branch("main", 1)).status == 200
    known = {"type": "bergline.assert-ref-retention", "ref": "main"}
    kept = body_of(set_branch("main", 1) | {"max-ref-age-ms": 7})
    late = body_of(snapshot(2, 2, 1), set_branch("main", 2), requirements=[known])
    answers = commit_all(client, kept, late, body_of(set_property("a", "1")))
    assert [a.status for a in answers] == [200, 409, 200]
    assert "Requirement failed: retention of main has changed: expected ref `main`" in answers[1].message
    assert "with no retention of its own, found max-ref-age-ms 7: it was set meanwhile" in answers[1].message
    assert load(client)["refs"]["main"] == {"snapshot-id": 1, "type": "branch", "max-ref-age-ms": 7}
    known = known | {"max-ref-age-ms": 7}
    again = body_of(snapshot(2, 2, 1), set_branch("main", 2) | {"max-ref-age-ms": 8}, requirements=[known])
    assert [a.status for a in commit_all(client, again)] == [200]
    assert load(client)["refs"]["main"]["max-ref-age-ms"] == 8


SEVEN = {"max-ref-age-ms": 7}


@pytest.fixture
def kept(client: AsgiClient) -> AsgiClient:
    """A client of a table whose `main` has a retention."""
    client.namespace("db")
    client.table()
    assert client.commit(snapshot(1, 1), set_branch("main", 1) | SEVEN).status == 200
    return client


@pytest.mark.parametrize("named", [{}, {"max-ref-age-ms": 5, "min-snapshots-to-keep": 2}])
def test_branch_that_moves_to_a_new_snapshot_keeps_it_whatever_the_client_knew(
    kept: AsgiClient, named: dict[str, int]
) -> None:
    """PyIceberg names none with every append, and Java what the branch had when it was read."""
    at = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}
    assert kept.commit(snapshot(2, 2, 1), set_branch("main", 2) | named, requirements=[at]).status == 200
    assert load(kept)["refs"]["main"] == {"snapshot-id": 2, "type": "branch", **SEVEN}


@pytest.mark.parametrize(
    "updates",
    [
        [set_branch("main", 1) | {"max-ref-age-ms": 9}],
        [snapshot(2, 2, 1), set_branch("main", 2), set_branch("main", 2) | {"max-ref-age-ms": 9}],
        [
            snapshot(2, 2, 1),
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            set_branch("main", 2) | {"max-ref-age-ms": 9},
        ],
        [snapshot(2, 2, 1), set_branch("dev", 2) | {"max-ref-age-ms": 9}],
    ],
    ids=["without a snapshot", "after the move", "replaced", "new branch"],
)
def test_retention_that_a_client_sets_is_what_it_says(kept: AsgiClient, updates: list[dict[str, Any]]) -> None:
    assert kept.commit(*updates).status == 200
    assert load(kept)["refs"][updates[-1]["ref-name"]]["max-ref-age-ms"] == 9


def test_snapshot_that_is_renumbered_leaves_its_ref_the_retention_that_it_has(uri: str, table: Table) -> None:
    """Of a client that requires none."""

    def rival() -> None:
        append_elsewhere(table)
        keep_for_days(table)

    with bergline.connect(uri) as lake:
        lake.catalog.session.asserts_retention = False  # type: ignore[attr-defined]
        Lake(Late(lake.catalog, rival), "lake").load_table("db.t").delete("id = 1")  # type: ignore[arg-type]
    assert retention(table) == (10, None, DAY_MS)
    assert ids(table.scan().to_arrow()) == [2]


def load(client: AsgiClient) -> dict[str, Any]:
    metadata: dict[str, Any] = client("GET", "/v1/namespaces/db/tables/orders").json["metadata"]
    return metadata
