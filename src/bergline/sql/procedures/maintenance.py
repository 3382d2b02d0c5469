"""`CALL system.maintain`, which the official runtime does not have: many tables by a policy."""

from collections.abc import Mapping

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.lake.lake import Lake
from bergline.lake.maintenance.maintain import maintain as maintain_tables
from bergline.sql.names.engine_context import EngineContext
from bergline.sql.procedures.procedure import Parameter, Procedure
from bergline.table.evolution.maintenance_policy import policy_of


def maintain(
    lake: Lake,
    *,
    engine: EngineContext,
    table: TableName | None = None,
    namespace: str | None = None,
    pattern: str | None = None,
    steps: tuple[str, ...] | None = None,
    policy: Mapping[str, str] | None = None,
    dry_run: bool = False,
    budget_seconds: int | None = None,
) -> pa.Table:
    """Maintain a table, some, or all of a lake; a row for each step, also of those that fail."""
    return maintain_tables(
        lake,
        policy_of(policy or {}),
        tables=None if table is None else [table],
        namespace=namespace,
        pattern=pattern,
        steps=steps,
        plan=dry_run,
        budget=budget_seconds,
        engine=engine.row_engine(),
    ).to_arrow()


MAINTENANCE_PROCEDURES: dict[str, Procedure] = {
    "maintain": Procedure(
        (
            Parameter("table", "string"),
            Parameter("namespace", "string"),
            Parameter("pattern", "string"),
            Parameter("steps", "array<string>"),
            Parameter("policy", "map<string,string>"),
            Parameter("dry_run", "boolean"),
            Parameter("budget_seconds", "bigint"),
        ),
        maintain,
        of_lake=True,
        needs_engine=True,
    ),
}
