"""Rules about refs in the audit log: which were bypassed or changed by a change that was made."""

from collections.abc import Mapping

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import current_caller
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.records import AuditEntry, Records

_MAX_OPERATION_CHARACTERS = 64


def audit_rules(
    records: Records, connection: Connection, change: AuditEntry, locations: Mapping[TableName, str | None]
) -> None:
    """Add a row for each rule that the caller bypassed or changed, in the transaction of the change."""
    for name, notes in current_caller().notes.items():
        for note in notes:
            entry = AuditEntry(
                change.at_ms,
                change.principal,
                f"{note.operation}:{note.rule}"[:_MAX_OPERATION_CHARACTERS],
                f"table/{'.'.join(name.namespace)}/{name.name}",
                change.agent,
                locations.get(name),
            )
            records.add_audit(connection, entry)
