"""Rules about refs in the audit log."""

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import RuleNote, acting_as
from bergline.catalog.sql.records import AuditEntry
from bergline.server.commits.rule_notes import audit_rules
from bergline.server.handlers.context import ServerContext

ORDERS = TableName(("db",), "orders")


def test_each_rule_that_was_bypassed_or_changed_has_a_row(context: ServerContext) -> None:
    change = AuditEntry(7, "ann", "commit_table", "table/db/orders", "spark")
    with acting_as("ann") as caller, context.records.database.changing() as connection:
        caller.notes[ORDERS] = (RuleNote("bypass_ref_rule", "main"), RuleNote("change_ref_rule", "x" * 100))
        audit_rules(context.records, connection, change, {ORDERS: "file:///m.json"})
    rows = [
        (e.at_ms, e.principal, e.operation, e.resource, e.agent, e.metadata_location) for e in context.records.audit()
    ]
    assert rows == [
        (7, "ann", "bypass_ref_rule:main", "table/db/orders", "spark", "file:///m.json"),
        (7, "ann", f"change_ref_rule:{'x' * 48}", "table/db/orders", "spark", "file:///m.json"),
    ]


def test_change_that_passed_no_rule_has_no_row(context: ServerContext) -> None:
    with acting_as("ann"), context.records.database.changing() as connection:
        audit_rules(context.records, connection, AuditEntry(7, "ann", "commit_table", "table/db/orders"), {})
    assert context.records.audit() == []
