"""Changes whose responses are not certain."""

from contextlib import ExitStack
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import bergline
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import CommitUnknownError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.updates import RemoveSnapshots, SetProperties, Update
from bergline.testing.catalog_suite import added_id, append, now_ms, table_metadata
from support.servers.scripted_rest_server import NO_ANSWER, Reply, RestScript, load_answer, refused

pytestmark = pytest.mark.long


ORDERS = TableName(("db",), "orders")


TABLE = "/v1/namespaces/db/tables/orders"


LOAD, COMMIT = f"GET {TABLE}", f"POST {TABLE}"


KEYS = {"idempotency-key-lifetime": "PT30M"}
ANYTHING = [
    *(Reply(s) for s in (201, 202, 300, 301, 302, 304, 307, 308)),
    *(Reply(s, b"<html>no such page</html>") for s in (200, 400, 401, 403, 404, 405, 406, 409, 410, 413, 422, 429)),
    *(Reply(s, {"error": "Unauthorized"}) for s in (400, 401, 403, 404, 409)),
    *(Reply(s, {"error": {"message": "m", "type": "T", "code": 500}}) for s in (400, 404, 409)),
    *(Reply(s) for s in (500, 501, 505, 507, 511, 520, 522, 524, 529, 530, 599)),
    *(refused(s, "InternalServerError") for s in (408, 500, 501, 503, 507, 530, 599)),
    Reply(200, {"metadata-location": "x", "metadata": {}}),
    Reply(200, {"metadata-location": "x", "metadata": {"format-version": 9}}),
    Reply(200, {"error": {"message": "m", "type": "T", "code": 200}}),
]


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def after(base: LoadedTable, *updates: Update, number: int = 1) -> LoadedTable:
    """The table after updates, at a new pointer."""
    metadata = apply_updates(base.metadata, updates, base_location=base.metadata_location, now_ms=now_ms())
    return LoadedTable(base.name, metadata, f"file:///lake/orders/metadata/{number}.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


def said(reply: Reply) -> str:
    return f"{reply.status}-{reply.data[:40].decode()}"


@pytest.mark.parametrize("answer", ANYTHING, ids=said)
def test_answer_that_is_not_of_the_protocol_is_settled_by_reading_back(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply
) -> None:
    change = append(base)
    server.on(COMMIT, answer)
    server.on(LOAD, shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)
    server.on(LOAD, NO_ANSWER)
    outcome = catalog.commit((change,))
    assert isinstance(outcome, Unknown)
    assert outcome.cause.endswith(f"it happened if db.orders has snapshot {added_id(change)}")
    server.on(LOAD, Reply(404, b"<html>"))
    assert isinstance(catalog.commit((change,)), Unknown)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    assert isinstance(catalog.commit((change,)), Unknown)


@pytest.mark.parametrize("look", [NO_ANSWER, Reply(500), Reply(404, b"<html>"), refused(404, "NoSuchTableException")])
def test_conflict_whose_change_cannot_be_looked_for_is_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, look: Reply
) -> None:
    """It may be the refusal of a twin: its files would be deleted."""
    server.on(COMMIT, refused(409, "CommitFailedException"))
    server.on(LOAD, look)
    assert isinstance(catalog.commit((append(base),)), Unknown)


def test_name_said_to_be_taken_that_cannot_be_looked_for_is_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(409, "AlreadyExistsException"))
    for look in (NO_ANSWER, Reply(500), Reply(404, b"<html>"), refused(403, "ForbiddenException")):
        server.on(LOAD, look)
        with pytest.raises(CommitUnknownError):
            catalog.create_table(ORDERS, base.metadata)


@pytest.mark.parametrize("kind", [400, 401, 403, 404, 406, 409, 422, 429])
def test_refusal_is_no_failure_of_what_landed(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, kind: int
) -> None:
    change = append(base)
    server.on(COMMIT, refused(kind, "SomethingException"))
    server.on(LOAD, shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)


def test_refusal_after_a_resend_proves_no_conflict_while_the_table_stands(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """What is still on its way may land."""
    server.on(COMMIT, NO_ANSWER, refused(409, "CommitFailedException"))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((append(base),)), Unknown)


def test_landed_snapshot_that_was_expired_since_is_no_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    change = append(base)
    landed = after(base, *change.updates)
    child = append(landed)
    grown = after(landed, *child.updates, number=2)
    expired = after(grown, RemoveSnapshots((added_id(change),)), number=3)
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(expired))
    assert isinstance(catalog.commit((change,)), Committed)
    grandchild = append(expired)
    forgotten = after(after(expired, *grandchild.updates, number=4), RemoveSnapshots((added_id(child),)), number=5)
    server.on(LOAD, shown(forgotten))
    assert isinstance(catalog.commit((change,)), Unknown)


def test_state_of_one_table_does_not_tell_of_the_snapshots_of_another(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """Somebody else set the same property: that is no sign of our append."""
    other = msgspec.structs.replace(base, name=TableName(("db",), "items"))
    update = SetProperties({"a": "1"})
    server.on("POST /v1/transactions/commit", NO_ANSWER)
    server.on(LOAD, shown(after(base, *append(base).updates)))
    server.on("GET /v1/namespaces/db/tables/items", shown(after(other, update)))
    assert isinstance(catalog.commit((append(base), TableChange(other, (), (update,)))), Conflicted)


def test_token_that_is_not_replaced_after_a_lost_answer_leaves_the_outcome_unknown(base: LoadedTable) -> None:
    with RestScript(**KEYS) as server:
        granted = Reply(body={"access_token": "t", "token_type": "bearer"})
        server.on("POST /v1/oauth/tokens", granted, Reply(401, {"error": "invalid_client"}))
        catalog = RestCatalog(server.uri, {"credential": "id:secret"}, sleep=lambda _: None)
        server.on(COMMIT, NO_ANSWER, refused(401, "NotAuthorizedException"))
        server.on(LOAD, refused(401, "NotAuthorizedException"))
        outcome = catalog.commit((append(base),))
        assert isinstance(outcome, Unknown)
        assert "invalid_client" in outcome.cause
        catalog.close()


def test_server_that_ends_after_a_lost_answer_leaves_the_outcome_unknown(base: LoadedTable) -> None:
    with ExitStack() as running:
        server = running.enter_context(RestScript(**KEYS))
        catalog = RestCatalog(server.uri, {}, sleep=lambda _: running.close())
        server.on(COMMIT, NO_ANSWER)
        outcome = catalog.commit((append(base),))
        assert isinstance(outcome, Unknown)
        assert "remote end closed" in outcome.cause
        catalog.close()


def test_files_stay_while_nobody_knows_whether_they_were_committed(tmp_path: Path) -> None:
    location = tmp_path.as_uri()
    table = LoadedTable(ORDERS, table_metadata(location), f"{location}/metadata/0.metadata.json")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    with RestScript(**KEYS) as server, bergline.connect(server.uri, properties={"token": "t"}) as lake:
        server.on(LOAD, shown(table), shown(table), refused(401, "NotAuthorizedException"))
        server.on(COMMIT, NO_ANSWER, refused(401, "NotAuthorizedException"))
        orders = lake.load_table("db.orders")
        with pytest.raises(CommitUnknownError, match=r"it happened if db\.orders has snapshot"):
            orders.append(rows)
        assert list(tmp_path.rglob("*.parquet"))
        assert list(tmp_path.rglob("*.avro"))
