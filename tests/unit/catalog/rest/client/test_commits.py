"""Commits whose answers get lost, are refused or make no sense: what is there afterwards decides."""

import threading
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from scripted_rest_server import NO_ANSWER, Reply, Request, RestScript, load_answer, refused

import bergline
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.client.transport import Transport
from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveSnapshotRef, RemoveSnapshots, SetProperties, SetSnapshotRef, Update
from bergline.testing.catalog_suite import added_id, append, now_ms, table_metadata

pytestmark = pytest.mark.long

ORDERS = TableName(("db",), "orders")
TABLE = "/v1/namespaces/db/tables/orders"
LOAD, COMMIT = f"GET {TABLE}", f"POST {TABLE}"
KEYS = {"idempotency-key-lifetime": "PT30M"}
REGISTER = "POST /v1/namespaces/db/register"


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def after(base: LoadedTable, *updates: Update, number: int = 1) -> LoadedTable:
    """The table after updates, at a new pointer."""
    metadata = apply_updates(base.metadata, updates, base_location=base.metadata_location, now_ms=now_ms())
    return LoadedTable(base.name, metadata, f"file:///lake/orders/metadata/{number}.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


def test_commit_sends_requirements_and_updates_and_gives_the_table(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    change = append(base)
    server.on(COMMIT, shown(after(base, *change.updates)))
    outcome = catalog.commit((change,))
    assert isinstance(outcome, Committed)
    assert added_id(change) in outcome.tables[0].metadata.snapshots_by_id
    sent = server.sent(COMMIT)[0].content
    assert {r["type"] for r in sent["requirements"]} == {"assert-table-uuid", "assert-ref-snapshot-id"}
    assert [u["action"] for u in sent["updates"]] == ["add-snapshot", "set-snapshot-ref"]


@pytest.mark.parametrize(
    "lost",
    [NO_ANSWER, Reply(408), Reply(500), Reply(502, b"<html>"), Reply(504), Reply(503), Reply(200, b"{nonsense")],
)
def test_lost_answer_of_a_commit_that_landed_is_found_out(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, lost: Reply
) -> None:
    change = append(base)
    server.on(COMMIT, lost)
    server.on(LOAD, shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)
    assert len(server.sent(COMMIT)) == 1


def test_answer_that_ends_in_the_middle_is_a_lost_one(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    change = append(base)
    landed = shown(after(base, *change.updates))
    server.on(COMMIT, landed._replace(cut=True))
    server.on(LOAD, landed)
    assert isinstance(catalog.commit((change,)), Committed)


def test_commit_that_never_landed_is_sent_again_because_it_cannot_happen_twice(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    change = append(base)
    server.on(COMMIT, NO_ANSWER, shown(after(base, *change.updates)))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((change,)), Committed)
    first, second = server.sent(COMMIT)
    assert first.body == second.body


def test_commit_that_landed_after_it_was_looked_for_is_found_by_its_own_refusal(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    change = append(base)
    server.on(COMMIT, NO_ANSWER, refused(409, "CommitFailedException"))
    server.on(LOAD, shown(base), shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)


def test_lost_answer_while_another_came_first_is_a_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(after(base, *append(base).updates)))
    assert isinstance(catalog.commit((append(base),)), Conflicted)


@pytest.mark.parametrize("expired", [0, 1])
def test_server_that_shows_all_snapshots_tells_who_came_first_and_one_that_expired_some_does_not(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, expired: int
) -> None:
    newer = after(base, *append(base).updates)
    last = newer.metadata.last_sequence_number + expired
    metadata = msgspec.structs.replace(newer.metadata, metadata_log=(), last_sequence_number=last)
    server.on(LOAD, shown(msgspec.structs.replace(newer, metadata=metadata)))
    for answer in (NO_ANSWER, refused(409, "CommitFailedException")):
        server.on(COMMIT, answer)
        assert isinstance(catalog.commit((append(base),)), Unknown if expired else Conflicted)


def test_answer_of_another_change_is_none(server: RestScript, catalog: RestCatalog, base: LoadedTable) -> None:
    server.on(COMMIT, shown(base))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((append(base),)), Unknown)


def test_name_that_is_taken_and_cannot_be_seen_is_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(409, "AlreadyExistsException"))
    server.on(LOAD, refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="cannot find out whether"):
        catalog.create_table(base.name, base.metadata)


def test_refs_are_refused_where_they_would_land_in_main(base: LoadedTable) -> None:
    with RestScript(overrides={"nessie.is-nessie-catalog": "true"}) as server:
        catalog = RestCatalog(server.uri, {})
        with pytest.raises(UnsupportedError, match="tables on Nessie have no branches"):
            catalog.commit((append(base, "dev"),))
        assert not server.sent(COMMIT)
        change = append(base)
        server.on(COMMIT, shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        catalog.close()


def test_refusal_is_a_conflict_with_the_words_of_the_server(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(409, "CommitFailedException", "snapshot 7 of flink came first"))
    server.on(LOAD, shown(after(base, *append(base).updates)))
    outcome = catalog.commit((append(base),))
    assert isinstance(outcome, Conflicted)
    assert "snapshot 7 of flink came first" in str(outcome.reason)


def test_refusal_of_a_twin_that_was_delivered_twice_is_no_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    change = append(base)
    server.on(COMMIT, refused(409, "CommitFailedException"))
    server.on(LOAD, shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)


def test_server_that_stays_silent_leaves_the_outcome_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, waits: list[float]
) -> None:
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, NO_ANSWER)
    change = append(base)
    outcome = catalog.commit((change,))
    assert isinstance(outcome, Unknown)
    assert outcome.metadata_location is None
    assert outcome.cause.endswith(f"; it happened if db.orders has snapshot {added_id(change)}")
    assert len(server.sent(COMMIT)) == 1
    assert waits


