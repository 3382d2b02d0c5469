"""Commits whose answers get lost, are refused or make no sense: what is there afterwards decides."""

import threading
from pathlib import Path

import msgspec
import pytest

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.client.transport import Transport
from bergline.errors import AlreadyExistsError, CommitUnknownError, UnavailableError, UnsupportedError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveSnapshotRef, SetProperties, SetSnapshotRef, Update, set_ref
from bergline.testing.catalog_suite import added_id, append, now_ms, table_metadata
from support.servers.scripted_rest_server import NO_ANSWER, Reply, Request, RestScript, load_answer, refused

pytestmark = pytest.mark.long

ORDERS = TableName(("db",), "orders")
TABLE = "/v1/namespaces/db/tables/orders"
LOAD, COMMIT = f"GET {TABLE}", f"POST {TABLE}"


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


def test_lost_answer_to_a_retention_that_shows_nowhere_proves_nothing(base: LoadedTable) -> None:
    """It may have been set, and set again by another client since, unless the only step since is the other's."""
    grown = after(base, *append(base).updates)
    ref = grown.metadata.refs["main"]
    own, other = (set_ref("main", msgspec.structs.replace(ref, max_ref_age_ms=age)) for age in (5, 6))
    found = after(grown, own, number=2)
    cases = (
        (after(found, other, number=3), Unknown),
        (after(grown, other, number=4), Conflicted),
        (after(grown, own, number=5), Committed),
    )
    with RestScript(overrides={"bergline.assert-ref-retention": "true"}) as server:
        catalog = RestCatalog(server.uri, {}, sleep=lambda _: None)
        for now, outcome in cases:
            server.on(COMMIT, NO_ANSWER)
            server.on(LOAD, shown(now))
            assert isinstance(catalog.commit((TableChange(grown, (), (own,)),)), outcome)
        assert len(server.sent(COMMIT)) == 3
        server.on(LOAD, shown(after(grown, other, number=6)))
        assert isinstance(catalog.commit((append(grown),)), Conflicted)
        catalog.close()


def test_answer_of_another_change_is_none(server: RestScript, catalog: RestCatalog, base: LoadedTable) -> None:
    server.on(COMMIT, shown(base))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((append(base),)), Unknown)


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
    kept = msgspec.structs.replace(tag, max_ref_age_ms=7)
    assert isinstance(catalog.commit((TableChange(grown, (), (kept,)),)), Unknown)  # tagged, and again by another?
    server.on(LOAD, shown(tagged))
    assert isinstance(catalog.commit((TableChange(grown, (), (kept,)),)), Conflicted)


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


def test_version_that_may_be_several_commits_does_not_tell_what_was_none_of_them(base: LoadedTable) -> None:
    """A server that moves appends commits what waits together: ours may have come first, and another after it."""
    tag = SetSnapshotRef("v1", added_id(first := append(base)), SnapshotRefType.TAG)
    grown = after(base, *first.updates)
    kept = msgspec.structs.replace(tag, max_ref_age_ms=7)
    for overrides, outcome in (({}, Conflicted), ({"bergline.may-move": "true"}, Unknown)):
        with RestScript(overrides=overrides) as server:
            catalog = RestCatalog(server.uri, {}, sleep=lambda _: None)
            server.on(COMMIT, NO_ANSWER)
            server.on(LOAD, shown(after(grown, tag, kept, number=2)))
            assert isinstance(catalog.commit((TableChange(grown, (), (tag,)),)), outcome)
            server.on(COMMIT, refused(409, "CommitFailedException"))
            assert isinstance(catalog.commit((TableChange(grown, (), (tag,)),)), Conflicted)
            catalog.close()


def test_rollback_that_another_has_undone_since_is_not_made_again(
    server: RestScript, catalog: RestCatalog, tmp_path: Path
) -> None:
    """Its requirement holds again, and the versions in between tell that it was made; without them it is unknown."""
    base = LoadedTable(ORDERS, table_metadata(f"file://{tmp_path}"), f"file://{tmp_path}/0.metadata.json")
    grown = after(base, *append(base).updates)
    grown = after(grown, *append(grown).updates, number=4)
    line = list(grown.metadata.ancestors(grown.metadata.ref("main").snapshot_id))
    back, forth = (SetSnapshotRef("main", line[n].snapshot_id, SnapshotRefType.BRANCH) for n in (1, 0))
    rolled = after(grown, back, number=2)
    rolled = msgspec.structs.replace(rolled, metadata_location=f"file://{tmp_path}/2.metadata.json")
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(after(rolled, forth, number=3)))
    change = TableChange(grown, (), (back,))
    assert isinstance(catalog.commit((change,)), Unknown)
    (tmp_path / "2.metadata.json").write_bytes(render_metadata(rolled.metadata))
    assert isinstance(catalog.commit((change,)), Committed)
    assert len(server.sent(COMMIT)) == 2


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


def test_change_that_is_wrong_only_because_the_table_moved_on_is_a_conflict(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(400, "ValidationException", "sequence number 1 is older than 2"))
    server.on(LOAD, shown(after(base, *append(base, "other").updates)))
    assert isinstance(catalog.commit((append(base),)), Conflicted)


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
