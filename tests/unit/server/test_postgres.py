"""The server on PostgreSQL: two of them side by side know the same keys, tokens and tables."""

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.reserved_directories import Claim, DirectoryKind
from bergline.catalog.sql.directories.table_directories import TableDirectories
from bergline.errors import InvalidInputError, RefusedError, StorageError
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.fixtures.concurrency import run_for_each
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, bearer, set_branch, set_property, snapshot
from support.servers.granted_server import GrantedServer

pytestmark = pytest.mark.server
ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture
def replicas(postgres: str, tmp_path: Path) -> Iterator[tuple[ServerContext, ServerContext]]:
    name = uuid4().hex
    first, second = (open_server(postgres, warehouse=str(tmp_path), name=name) for _ in range(2))
    yield first, second
    first.catalog.close()
    second.catalog.close()


def test_key_is_known_to_every_server(replicas: tuple[ServerContext, ServerContext]) -> None:
    with AsgiClient(replicas[0]) as one, AsgiClient(replicas[1]) as other:
        one.namespace("db")
        one.table()
        headers = {"Idempotency-Key": str(uuid4())}
        response = [client.commit(set_property("a", "b"), headers=headers) for client in (one, other, one)]
        assert [t.status for t in response] == [200, 200, 200]
        assert response[0].json == response[1].json == response[2].json
        assert other("GET", ORDERS).json == response[0].json
    operations = [e.operation for e in replicas[1].records.audit()]
    assert operations == ["create_namespace", "create_table", "commit_table"]


def test_token_made_by_one_opens_the_other(replicas: tuple[ServerContext, ServerContext]) -> None:
    replicas[0].records.tokens.create("ann", "bl_x", 0, None)
    assert Authenticator(replicas[1].records).check("Bearer bl_x").name == "ann"


def test_catalog_that_had_a_token_stays_closed_for_all(replicas: tuple[ServerContext, ServerContext]) -> None:
    replicas[0].records.tokens.create("ann", "bl_y", 0, None)
    replicas[1].records.tokens.revoke("ann")
    assert replicas[0].records.tokens.all() == []
    for context in replicas:
        assert Authenticator(context.records).has_tokens


def test_grant_made_through_one_holds_at_the_other_and_tables_have_owners(
    replicas: tuple[ServerContext, ServerContext],
) -> None:
    here = GrantedServer(replicas[0], "ann")
    here("root", "POST", "/v1/namespaces", {"namespace": ["granted"]})
    grants = {"privilege": "create", "on": {"kind": "namespace", "namespace": ["granted"]}, "to": "ann"}
    assert here("root", "POST", "/bergline/v1/grants", {"grants": [grants]}).status == 204
    replicas[1].authenticator = Authenticator(replicas[1].records)
    with AsgiClient(replicas[1]) as there:
        run_for_each(
            lambda n: there(
                "POST",
                "/v1/namespaces/granted/tables",
                {"name": f"t{n}", "schema": SCHEMA},
                headers=bearer("bl_ann"),
            ),
            range(4),
        )
        for number in range(4):
            assert here("ann", "GET", f"/v1/namespaces/granted/tables/t{number}").status == 200
        assert here("root", "GET", "/bergline/v1/owners").json["owners"][-1]["owner"] == "ann"
    here.client.application.close()


def test_directories_of_tables_are_known_to_every_server(replicas: tuple[ServerContext, ServerContext]) -> None:
    tables = {TableName(("db",), f"t{n}"): (f"s3://b/w/t{n}", f"s3://b/data/t{n}") for n in range(8)}
    for table, (location, _) in tables.items():
        assert replicas[0].store.create(table, f"{location}/metadata/1.metadata.json")
    claims = [Claim(DirectoryKind.TABLE, table) for table in (*tables, TableName(("db",), "new"))]
    places = [TableDirectories(context.records, lambda _, name: tables[name]) for context in replicas]
    run_for_each(lambda n: places[n % 2].check_apart(claims[n], tables[claims[n].name]), range(8))
    for known in places:
        with pytest.raises(RefusedError, match=r"overlaps the files of table `db\.t3`"):
            known.check_apart(claims[-1], ["s3://b/elsewhere", "s3a://b/data/t3/x"])
        known.check_apart(claims[3], ["s3://b/w/t3", "s3a://b/data/t3/x"])


