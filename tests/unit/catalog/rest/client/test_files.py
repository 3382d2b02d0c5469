"""Files with credentials that a server lends."""

import pickle
import time

import pytest

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.files import Vended, VendedFileIO
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.errors import AuthenticationError
from bergline.governance.endpoints import ENDPOINTS
from bergline.io.object_store import ObjectStoreFileIO
from bergline.testing.catalog_suite import table_metadata
from support.servers.scripted_rest_server import Reply, RestScript, load_answer

TABLE = '{"namespace":["db"],"name":"orders"}'
FILE = "s3://bucket/db/orders/data/a.parquet"
PATH = "/v1/namespaces/db/tables/orders"
pytestmark = pytest.mark.long
ORDERS = TableName(("db",), "orders")
LOAD = f"GET {PATH}"


def vended(expires_ms: int, key: str = "k") -> Vended:
    keys = {"s3.access-key-id": key, "s3.secret-access-key": "s", "s3.session-token-expires-at-ms": str(expires_ms)}
    return Vended(("s3://bucket/db/orders",), {}, (StorageCredential("s3://bucket/db/orders/", keys),))


def vended_config(key: str, **more: str) -> dict[str, str]:
    return {"s3.access-key-id": key, "s3.secret-access-key": "x", "s3.region": "r", **more}


def in_a_task(io: VendedFileIO) -> VendedFileIO:
    sent = pickle.loads(pickle.dumps(io))  # noqa: S301  (our own)
    assert isinstance(sent, VendedFileIO)
    return sent


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_tasks_use_what_they_were_sent_until_it_has_expired() -> None:
    io = VendedFileIO({}, clock_ms=now_ms, renew=lambda _: None)
    io.vend(TABLE, vended(now_ms() + 3_600_000))
    assert in_a_task(io).storage_for(FILE)
    io.vend(TABLE, vended(now_ms() - 1_000_000))
    with pytest.raises(AuthenticationError, match=r"table `db\.orders` expired at .*; a task has") as raised:
        in_a_task(io).storage_for(FILE)
    assert raised.value.hints
    assert in_a_task(io).storage_for("s3://bucket/elsewhere/b.parquet")


def test_credentials_are_renewed_before_they_expire_and_sent_to_tasks_renewed() -> None:
    now = [0]
    asked = []

    def renew(table: str) -> Vended:
        asked.append(table)
        return vended(now[0] + 3_600_000 + now_ms(), f"k{len(asked)}")

    io = VendedFileIO({}, clock_ms=lambda: now[0], renew=renew)
    io.vend(TABLE, vended(1_000_000))
    first = io.storage_for(FILE)
    assert io.storage_for(FILE) is first
    now[0] = 800_000
    second = io.storage_for(FILE)
    assert second is not first
    assert asked == [TABLE]
    assert in_a_task(io).storage_for(FILE)


def loaded(location: str = "file:///lake/orders", number: int = 0) -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata(location), f"{location}/metadata/{number}.metadata.json")


def settings(catalog: RestCatalog, location: str) -> dict[str, str]:
    """The properties that count for a location."""
    storage = catalog.io.storage_for(location)
    assert isinstance(storage, ObjectStoreFileIO)
    return storage._properties


def test_files_use_what_the_server_hands_out_for_their_table(server: RestScript) -> None:
    catalog = RestCatalog(
        server.uri, {"s3.endpoint": "http://own:1", "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    )
    credentials = [
        {"prefix": "s3", "config": vended_config("wide")},
        {"prefix": "s3://b/orders/data/", "config": vended_config("narrow")},
    ]
    answer = load_answer(
        loaded("s3://b/orders"), config={"s3.region": "table", "token": "none"}, **{"storage-credentials": credentials}
    )
    server.on(LOAD, Reply(body=answer))
    assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "a"
    catalog.load_table(ORDERS)
    assert settings(catalog, "s3://b/orders/metadata/x")["s3.access-key-id"] == "wide"
    assert settings(catalog, "s3://b/orders")["s3.access-key-id"] == "wide"  # the table's directory, to be listed
    assert settings(catalog, "s3a://b/orders/data/x")["s3.access-key-id"] == "narrow"
    assert settings(catalog, "s3://b/orders/data")["s3.access-key-id"] == "narrow"
    assert settings(catalog, "s3://b/orders/data/x")["s3.endpoint"] == "http://own:1"
    assert settings(catalog, "gs://b/other")["s3.access-key-id"] == "a"
    assert "token" not in settings(catalog, "s3://b/orders/x")
    assert catalog.io.storage_for("s3://b/orders/x") is catalog.io.storage_for("s3://b/orders/y")
    sent = pickle.loads(pickle.dumps(catalog.io))  # noqa: S301
    assert sent.storage_for("s3://b/orders/data/x")._properties["s3.access-key-id"] == "narrow"
    catalog.close()


@pytest.mark.parametrize("has_endpoint", [True, False])
def test_credentials_that_expire_are_renewed(*, has_endpoint: bool) -> None:
    endpoints = [str(e) for e in ENDPOINTS if has_endpoint or e.name != "load_credentials"]
    clock = [1000.0]

    def answer(key: str, expires_s: int) -> dict[str, object]:
        config = vended_config(
            key, **{"s3.session-token": "t", "s3.session-token-expires-at-ms": str(expires_s * 1000)}
        )
        return {"storage-credentials": [{"prefix": "s3://b", "config": config}]}

    with RestScript(endpoints=endpoints) as server:
        catalog = RestCatalog(server.uri, {}, clock_s=lambda: clock[0])
        table = load_answer(loaded("s3://b/orders"))
        server.on(LOAD, Reply(body={**table, **answer("old", 5000)}), Reply(body={**table, **answer("new", 9000)}))
        server.on(f"GET {PATH}/credentials", Reply(body=answer("new", 9000)))
        catalog.load_table(ORDERS)
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "old"
        clock[0] = 4800
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "new"
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "new"
        assert len(server.sent(f"GET {PATH}/credentials")) == has_endpoint
        server.on(f"GET {PATH}/credentials", Reply(403))
        server.on(LOAD, Reply(403))
        clock[0] = 8900
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "new"
        catalog.close()


def test_clock_that_is_fast_does_not_make_every_file_ask_for_credentials() -> None:
    """Credentials for a quarter of an hour, as a machine sees them whose clock is ahead by an hour."""
    clock = [3600.0]

    def answer(key: str) -> dict[str, object]:
        config = vended_config(key, **{"s3.session-token": "t", "s3.session-token-expires-at-ms": "900000"})
        return {"storage-credentials": [{"prefix": "s3://b", "config": config}]}

    with RestScript() as server:
        catalog = RestCatalog(server.uri, {}, clock_s=lambda: clock[0])
        table = load_answer(loaded("s3://b/orders"), config={"s3.endpoint": "http://table:1", "s3.session-token": "o"})
        server.on(LOAD, Reply(body={**table, **answer("old")}))
        renewals = f"GET {PATH}/credentials"
        server.on(renewals, Reply(body=answer("new")), Reply(503))
        catalog.load_table(ORDERS)
        for number in range(100):
            found = settings(catalog, f"s3://b/orders/{number}")
            assert (found["s3.access-key-id"], found["s3.endpoint"]) == ("new", "http://table:1")
        assert len(server.sent(renewals)) == 1
        assert "s3.session-token" not in settings(catalog, "s3://c/other")
        clock[0] += 31
        for number in range(100):
            assert settings(catalog, f"s3://b/orders/{number}")["s3.access-key-id"] == "new"
        assert len(server.sent(renewals)) == 5  # one more, which is tried four times
        catalog.close()