def test_change_that_could_happen_twice_is_not_sent_again(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((TableChange(base, (), (SetProperties({"a": "1"}),)),)), Unknown)
    assert len(server.sent(COMMIT)) == 1


def test_refusal_of_a_commit_that_was_sent_again_does_not_tell_of_the_first(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """Rights, say, that somebody took away between the two: the first may still land."""
    server.on(COMMIT, NO_ANSWER, refused(403, "ForbiddenException"))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((append(base),)), Unknown)


def test_ref_that_is_where_it_was_to_go_is_no_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """Also when others committed since: its own requirement fails then because it landed."""
    first = append(base)
    grown = after(base, *first.updates)
    tag = SetSnapshotRef("v1", added_id(first), SnapshotRefType.TAG)
    tagged = after(grown, tag, number=2)
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(after(tagged, *append(tagged).updates, number=3)))
    assert isinstance(catalog.commit((TableChange(grown, (), (tag,)),)), Committed)
    moved = msgspec.structs.replace(tag, snapshot_id=added_id(first), max_ref_age_ms=7)
    assert isinstance(catalog.commit((TableChange(grown, (), (moved,)),)), Conflicted)


def test_dropped_ref_that_is_gone_is_no_conflict(server: RestScript, catalog: RestCatalog, base: LoadedTable) -> None:
    grown = after(base, *append(base, "dev").updates)
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(after(grown, RemoveSnapshotRef("dev"), number=2)))
    assert isinstance(catalog.commit((TableChange(grown, (), (RemoveSnapshotRef("dev"),)),)), Committed)


def test_change_without_snapshot_is_known_by_where_it_leads(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    update = SetProperties({"a": "1"})
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(after(base, update)))
    assert isinstance(catalog.commit((TableChange(base, (), (update,)),)), Committed)
    server.on(LOAD, shown(after(base, SetProperties({"a": "2"}), number=2)))
    assert isinstance(catalog.commit((TableChange(base, (), (update,)),)), Unknown)


