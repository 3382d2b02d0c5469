from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.sql.records import AuditEntry, records_of
from bergline.console.page import Source
from bergline.console.pages.audit import audit_page
from bergline.errors import InvalidInputError


def test_changes_are_listed_newest_first_with_who_lost(source: Source, lake: Lake) -> None:
    records = records_of(lake.catalog)
    with records.database.changing() as connection:
        records.add_audit(connection, AuditEntry(1, "ann", "commit_table", "table/db/orders", "spark"))
        records.add_audit(connection, AuditEntry(2, "bob", "create_namespace", "namespace/db"))
    records.add_conflict(AuditEntry(3, "bob", "commit_table", "table/db/orders", conflict="`main` moved"))
    found = audit_page(source, {}).values["entries"]
    assert [(e["who"], e["resource"], e["table"], e["conflict"]) for e in found] == [
        ("bob", "db.orders", "db.orders", "`main` moved"),
        ("bob", "db", None, None),
        ("ann", "db.orders", "db.orders", None),
    ]
    assert [e["at_ms"] for e in audit_page(source, {"name": "db.orders", "who": "ann"}).values["entries"]] == [1]
    assert audit_page(source, {"limit": "2"}).values["more"] is True
    with pytest.raises(InvalidInputError, match="expected a limit from 1 to 1000"):
        audit_page(source, {"limit": "many"})


def test_catalog_without_an_audit_log_says_so(tmp_path: Path) -> None:
    with bergline.connect("memory:") as lake:
        found = audit_page(Source(lake, 0), {}).values
    assert "has no audit log" in found["problem"]["message"]


def test_database_is_left_as_it_is(source: Source, lake: Lake, tmp_path: Path) -> None:
    before = (tmp_path / "catalog.db").read_bytes()
    audit_page(source, {})
    assert (tmp_path / "catalog.db").read_bytes() == before
