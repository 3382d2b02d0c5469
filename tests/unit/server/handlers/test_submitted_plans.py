"""Plans that clients are told to ask for again: who is told, what they get, and what they can give up."""

import base64
import datetime as dt
import http.client
import os
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import bergline
from bergline import Table
from bergline.catalog.catalog import Committed, TableChange
from bergline.catalog.identifiers import TableName
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.updates import AddSnapshot, SetSnapshotRef
from bergline.lake.lake import Lake
from bergline.server.context.context import ServerContext
from bergline.server.handlers import planning
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.held_manifests import HeldManifests
from support.servers.asgi_client import AsgiClient, AsgiResponse
from support.servers.bergline_server import BerglineServer
from support.servers.granted_server import GrantedServer

pytestmark = pytest.mark.long

AT = "/v1/namespaces/db/tables/t"
PLAN = f"{AT}/plan"
SCHEMA = pa.schema([("id", pa.int64())])
JAVA = {"X-Client-Version": "Apache Iceberg 1.11.0 (commit 1234)"}
PYTHON = {"X-Client-Version": "PyIceberg 0.12.0"}
AT_ONCE = ServerSettings(planning_wait_s=0)
UNKNOWN = (404, "NoSuchPlanIdException")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server that tells every client that can ask again to do so."""
    opened = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=AT_ONCE)
    yield opened
    opened.plan_workers.close()
    opened.catalog.close()


@pytest.fixture
def table(context: ServerContext) -> Table:
    """Three files of two rows in a manifest each."""
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", SCHEMA, properties={"commit.manifest-merge.enabled": "false"})
    for start in range(3):
        table.append(pa.table({"id": [start, 100 + start]}, schema=SCHEMA))
    return table


def submitted(client: Any, body: Any = None, who: str | None = None) -> str:
    asked = (who,) if who else ()
    response: AsgiResponse = client(*asked, "POST", PLAN, body or {}, headers=JAVA)
    assert response.json["status"] == "submitted", response
    return f"{PLAN}/{response.json['plan-id']}"


def result(client: Any, plan: str, who: str | None = None) -> Any:
    asked = (who,) if who else ()
    while True:
        response: AsgiResponse = client(*asked, "GET", plan)
        assert response.status == 200, response
        if response.json["status"] != "submitted":
            return response.json
        time.sleep(0.02)


def test_plan_is_the_same_when_it_is_asked_for_again(table: Table, client: AsgiClient) -> None:
    asked = {"filter": {"type": "eq", "term": "id", "value": 101}, "min-rows-requested": 5}
    plan = submitted(client, asked)
    found = result(client, plan)
    at_once = client("POST", PLAN, asked).json
    assert at_once["status"] == "completed"
    assert {**found, "plan-id": None} == {**at_once, "plan-id": None}
    assert len(found["file-scan-tasks"]) == 2
    assert result(client, plan) == found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (JAVA, "submitted"),
        ({"X-Client-Version": "Apache Iceberg 2.0.0"}, "submitted"),
        ({"Prefer": "wait=1, respond-async"}, "submitted"),
        ({"X-Client-Version": "Apache Iceberg 1.10.1"}, "completed"),
        ({"X-Client-Version": "Apache Iceberg unspecified"}, "completed"),
        (PYTHON, "completed"),
        ({}, "completed"),
    ],
)
def test_only_clients_that_ask_again_are_told_to(
    table: Table, client: AsgiClient, headers: dict[str, str], status: str
) -> None:
    assert client("POST", PLAN, {}, headers=headers).json["status"] == status


def test_requests_too_long_for_a_path_are_answered_at_once(table: Table, client: AsgiClient) -> None:
    values = [int.from_bytes(os.urandom(7), "big") for _ in range(1000)]
    asked = {"filter": {"type": "in", "term": "id", "values": values}}
    assert client("POST", PLAN, asked, headers=JAVA).json["status"] == "completed"


def test_scans_of_nothing_are_refused_before_they_are_submitted(table: Table, client: AsgiClient) -> None:
    for body in ({"filter": {"type": "is-null", "term": "no"}}, {"select": ["no"]}, {"min-rows-requested": -1}):
        assert client("POST", PLAN, body, headers=JAVA).status == 400
    assert client("POST", PLAN, {"snapshot-id": 7}, headers=JAVA).status == 404


def test_large_tables_are_planned_by_workers_for_clients_that_wait_too(
    table: Table, context: ServerContext, client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = client("POST", PLAN, {}, headers=PYTHON).json
    monkeypatch.setattr(planning, "_FILES_IN_A_THREAD", 2)
    monkeypatch.setattr(planning, "_planned_here", None)
    assert client("POST", PLAN, {}, headers=PYTHON).json["file-scan-tasks"] == here["file-scan-tasks"]
    assert client("POST", PLAN, {"filter": {"type": "is-null", "term": "no"}}).status == 400
    assert client("POST", f"{AT}/tasks", {"plan-task": "x"}).error == (404, "NoSuchPlanTaskException")


def test_long_filters_of_small_tables_are_not_for_the_interpreter_of_commits(
    table: Table, client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_planned_here", None)
    body = {"filter": {"type": "in", "term": "id", "values": list(range(1, 20_000))}}
    assert len(client("POST", PLAN, body, headers=PYTHON).json["file-scan-tasks"]) == 3


def test_tables_are_small_by_their_manifests_and_not_only_by_what_a_writer_says(
    table: Table, context: ServerContext, client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = table.current_snapshot
    assert head
    wrong = msgspec.structs.replace(
        head,
        snapshot_id=77,
        sequence_number=head.sequence_number + 1,
        parent_snapshot_id=head.snapshot_id,
        summary={"operation": "append", "total-data-files": "1", "total-delete-files": "0"},
    )
    base = context.catalog.load_table(TableName(("db",), "t"))
    updates = AddSnapshot(wrong), SetSnapshotRef("main", 77, SnapshotRefType.BRANCH)
    assert isinstance(context.catalog.commit((TableChange(base, (), updates),)), Committed)
    monkeypatch.setattr(planning, "_FILES_IN_A_THREAD", 2)
    monkeypatch.setattr(planning, "_planned_here", None)
    assert len(client("POST", PLAN, {}, headers=PYTHON).json["file-scan-tasks"]) == 3


def test_cancelled_plan_says_so_and_its_work_is_given_up(
    table: Table, context: ServerContext, client: AsgiClient
) -> None:
    held = HeldManifests(table)
    plan = submitted(client)
    held.wait_for_reader(0)
    assert client("GET", plan).json["status"] == "submitted"
    assert client("DELETE", plan).status == 204
    assert client("GET", plan).json == {"status": "cancelled"}
    assert client("DELETE", plan).status == 204
    held.feed(0)
    while context.plan_workers.process_ids:
        time.sleep(0.01)


def test_plan_whose_worker_dies_has_failed_and_the_next_one_has_not(
    table: Table, context: ServerContext, client: AsgiClient
) -> None:
    held = HeldManifests(table)
    plan = submitted(client)
    held.wait_for_reader(0)
    while not (processes := context.plan_workers.process_ids):
        time.sleep(0.01)
    os.kill(processes[0], signal.SIGKILL)
    failed = result(client, plan)
    assert (failed["status"], failed["error"]["code"]) == ("failed", 503)
    held.release()
    assert result(client, submitted(client))["status"] == "completed"


def test_any_server_on_the_catalog_knows_the_plan(table: Table, client: AsgiClient, tmp_path: Path) -> None:
    plan = submitted(client)
    found = result(client, plan)
    other = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=AT_ONCE)
    with AsgiClient(other) as asking:
        assert result(asking, plan) == found
        assert asking("DELETE", plan).status == 204
    other.catalog.close()
    without = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=ServerSettings(planning_processes=0))
    with AsgiClient(without) as asking:
        assert asking("GET", plan).json == found
        assert asking("POST", PLAN, {}, headers=JAVA).json["status"] == "completed"
    without.catalog.close()


def test_ids_of_no_plan_are_unknown(table: Table, client: AsgiClient) -> None:
    plan = submitted(client)
    client.table("other")
    assert client("GET", plan.replace("/t/", "/other/")).error == UNKNOWN
    empty = base64.urlsafe_b64encode(zlib.compress(b"{}")).decode()
    for text in ("x", plan[-20:], empty, "a" * 5000):
        assert client("GET", f"{PLAN}/{text}").error == UNKNOWN, text[:40]
        assert client("DELETE", f"{PLAN}/{text}").error == UNKNOWN, text[:40]
    complete = client("POST", PLAN, {}).json["plan-id"]
    assert client("GET", f"{PLAN}/{complete}").error == UNKNOWN
    assert client("DELETE", f"{PLAN}/{complete}").status == 204
    assert client("DELETE", plan.replace("/t/", "/none/")).error == (404, "NoSuchTableException")


def test_plan_of_a_snapshot_that_has_expired_is_unknown_where_it_was_not_kept(
    table: Table, client: AsgiClient, tmp_path: Path
) -> None:
    plan = submitted(client)
    table.delete("true")
    table.expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    other = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=AT_ONCE)
    with AsgiClient(other) as asking:
        assert asking("GET", plan).error == UNKNOWN
    other.catalog.close()


def test_plan_is_its_callers_alone(table: Table, granted: GrantedServer) -> None:
    held = HeldManifests(table)
    granted.grant("read", "namespace db", "ann")
    plan = submitted(granted, who="ann")
    held.wait_for_reader(0)
    assert granted("bob", "GET", plan).status == 404
    assert granted("bob", "DELETE", plan).status == 404
    granted.grant("read", "namespace db", "bob")
    assert granted("bob", "DELETE", plan).status == 204
    assert granted("ann", "GET", plan).json["status"] == "submitted"
    held.feed(0)
    held.feed(1)
    held.feed(2)
    assert result(granted, plan, "ann")["status"] == "completed"


def workers_of(server: int) -> list[int]:
    found = (path.read_text().split() for path in Path(f"/proc/{server}/task").glob("*/children"))
    return [int(process) for some in found for process in some]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_come_with_the_first_plan_and_end_with_the_server(tmp_path: Path, how: signal.Signals) -> None:
    with BerglineServer(tmp_path, "--planning-wait", "0") as server:
        with bergline.connect(server.uri) as lake:
            lake.create_namespace("db")
            table = lake.create_table("db.t", SCHEMA)
            table.append(pa.table({"id": [1]}, schema=SCHEMA))
            held = HeldManifests(table)
        assert workers_of(server.process_id) == []
        connection = http.client.HTTPConnection(*server.address, timeout=20)
        connection.request("POST", PLAN, b"{}", headers={"Prefer": "respond-async"})
        assert b"submitted" in connection.getresponse().read()
        connection.close()
        held.wait_for_reader(0)
        (worker,) = workers_of(server.process_id)
        os.kill(server.process_id, how)
        end = time.monotonic() + 60
        while Path(f"/proc/{worker}").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
