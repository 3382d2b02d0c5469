"""`CALL system.create_changelog_view`, with the official arguments and result."""

from collections.abc import Mapping

import pyarrow as pa

from bergline.quoting import back_quoted
from bergline.sql.names.engine_context import EngineContext
from bergline.sql.names.selector import changelog_range
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.references.changed_rows import Changelog
from bergline.table.scans.changelog_scan import changelog_snapshots, match_rules
from bergline.table.table import Table

_VIEW = pa.schema([pa.field("changelog_view", pa.string(), nullable=False)])


def create_changelog_view(
    table: Table,
    *,
    engine: EngineContext,
    changelog_view: str | None = None,
    options: Mapping[str, str] | None = None,
    compute_updates: bool | None = None,
    identifier_columns: tuple[str, ...] | None = None,
    net_changes: bool = False,
) -> pa.Table:
    """Create a temporary view of the rows that changed, by default `<table>_changes`."""
    rules = match_rules(
        table.metadata,
        table.schema,
        net_changes=net_changes,
        compute_updates=compute_updates,
        identifier_columns=identifier_columns,
    )
    snapshots = changelog_snapshots(table.metadata, changelog_range(options or {}))
    changes = Changelog(table.io, table.metadata, table.schema, rules, snapshots=snapshots)
    name = back_quoted(f"{table.name.name}_changes") if changelog_view is None else changelog_view
    engine.create_view(name, changes)
    return pa.Table.from_pylist([{"changelog_view": name}], schema=_VIEW)


CHANGELOG_PROCEDURES = {
    "create_changelog_view": Procedure(
        (
            TABLE,
            Parameter("changelog_view", "string"),
            Parameter("options", "map<string,string>"),
            Parameter("compute_updates", "boolean"),
            Parameter("identifier_columns", "array<string>"),
            Parameter("net_changes", "boolean"),
        ),
        create_changelog_view,
        needs_engine=True,
    ),
}