def test_directory_is_reserved_once_through_two_servers(replicas: tuple[ServerContext, ServerContext]) -> None:
    """Each asks in its transaction, after the other one's."""
    tokens = f"bl_{uuid4().hex}"
    here = GrantedServer(replicas[0], tokens=tokens)
    replicas[1].authenticator = Authenticator(replicas[1].records)
    place = f"{replicas[0].settings.warehouse}/db/shared"
    here("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    answers: list[AsgiResponse] = []
    with AsgiClient(replicas[1]) as there:

        def create(number: int) -> None:
            body = {"name": f"t{number}", "schema": SCHEMA, "location": f"{place}/{'x/' * number}"}
            client = there if number % 2 else here.client
            answers.append(client("POST", "/v1/namespaces/db/tables", body, headers=bearer(f"{tokens}root")))

        run_for_each(create, range(8))
    assert sorted(answer.status for answer in answers) == [200, *[403] * 7]
    here.client.application.close()


def test_writers_of_their_own_branches_through_two_servers_all_succeed(
    replicas: tuple[ServerContext, ServerContext],
) -> None:
    asking = [AsgiClient(context) for context in replicas]
    asking[0].namespace("db")
    asking[0].table()
    asking[0].commit(snapshot(1, 1), set_branch("main", 1))
    response: list[int] = []

    def write(number: int) -> None:
        branch = {"type": "assert-ref-snapshot-id", "ref": f"b{number}", "snapshot-id": None}
        response.append(asking[number % 2].commit(set_branch(f"b{number}", 1), requirements=[branch]).status)

    run_for_each(write, range(8))
    assert response == [200] * 8
    assert asking[1]("GET", ORDERS).json["metadata"]["refs"].keys() == {"main", *(f"b{n}" for n in range(8))}
    for client in asking:
        client.application.close()


def test_outcome_that_cannot_be_found_out_is_said_so_and_nothing_is_deleted(
    replicas: tuple[ServerContext, ServerContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = replicas[0]
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table(properties={"commit.status-check.num-retries": "0"})
        before = set(context.catalog.io.list(context.settings.warehouse or ""))

        def broken(*_: object) -> bool:
            raise StorageError("the connection broke")

        with monkeypatch.context() as patch:
            patch.setattr(context.catalog.store, "swap", broken)
            response = client.commit(set_property("a", "b"), headers={"Idempotency-Key": str(uuid4())})
        assert response.error == (500, "CommitStateUnknownException")
        assert len(set(context.catalog.io.list(context.settings.warehouse or "")) - before) == 1
        assert client("GET", ORDERS).status == 200


def test_server_without_a_place_for_files_does_not_start(postgres: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected a warehouse") as caught:
        open_server(postgres)
    assert "--warehouse" in caught.value.hints[0]
    open_server(postgres, places=[str(tmp_path)]).catalog.close()


def test_turn_granted_by_one_server_is_kept_by_the_other(replicas: tuple[ServerContext, ServerContext]) -> None:
    with AsgiClient(replicas[0]) as one, AsgiClient(replicas[1]) as other:
        one.namespace("db")
        one.table()
        body = {"holder": "me", "lease-ms": 5000}
        assert one("POST", f"/bergline{ORDERS}/turn", body).json == {"granted": True}
        assert other("POST", f"/bergline{ORDERS}/turn", {**body, "holder": "you"}).json == {"granted": False}
        landed = threading.Event()
        waiting = threading.Thread(target=lambda: other.commit(set_property("a", "b")).status == 200 and landed.set())
        waiting.start()
        assert not landed.wait(0.3)
        assert one.commit(set_property("c", "d"), headers={"Bergline-Turn": "me"}).status == 200
        assert not landed.wait(0.1)
        assert one("DELETE", f"/bergline{ORDERS}/turn", query={"holder": "me"}).status == 204
        waiting.join(60)
        assert landed.is_set()