def test_table_that_is_gone_when_the_answer_was_lost_leaves_it_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    assert isinstance(catalog.commit((append(base),)), Unknown)


def test_key_makes_every_change_repeatable(base: LoadedTable, waits: list[float]) -> None:
    change = TableChange(base, (), (SetProperties({"a": "1"}),))
    with RestScript(**{"idempotency-key-lifetime": "PT30M"}) as server:
        catalog = RestCatalog(server.uri, {}, sleep=waits.append)
        server.on(COMMIT, NO_ANSWER, Reply(500), Reply(503), shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        keys = [r.headers["Idempotency-Key"] for r in server.sent(COMMIT)]
        assert len(keys) == 4
        assert len(set(keys)) == 1
        assert (keys[0][14], keys[0][19] in "89ab") == ("7", True)
        server.on(COMMIT, shown(after(base, *change.updates)))
        catalog.commit((change,))
        assert server.sent(COMMIT)[-1].headers["Idempotency-Key"] != keys[0]
        server.on(LOAD, shown(base))
        catalog.load_table(base.name)
        assert "Idempotency-Key" not in server.sent(LOAD)[0].headers
        catalog.close()


@pytest.mark.parametrize("later", [Reply(429), Reply(401), Reply(403), Reply(301), Reply(413)])
def test_later_try_that_is_not_let_in_says_nothing_of_the_one_before(
    later: Reply, base: LoadedTable, waits: list[float]
) -> None:
    """The first may have landed: taken for a refusal, its files would be deleted."""
    change = append(base)
    with RestScript(**KEYS) as server:
        catalog = RestCatalog(server.uri, {"token": "t"}, sleep=waits.append)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, later)
        assert isinstance(catalog.commit((change,)), Unknown)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        catalog.close()


@pytest.mark.parametrize(
    "later",
    [
        refused(409, "CommitFailedException"),
        refused(400, "BadRequestException"),
        refused(404, "NoSuchTableException"),
        refused(429, "TooManyRequestsException"),
        Reply(404, b"<html>"),
        Reply(406),
        Reply(503),
    ],
)
def test_refusal_of_a_later_try_with_the_same_key_tells_nothing_of_the_first(later: Reply, base: LoadedTable) -> None:
    change = append(base)
    with RestScript(**KEYS) as server:
        catalog = RestCatalog(server.uri, {}, sleep=lambda _: None)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        assert len({r.headers["Idempotency-Key"] for r in server.sent(COMMIT)}) == 1
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, NO_ANSWER)
        assert isinstance(catalog.commit((change,)), Unknown)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, shown(base))
        twice = TableChange(base, (), (SetProperties({"a": "1"}),))
        assert isinstance(catalog.commit((twice,)), Unknown)
        catalog.close()


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


@pytest.mark.parametrize("answer", [Reply(204), Reply(200)])
def test_transaction_that_moved_no_table_is_not_believed(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply
) -> None:
    other = msgspec.structs.replace(base, name=TableName(("db",), "items"))
    server.on("POST /v1/transactions/commit", answer)
    server.on(LOAD, shown(base))
    server.on("GET /v1/namespaces/db/tables/items", shown(other))
    outcome = catalog.commit((append(base), append(other)))
    assert isinstance(outcome, Unknown)
    assert "none has moved" in outcome.cause


def test_published_branch_that_others_built_on_is_no_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """Fast-forwarded and dropped, with the answer lost, and a commit on top since."""
    first = append(base)
    grown = after(base, *first.updates)
    branched = after(grown, *append(grown, "dev").updates, number=2)
    head = branched.metadata.ref("dev").snapshot_id
    updates = SetSnapshotRef("main", head, SnapshotRefType.BRANCH), RemoveSnapshotRef("dev")
    published = after(branched, *updates, number=3)
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(after(published, *append(published).updates, number=4)))
    assert isinstance(catalog.commit((TableChange(branched, (), updates),)), Committed)
    server.on(LOAD, shown(after(branched, *append(branched).updates, number=5)))
    assert isinstance(catalog.commit((TableChange(branched, (), updates),)), Conflicted)


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


