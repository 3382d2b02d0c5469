"""A server's records: idempotency keys, audit log and tokens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.catalog.sql import records as sql_records
from bergline.catalog.sql.records import REQUEST, AnsweredRequest, AuditEntry, Records
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.catalog.sql.tokens.tokens import hash_token
from bergline.errors import AlreadyExistsError, NotFoundError
from support.fixtures.catalog_files import new_catalog_file

ENTRIES = [
    AuditEntry(1, "ann", "create_table", "db.a"),
    AuditEntry(2, "bob", "commit_table", "db.a", "spark", "file:///a/1"),
    AuditEntry(3, "ann", "drop_table", "db.b"),
]


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    store = SqlitePointerStore(str(new_catalog_file(tmp_path / "c.db")))
    yield Records(store.database, "lake")
    store.close()


def request(key: str, at_ms: int = 5) -> AnsweredRequest:
    return AnsweredRequest(key, "ann", "create_table", "db.a", "f", 200, at_ms, body="{}")


def test_key_has_one_response(records: Records) -> None:
    assert records.find_request("k") is None
    records.finish_request(request("k"))
    assert records.find_request("k") == request("k")
    with pytest.raises(AlreadyExistsError) as taken:
        records.finish_request(request("k", 6))
    assert (taken.value.kind, taken.value.name) == (REQUEST, "k")
    records.forget_requests(5)
    assert records.find_request("k") is not None
    records.forget_requests(6)
    assert records.find_request("k") is None


def test_old_keys_and_changes_go_in_pieces(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_records, "_PIECE", 2)
    with records.database.changing() as connection:
        for number in range(5):
            records.add_request(connection, request(f"k{number}", number))
            records.add_audit(connection, AuditEntry(number, "ann", "commit_table", "db.a"))
    assert records.prune_audit_piece(4) == 2
    assert records.prune_audit(4) == 2
    assert [entry.at_ms for entry in records.audit()] == [4]
    records.forget_requests(4)
    assert [records.find_request(f"k{number}") is None for number in range(5)] == [True] * 4 + [False]


def test_record_is_rolled_back_with_its_change(records: Records) -> None:
    def fail() -> None:
        with records.database.changing() as connection:
            records.add_request(connection, request("k"))
            records.add_audit(connection, ENTRIES[0])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert records.find_request("k") is None
    assert records.audit() == []


def test_lost_conflicts_are_apart_from_changes(records: Records) -> None:
    with records.database.changing() as connection:
        records.add_audit(connection, ENTRIES[1])
    records.add_conflict(AuditEntry(9, "ann", "commit_table", "db.a", conflict="x" * 5000))
    assert records.audit() == records.newest_audit(9) == [ENTRIES[1]]
    lost, won = records.newest_audit(9, conflicts=True)
    assert (won, lost.principal, lost.conflict) == (ENTRIES[1], "ann", "x" * 2000)


def test_audit_is_read_newest_first_by_resource_principal_and_time(records: Records) -> None:
    with records.database.changing() as connection:
        for entry in ENTRIES:
            records.add_audit(connection, entry)
    assert records.audit() == ENTRIES
    assert records.newest_audit(2) == [ENTRIES[2], ENTRIES[1]]
    assert records.newest_audit(9, principal="ann") == [ENTRIES[2], ENTRIES[0]]
    assert records.newest_audit(9, resources=["db.a"], since_ms=2) == [ENTRIES[1]]
    assert records.newest_audit(9, resources=["db.a", "db.b"]) == ENTRIES[::-1]
    assert records.prune_audit(3) == 2
    assert records.audit() == ENTRIES[2:]


def test_catalog_requires_tokens_once_it_had_one(records: Records) -> None:
    assert not records.tokens.is_closed
    records.tokens.create("ann", "secret-text", 1, None)
    found = records.tokens.find("secret-text")
    assert found is not None
    assert (found.name, found.expires_ms) == ("ann", None)
    assert records.tokens.find("other") is None
    with pytest.raises(AlreadyExistsError):
        records.tokens.create("ann", "another", 1, None)
    records.tokens.revoke("ann")
    assert records.tokens.all() == []
    assert records.tokens.is_closed
    with pytest.raises(NotFoundError):
        records.tokens.revoke("ann")


def test_only_the_hash_of_a_token_is_stored(records: Records, tmp_path: Path) -> None:
    records.tokens.create("ann", "secret-text", 1, None)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert hash_token("secret-text").encode() in stored
    assert b"secret-text" not in stored
