"""Tables that are dropped into the trash, and come back."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient, set_branch, set_property, snapshot

ORDERS = "/v1/namespaces/db/tables/orders"
DROPPED = "/bergline/v1/dropped-tables"
UNDROP = "/bergline/v1/namespaces/db/tables/orders/undrop"
KEY = {"Idempotency-Key": "0193f2a1-0000-7000-8000-000000000001"}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server that keeps dropped tables for a day."""
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=ServerSettings(drop_retention_s=86_400))
    yield opened
    opened.catalog.close()


@pytest.fixture(autouse=True)
def _orders(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()
    client.commit(snapshot(1, 1), set_branch("main", 1), set_branch("audit", 1))


@pytest.mark.parametrize("purge", ["false", "true"])
def test_dropped_table_comes_back_with_all_its_refs(client: AsgiClient, purge: str) -> None:
    before = client("GET", ORDERS).json
    assert client("DELETE", ORDERS, query={"purgeRequested": purge}).status == 204
    assert client("GET", ORDERS).status == 404
    (kept,) = client("GET", DROPPED).json["tables"]
    assert kept["name"] == {"namespace": ["db"], "name": "orders"}
    assert kept["metadata-location"] == before["metadata-location"]
    assert kept["keep-until-ms"] - kept["dropped-ms"] == 86_400_000
    assert kept["purges-files"] is (purge == "true")
    assert kept["principal"]
    assert client("POST", UNDROP, {}).json == before
    assert client("GET", ORDERS).json["metadata"]["refs"].keys() == {"main", "audit"}
    assert client("GET", DROPPED).json["tables"] == []


def test_table_comes_back_under_another_name_where_its_own_is_taken(client: AsgiClient) -> None:
    first = client("GET", ORDERS).json["metadata"]["table-uuid"]
    client("DELETE", ORDERS)
    client.table()
    taken = client("POST", UNDROP, {})
    assert taken.error == (409, "AlreadyExistsException")
    assert len(client("GET", DROPPED).json["tables"]) == 1
    other = client("POST", UNDROP, {"destination": {"namespace": ["db"], "name": "old_orders"}})
    assert other.json["metadata"]["table-uuid"] == first
    assert client("GET", ORDERS).json["metadata"]["table-uuid"] != first


def test_the_table_that_was_dropped_last_comes_back_first(client: AsgiClient) -> None:
    client("DELETE", ORDERS)
    second = client.table().json["metadata"]["table-uuid"]
    client("DELETE", ORDERS)
    assert client("POST", UNDROP, {}).json["metadata"]["table-uuid"] == second


def test_table_that_was_never_dropped_is_404_with_near_names(client: AsgiClient) -> None:
    client("DELETE", ORDERS)
    missing = client("POST", UNDROP.replace("orders", "order"), {})
    assert missing.status == 404
    assert "db.orders" in missing.message


def test_table_does_not_come_back_into_a_namespace_that_is_gone(client: AsgiClient) -> None:
    client("DELETE", ORDERS)
    assert client("DELETE", "/v1/namespaces/db").status == 204
    assert client("POST", UNDROP, {}).status == 404
    client.namespace("db")
    assert client("POST", UNDROP, {}).status == 200


def test_repeated_drop_and_undrop_happen_once(client: AsgiClient) -> None:
    assert [client("DELETE", ORDERS, headers=KEY).status for _ in range(2)] == [204, 204]
    assert len(client("GET", DROPPED).json["tables"]) == 1
    again = {"Idempotency-Key": KEY["Idempotency-Key"].replace("1", "2")}
    first, second = (client("POST", UNDROP, {}, headers=again) for _ in range(2))
    assert first.json["metadata-location"] == second.json["metadata-location"]


def test_purge_of_a_table_whose_files_others_share_is_refused_and_it_stays(client: AsgiClient) -> None:
    client.commit(set_property("gc.enabled", "false"))
    assert client("DELETE", ORDERS, query={"purgeRequested": "true"}).status == 403
    assert client("GET", ORDERS).status == 200
    assert client("GET", DROPPED).json["tables"] == []


def test_tables_in_the_trash_come_in_pages(client: AsgiClient) -> None:
    client("DELETE", ORDERS)
    for _ in range(2):
        client.table()
        client("DELETE", ORDERS)
    everything = client("GET", DROPPED).json["tables"]
    first = client("GET", DROPPED, query={"pageSize": "2"}).json
    second = client("GET", DROPPED, query={"pageSize": "2", "pageToken": first["next-page-token"]}).json
    assert (first["tables"] + second["tables"], second["next-page-token"]) == (everything, None)
    assert client("GET", DROPPED, query={"pageToken": "YQBi"}).status == 400


def test_drop_and_undrop_are_in_the_audit(client: AsgiClient, context: ServerContext) -> None:
    client("DELETE", ORDERS)
    client("POST", UNDROP, {})
    newest = context.records.newest_audit(2)
    assert [(entry.operation, entry.resource) for entry in newest] == [
        ("undrop_table", "table/db/orders"),
        ("drop_table", "table/db/orders"),
    ]


def test_server_without_a_bin_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    plain = open_server(new_catalog_uri(tmp_path / "plain/catalog.db"))
    with AsgiClient(plain) as client:
        client.namespace("db")
        client.table()
        client("DELETE", ORDERS)
        assert client("GET", DROPPED).json["tables"] == []
        listed = client("GET", "/v1/config").json["endpoints"]
        assert not any("drop" in endpoint for endpoint in listed if "/bergline/" in endpoint)
    plain.catalog.close()


def test_drop_whose_transaction_fails_keeps_table_and_bin_as_they_were(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise msgspec.ValidationError("no audit")

    monkeypatch.setattr(context.records, "add_audit", fail)
    assert client("DELETE", ORDERS).status == 500
    assert context.catalog.dropped_tables() == []
    assert context.catalog.pointer(TableName(("db",), "orders"))