def test_key_is_not_used_any_longer_than_the_server_knows_it(base: LoadedTable, waits: list[float]) -> None:
    change = append(base)
    late = Reply(503, headers={"Retry-After": "7"})
    for lifetime, times in (("PT5S", 2), ("PT1M", 4), ("P1DT0.5S", 4)):
        with RestScript(**{"idempotency-key-lifetime": lifetime}) as server:
            catalog = RestCatalog(server.uri, {}, sleep=waits.append)
            server.on(COMMIT, NO_ANSWER, late)
            server.on(LOAD, shown(after(base, *change.updates)))
            assert isinstance(catalog.commit((change,)), Committed)
            assert len(server.sent(COMMIT)) == times
            catalog.close()


@pytest.mark.parametrize("lifetime", ["", "soon", "PT0S", None])
def test_keys_of_no_lifetime_are_not_sent(base: LoadedTable, lifetime: str | None) -> None:
    with RestScript(**{"idempotency-key-lifetime": lifetime}) as server:
        catalog = RestCatalog(server.uri, {})
        server.on(COMMIT, refused(409, "CommitFailedException"))
        catalog.commit((append(base),))
        assert "Idempotency-Key" not in server.sent(COMMIT)[0].headers
        catalog.close()


def test_server_that_advertises_no_keys_gets_none(server: RestScript, catalog: RestCatalog, base: LoadedTable) -> None:
    server.on(COMMIT, refused(409, "CommitFailedException"))
    catalog.commit((append(base),))
    assert "Idempotency-Key" not in server.sent(COMMIT)[0].headers


@pytest.mark.parametrize(
    "put_off",
    [refused(429, "TooManyRequestsException"), refused(503, "ServiceUnavailableException", **{"Retry-After": "7"})],
)
def test_commit_that_was_put_off_is_sent_again(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, put_off: Reply, waits: list[float]
) -> None:
    change = append(base)
    server.on(COMMIT, put_off, shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)
    assert waits == [7.0] or put_off.status == 429


def test_commit_that_is_always_put_off_changed_nothing(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(429, "TooManyRequestsException"))
    server.on(LOAD, shown(base))
    with pytest.raises(UnavailableError, match="put off"):
        catalog.commit((append(base),))


@pytest.mark.parametrize(
    "put_off", [Reply(429, headers={"Retry-After": "7"}), Reply(503, headers={"Retry-After": "7"})]
)
def test_commit_that_somebody_put_off_is_looked_for_after_the_time_asked_for(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, put_off: Reply, waits: list[float]
) -> None:
    change = append(base)
    server.on(COMMIT, put_off, shown(after(base, *change.updates)))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((change,)), Committed)
    assert waits == [7.0]
    server.on(COMMIT, put_off)
    assert isinstance(catalog.commit((change,)), Unknown)


def test_server_that_is_not_there_changed_nothing(base: LoadedTable, waits: list[float]) -> None:
    with RestScript() as server:
        server.on("GET /v1/config", Reply(body={}, headers={"Connection": "close"}))
        catalog = RestCatalog(server.uri, {}, sleep=waits.append)
    with pytest.raises(UnavailableError, match="cannot reach http://127"):
        catalog.commit((append(base),))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(400, "BadRequestException"), InvalidInputError),
        (refused(401, "NotAuthorizedException"), AuthenticationError),
        (refused(403, "ForbiddenException"), RefusedError),
        (refused(404, "NoSuchTableException"), NotFoundError),
        (refused(406, "UnsupportedOperationException"), UnsupportedError),
    ],
)
def test_refusals_are_our_errors(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, reply: Reply, error: type[Exception]
) -> None:
    server.on(COMMIT, reply)
    server.on(LOAD, shown(base))
    with pytest.raises(error):
        catalog.commit((append(base),))
    assert len(server.sent(COMMIT)) == 1


