"""The audit of requests in the database, and its export with the changes."""

from pathlib import Path

import msgspec
import pytest

from bergline.catalog.sql.records import AuditEntry, records_of
from bergline.governance.audit import store as audited_requests
from bergline.governance.audit.store import AuditedRequest, AuditKind, SqlAuditedRequests
from bergline.lake.lake import connect
from support.fixtures.catalog_files import new_catalog_uri


def test_requests_and_changes_come_in_the_order_of_time_over_all_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited_requests, "_PIECE", 3)
    with connect(new_catalog_uri(tmp_path / "catalog.db")) as lake:
        records = records_of(lake.catalog)
        audited = SqlAuditedRequests(records.database, records.catalog_name)
        of_others = SqlAuditedRequests(records.database, "other")
        times = [5, 5, 5, 5, 1, 9, 7, 7, 3, 5]
        audited.add(
            [AuditedRequest(at, AuditKind.READ, "ann", "::1", "load_table", f"t{n}") for n, at in enumerate(times)]
        )
        of_others.add([AuditedRequest(5, AuditKind.DENIED, "bob", "::1", "load_table", "t")])
        with records.database.changing() as connection:
            for at, conflict in ((2, None), (5, None), (8, "came second")):
                records.add_audit(
                    connection, AuditEntry(at, "ann", "commit_table", "t", "a/1", "s3://b/m", conflict=conflict)
                )
        lines = list(audited.lines())
        assert [line.time[20:23].lstrip("0") for line in lines] == [*"123", *"555555", *"7789"]
        assert {line.principal for line in lines} == {"ann"}
        assert len({line.resource for line in lines if line.kind is AuditKind.READ}) == len(times)
        assert [line.detail for line in audited.lines(kinds=[AuditKind.CONFLICT])] == ["came second"]
        assert len(list(audited.lines(3, 8))) == 1 + 6 + 2
        assert len(list(of_others.lines())) == 1
        while audited.prune_piece(7):
            pass
        assert [line.time[22] for line in audited.lines(kinds=[AuditKind.READ])] == [*"779"]
        assert len(list(of_others.lines())) == 1


def test_lines_have_only_what_there_is() -> None:
    line = audited_requests.line_of(
        AuditedRequest(0, AuditKind.READ, "ann", "::1", "load_table", "t", until_ms=1, count=2)
    )
    assert msgspec.json.encode(line) == (
        b'{"time":"1970-01-01T00:00:00.000Z","kind":"read","principal":"ann","operation":"load_table","resource":"t",'
        b'"address":"::1","count":2,"until":"1970-01-01T00:00:00.001Z"}'
    )
