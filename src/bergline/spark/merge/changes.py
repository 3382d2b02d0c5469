"""The changes that a MERGE makes, as one frame: for each row its action, its place in the table, and its new columns.

The frame that it starts from is target and source joined, with what the clauses make of each row (see
`text_query.py` and `frames.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import ROW_ID
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import NestedField
from bergline.spark.backends.choose import backend_of
from bergline.spark.merge.clauses import (
    CLAUSE,
    FILE_COLUMN,
    INSERTED,
    MATCHED,
    POS_COLUMN,
    PRESENT,
    RESULTS,
    ROW_ID_COLUMN,
    UNMATCHED,
    AssignedClause,
    target_column,
    value_field,
)
from bergline.spark.query_text.assigned_fields import INVALID_ASSIGNMENTS, default_literal
from bergline.spark.rows.change_task import ADDS, DELETES
from bergline.spark.rows.changes import ACTION, FILE, POS
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.assigned_columns import assigned_value, updated_columns
from bergline.spark.writes.projection import SqlOrColumn, project, with_computed
from bergline.spark.writes.store_assignment import AssignmentRules, atomic_name
from bergline.sql.text.tokens import Name
from bergline.table.row_merges.clauses import MergeClause, When

Clauses = Sequence[MergeClause[Any, Any]]
BY_SOURCE = 4
"""The bit of an action that says: no source row matched this row of the table."""
_ACTIONS = {"delete": DELETES, "update": DELETES | ADDS, "insert": ADDS}
_SUMMARY = "spark.merge-into.num-target-rows-"
COPIED = f"{_SUMMARY}copied"
_CLAUSE = "_bergline_clause"


def merge_changes(
    joined: DataFrame, assigned: Sequence[AssignedClause], metadata: TableMetadata, rules: AssignmentRules
) -> DataFrame:
    """A change frame (see `changes.py`); rows without any change are left out.

    Rows that are matched and stay as they are have the action 0 where more than one source row for them is an error.
    """
    found, clauses = joined.schema, [one.clause for one in assigned]
    structs = [name for name in (MATCHED, INSERTED, UNMATCHED) if name in found.names]
    clause = f"coalesce({', '.join(f'{name}.{CLAUSE}' for name in structs)})"
    flat = backend_of(joined).select_texts(joined, ["*", f"{clause} AS {_CLAUSE}"])
    if not _has_action_for_all(clauses):
        wanted = f"{_CLAUSE} IS NOT NULL"
        if checks_cardinality(clauses) and _leaves_some(clauses, "matched"):
            wanted += f" OR ({FILE_COLUMN} IS NOT NULL AND {PRESENT} IS NOT NULL)"
        flat = flat.where(wanted)
    flat, columns = _new_columns(flat, found, assigned, metadata.schema, rules)
    has_row_ids = metadata.format_version >= ROW_LINEAGE_VERSION
    row_id = [(ROW_ID.name, _row_id(clauses, found))] if columns and has_row_ids else []
    file, pos = _place(found, FILE_COLUMN, "string"), _place(found, POS_COLUMN, "bigint")
    return project(flat, [(ACTION, _action(clauses)), (FILE, file), (POS, pos), *row_id, *columns.items()])


def checks_cardinality(clauses: Clauses) -> bool:
    """Whether two source rows for one row of the table are an error: not where all that match are deleted."""
    matched = [clause for clause in clauses if clause.when == "matched"]
    return bool(matched) and not (len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None)


def merge_summary(counts: Mapping[int, int]) -> dict[str, str]:
    """The counts of a MERGE for the snapshot's summary, by the official runtime's names."""
    by_source = {action: counts.get(action | BY_SOURCE, 0) for action in (DELETES, DELETES | ADDS)}
    deleted, updated = counts.get(DELETES, 0), counts.get(DELETES | ADDS, 0)
    found = {
        "deleted": deleted + by_source[DELETES],
        "inserted": counts.get(ADDS, 0),
        "matched-deleted": deleted,
        "matched-updated": updated,
        "not-matched-by-source-deleted": by_source[DELETES],
        "not-matched-by-source-updated": by_source[DELETES | ADDS],
        "updated": updated + by_source[DELETES | ADDS],
    }
    return {f"{_SUMMARY}{name}": str(count) for name, count in found.items()}


def _has_action_for_all(clauses: Clauses) -> bool:
    """Whether no row of the join can be left without a clause; the join has matched rows unless all are inserts."""
    kinds: set[When] = {clause.when for clause in clauses}
    kept: set[When] = kinds if kinds == {"not matched"} else kinds | {"matched"}
    return not any(_leaves_some(clauses, kind) for kind in kept)


def _leaves_some(clauses: Clauses, kind: When) -> bool:
    return all(clause.condition is not None for clause in clauses if clause.when == kind)


def _action(clauses: Clauses) -> str:
    by_clause = [
        (number, str(_ACTIONS[clause.action] | (BY_SOURCE if clause.when == "not matched by source" else 0)))
        for number, clause in enumerate(clauses)
    ]
    return _chosen(by_clause, "0")


def _row_id(clauses: Clauses, found: T.StructType) -> str:
    """Updated rows keep their ids."""
    updates = [number for number, clause in enumerate(clauses) if clause.action == "update"]
    if not updates or ROW_ID_COLUMN not in found.names:
        return "CAST(NULL AS bigint)"
    return _chosen((number, ROW_ID_COLUMN) for number in updates)


def _place(found: T.StructType, name: str, type_: str) -> str:
    return name if name in found.names else f"CAST(NULL AS {type_})"


def _chosen(values: Iterable[tuple[int, str]], otherwise: str = "NULL") -> str:
    """The value of the clause that applies to a row, as SQL text; `otherwise` where it is none of these."""
    cases = " ".join(f"WHEN {number} THEN {value}" for number, value in values)
    return f"CASE {_CLAUSE} {cases} ELSE {otherwise} END"


def _new_columns(
    flat: DataFrame, found: T.StructType, assigned: Sequence[AssignedClause], schema: Schema, rules: AssignmentRules
) -> tuple[DataFrame, dict[str, str]]:
    """The columns of new rows as SQL texts, each by the clause that applies; nothing where rows are only deleted.

    The frame that comes back has what they need computed. A value is null in rows that its clause does not apply to, so
    that it can be stored in all of them.
    """
    given = {
        (number, path): value
        for number, one in enumerate(assigned)
        for path, value in _values(found, number, one, schema, rules).items()
    }
    flat, texts = with_computed(flat, given)
    old = {field.name: target_column(i) for i, field in enumerate(schema.fields)}
    by_clause: dict[int, dict[str, str]] = {}
    for number, one in enumerate(assigned):
        values = {path: text for (place, path), text in texts.items() if place == number}
        if one.clause.action == "update":
            by_clause[number] = updated_columns(schema, values, old)
        elif one.clause.action == "insert":
            by_clause[number] = {field.name: values[field.name,] for field in schema.fields}
    if not by_clause:
        return flat, {}
    return flat, {
        field.name: _chosen((number, columns[field.name]) for number, columns in by_clause.items())
        for field in schema.fields
    }


def _values(
    found: T.StructType, number: int, assigned: AssignedClause, schema: Schema, rules: AssignmentRules
) -> dict[Name, SqlOrColumn]:
    """The values of a clause by the path of what they are assigned to, as they are stored."""
    values: dict[Name, SqlOrColumn] = {}
    if assigned.fields:
        struct = RESULTS[assigned.clause.when]
        types = found[struct].dataType
        assert isinstance(types, T.StructType)  # noqa: S101
        for i, (field, place) in enumerate(zip(assigned.fields, assigned.places, strict=True)):
            name = value_field(number, i)
            values[field.path] = assigned_value(f"{struct}.{name}", types[name].dataType, field, rules, place)
    if assigned.clause.action == "insert":
        values |= {(f.name,): _absent(f, rules) for f in schema.fields if (f.name,) not in values}
    return values


def _absent(field: NestedField, rules: AssignmentRules) -> SqlOrColumn:
    """The value of a column that an INSERT gives none: its default, or null."""
    if (field.required or not rules.nulls_for_missing) and write_value(field) is None:
        kind = "required column" if field.required else "column"
        message = f"expected a value for the {kind} `{field.name}`, found none in INSERT"
        raise InvalidInputError(message, condition=INVALID_ASSIGNMENTS)
    type_, literal = spark_type(field.type, field.name), default_literal(field)
    if isinstance(type_, T.ArrayType | T.MapType | T.StructType):
        return F.expr(literal).cast(type_)
    return f"CAST({literal} AS {atomic_name(type_)})"