def test_change_that_is_wrong_only_because_the_table_moved_on_is_a_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(400, "ValidationException", "sequence number 1 is older than 2"))
    server.on(LOAD, shown(after(base, *append(base, "other").updates)))
    assert isinstance(catalog.commit((append(base),)), Conflicted)


def test_removal_names_all_refs_so_that_none_is_lost(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    first = append(base, "dev")
    grown = after(base, *first.updates)
    server.on(COMMIT, shown(after(grown, RemoveSnapshotRef("dev"), RemoveSnapshots((added_id(first),)))))
    catalog.commit((TableChange(grown, (), (RemoveSnapshotRef("dev"), RemoveSnapshots((added_id(first),)))),))
    sent = server.sent(COMMIT)[0].content["requirements"]
    assert {"type": "assert-ref-snapshot-id", "ref": "dev", "snapshot-id": added_id(first)} in sent
    assert len(sent) == 2


def test_several_tables_go_in_one_request(server: RestScript, catalog: RestCatalog, base: LoadedTable) -> None:
    other = msgspec.structs.replace(base, name=TableName(("db",), "items"))
    changes = append(base), append(other)
    server.on("POST /v1/transactions/commit", Reply(204))
    server.on(LOAD, shown(after(base, *changes[0].updates)))
    server.on("GET /v1/namespaces/db/tables/items", NO_ANSWER)
    outcome = catalog.commit(changes)
    assert isinstance(outcome, Committed)
    for change, table in zip(changes, outcome.tables, strict=True):
        assert added_id(change) in table.metadata.snapshots_by_id
    sent = server.sent("POST /v1/transactions/commit")[0].content["table-changes"]
    assert [c["identifier"]["name"] for c in sent] == ["orders", "items"]


def test_lost_answer_for_several_tables_is_told_by_one_of_them(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    other = msgspec.structs.replace(base, name=TableName(("db",), "items"))
    changes = append(base), append(other)
    server.on("POST /v1/transactions/commit", NO_ANSWER)
    server.on(LOAD, shown(after(base, *changes[0].updates)))
    newer = after(other, *changes[1].updates)
    server.on("GET /v1/namespaces/db/tables/items", shown(after(newer, *append(newer).updates, number=2)))
    assert isinstance(catalog.commit(changes), Committed)


def test_server_without_transactions_moves_one_table_at_a_time(base: LoadedTable) -> None:
    with RestScript(endpoints=["POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"]) as server:
        catalog = RestCatalog(server.uri, {})
        assert not catalog.atomic_tables
        with pytest.raises(UnsupportedError, match="moves one at a time"):
            catalog.commit((append(base), append(msgspec.structs.replace(base, name=TableName(("db",), "items")))))
        catalog.close()


def creating(metadata: TableMetadata) -> Reply:
    return shown(LoadedTable(ORDERS, metadata, f"file:///lake/orders/metadata/0-{metadata.table_uuid}.metadata.json"))


def test_new_table_is_known_by_its_uuid_after_a_lost_answer(server: RestScript, catalog: RestCatalog) -> None:
    metadata = table_metadata("file:///lake/orders")
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, creating(metadata))
    assert catalog.create_table(ORDERS, metadata).metadata.table_uuid == metadata.table_uuid
    server.on(LOAD, creating(table_metadata("file:///lake/orders")))
    with pytest.raises(AlreadyExistsError):
        catalog.create_table(ORDERS, metadata)


def test_new_table_that_never_came_is_sent_again(server: RestScript, catalog: RestCatalog) -> None:
    metadata = table_metadata("file:///lake/orders")
    server.on(COMMIT, NO_ANSWER, creating(metadata))
    server.on(LOAD, refused(404, "NoSuchTableException"))
    assert catalog.create_table(ORDERS, metadata).metadata.table_uuid == metadata.table_uuid


@pytest.mark.parametrize("lost", [NO_ANSWER, Reply(502)])
def test_place_for_a_new_table_that_is_not_told_changes_nothing(
    server: RestScript, catalog: RestCatalog, lost: Reply
) -> None:
    server.on("POST /v1/namespaces/db/tables", lost)
    with pytest.raises(UnavailableError):
        catalog.default_location(ORDERS)


def test_new_table_nobody_tells_about_is_unknown(server: RestScript, catalog: RestCatalog) -> None:
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, NO_ANSWER)
    with pytest.raises(CommitUnknownError, match=r"whether table `db\.orders` was created"):
        catalog.create_table(ORDERS, table_metadata("file:///lake/orders"))


def test_drop_whose_answer_is_lost_is_done_when_the_table_is_gone(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(f"DELETE {TABLE}", NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    catalog.drop_table(ORDERS)
    assert server.sent(f"DELETE {TABLE}")[0].query == {"purgeRequested": "false"}
    for answer in (shown(base), refused(401, "NotAuthorizedException")):
        server.on(LOAD, answer)
        with pytest.raises(CommitUnknownError, match="was dropped"):
            catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base), refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="was dropped"):  # it may have been renamed: files must not go
        catalog.drop_table(ORDERS, base.metadata_location)


GONE = refused(404, "NoSuchTableException")
DROP = f"DELETE {TABLE}"


@pytest.mark.parametrize(
    "answer", [Reply(200, b"<html>"), Reply(204), Reply(200), Reply(200, {}), Reply(302), Reply(404)]
)
def test_table_is_dropped_only_when_it_is_gone(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply
) -> None:
    server.on(DROP, answer)
    server.on(LOAD, shown(base), GONE)
    catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base))
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base), Reply(404, b"<html>"))
    if answer.data or answer.status != 204:
        return
    catalog.drop_table(ORDERS)  # as the protocol says, and nobody can look


def test_table_of_the_same_name_that_came_since_does_not_hide_a_drop(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(DROP, Reply(204))
    server.on(LOAD, shown(base), creating(table_metadata("file:///lake/orders")))
    catalog.drop_table(ORDERS)


@pytest.mark.parametrize("status", [400, 403, 404, 409])
def test_refused_drop_of_a_table_that_is_gone_since_is_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, status: int
) -> None:
    server.on(DROP, refused(status, "SomeException"))
    server.on(LOAD, shown(base), GONE)
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base))
    with pytest.raises(BerglineError) as caught:
        catalog.drop_table(ORDERS)
    assert not isinstance(caught.value, CommitUnknownError)
    server.on(LOAD, GONE)
    with pytest.raises(BerglineError) as caught:
        catalog.drop_table(ORDERS)
    assert not isinstance(caught.value, CommitUnknownError)


@pytest.mark.parametrize(
    ("answer", "look"),
    [
        (Reply(200, b"<html>"), GONE),
        (Reply(204), Reply(404, b"<html>")),
        (Reply(204), NO_ANSWER),
        (Reply(204), None),
        (Reply(200), None),
        (Reply(404, b"<html>"), GONE),
    ],
)
def test_files_of_a_purged_table_stay_until_the_server_has_it_no_more(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply, look: Reply | None
) -> None:
    server.on(DROP, answer)
    server.on(LOAD, shown(base), look or shown(base))
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_table(ORDERS, base.metadata_location)
    server.on(DROP, Reply(204))
    server.on(LOAD, shown(base), GONE)
    catalog.drop_table(ORDERS, base.metadata_location)


@pytest.mark.parametrize("answer", [Reply(200, b"<html>"), Reply(204), Reply(301), refused(403, "ForbiddenException")])
def test_rename_is_judged_by_where_the_table_is(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply
) -> None:
    new = TableName(("db",), "moved")
    server.on("POST /v1/tables/rename", answer)
    server.on(LOAD, shown(base), GONE)
    server.on("GET /v1/namespaces/db/tables/moved", shown(base))
    if answer.status == 403:
        with pytest.raises(CommitUnknownError, match="was renamed"):
            catalog.rename_table(ORDERS, new)
    else:
        catalog.rename_table(ORDERS, new)
    server.on(LOAD, shown(base))
    server.on("GET /v1/namespaces/db/tables/moved", GONE)
    with pytest.raises(RefusedError if answer.status == 403 else CommitUnknownError):
        catalog.rename_table(ORDERS, new)


def test_rename_whose_answer_is_lost_is_done_when_the_table_has_the_new_name(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    new = TableName(("db",), "moved")
    server.on("POST /v1/tables/rename", NO_ANSWER)
    server.on(LOAD, shown(base), refused(404, "NoSuchTableException"))
    server.on("GET /v1/namespaces/db/tables/moved", shown(base))
    catalog.rename_table(ORDERS, new)
    server.on(LOAD, shown(base))
    with pytest.raises(CommitUnknownError, match=r"was renamed to `db\.moved`"):
        catalog.rename_table(ORDERS, new)


def test_registered_table_is_known_by_its_metadata_file_after_a_lost_answer(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """Also when others committed to it since; another table of that name is not taken for it."""
    gone, since = refused(404, "NoSuchTableException"), after(base, SetProperties({"a": "1"}))
    server.on(REGISTER, NO_ANSWER)
    for now in (base, since):
        server.on(LOAD, gone, shown(now))
        assert catalog.register_table(ORDERS, base.metadata_location).metadata_location == now.metadata_location
    server.on(LOAD, gone, shown(since))
    with pytest.raises(AlreadyExistsError, match=r"`db\.orders` exists already"):
        catalog.register_table(ORDERS, "file:///lake/orders/metadata/other.metadata.json")


def test_register_that_nothing_shows_of_is_unknown_and_sent_once(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(REGISTER, NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="was registered"):
        catalog.register_table(ORDERS, base.metadata_location)
    assert len(server.sent(REGISTER)) == 1


def test_name_that_is_taken_is_not_registered_again(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(LOAD, shown(base))
    with pytest.raises(AlreadyExistsError):
        catalog.register_table(ORDERS, base.metadata_location)
    assert server.sent(REGISTER) == []


def test_unregister_whose_answer_is_lost_is_unknown(server: RestScript, catalog: RestCatalog) -> None:
    """Where the metadata was only the answer tells."""
    server.on(f"POST {TABLE}/unregister", NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="was unregistered"):
        catalog.unregister_table(ORDERS)


def test_commit_that_hangs_ends_in_time_and_is_found_out(
    server: RestScript, base: LoadedTable, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the commit has little time: how long the server takes for everything else does not matter."""
    over = threading.Event()

    def never(_: Request) -> Reply:
        over.wait(60)
        return NO_ANSWER

    catalog = RestCatalog(server.uri, {}, sleep=waits.append)
    quick, send = Transport((60, 0.05)), Transport.send
    monkeypatch.setattr(Transport, "send", lambda own, *call: send(quick if call[0] == "POST" else own, *call))
    server.on(COMMIT, never)
    server.on(LOAD, shown(after(base, *append(base).updates)))
    assert isinstance(catalog.commit((append(base),)), Conflicted)
    over.set()
    quick.close()
    catalog.close()


def test_server_that_hangs_is_given_up_after_the_time_that_was_asked_for(server: RestScript) -> None:
    over = threading.Event()

    def never(_: Request) -> Reply:
        over.wait(60)
        return NO_ANSWER

    server.on("GET /v1/config", never)
    with pytest.raises(UnavailableError, match=r"no response from .*timed out. \(read timeout=0\.05\)"):
        RestCatalog(server.uri, {"rest.client.socket-timeout-ms": "50"}, sleep=lambda _: None)
    over.set()
