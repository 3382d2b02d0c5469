"""The changes that a MERGE makes, as one frame: for each row its action, its place in the table, and its new columns.

The frame that it starts from is target and source joined, with what the clauses make of each row (see
`sql/rewrite/merge_query.py`), whether a statement's text or `mergeInto` said so.
"""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import InvalidInputError
from bergline.format.schema.reserved import ROW_ID
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import NestedField
from bergline.spark.rows.change_task import ADDS, DELETES
from bergline.spark.rows.changes import ACTION, FILE, POS
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.assigned_columns import assigned_value, updated_columns
from bergline.spark.writes.store_assignment import AssignmentRules
from bergline.sql.rewrite.assigned_fields import INVALID_ASSIGNMENTS, default_literal
from bergline.sql.rewrite.merge_query import (
    CLAUSE,
    FILE_COLUMN,
    INSERTED,
    MATCHED,
    POS_COLUMN,
    PRESENT,
    ROW_ID_COLUMN,
    UNMATCHED,
    ClauseValues,
    target_column,
    value_field,
)
from bergline.sql.text.tokens import Name

BY_SOURCE = 4
"""The bit of an action that says: no source row matched this row of the table."""
_ACTIONS = {"delete": DELETES, "update": DELETES | ADDS, "insert": ADDS}
_STRUCTS = {"matched": MATCHED, "not matched": INSERTED, "not matched by source": UNMATCHED}
_SUMMARY = "spark.merge-into.num-target-rows-"
COPIED = f"{_SUMMARY}copied"
_CLAUSE = "_bergline_clause"


def merge_changes(
    joined: DataFrame,
    clauses: Sequence[ClauseValues],
    schema: Schema,
    rules: AssignmentRules,
    *,
    has_row_ids: bool,
) -> DataFrame:
    """A change frame (see `changes.py`); rows without any change are left out.

    Rows that are matched and stay as they are have the action 0 where more than one source row for them is an error.
    """
    found = joined.schema
    structs = [name for name in (MATCHED, INSERTED, UNMATCHED) if name in found.names]
    clause = F.coalesce(*(F.col(f"{name}.{CLAUSE}") for name in structs))
    flat = joined.select("*", clause.alias(_CLAUSE))
    if not _has_action_for_all(clauses):
        wanted = F.col(_CLAUSE).isNotNull()
        if checks_cardinality(clauses) and _leaves_some(clauses, "matched"):
            wanted = wanted | (F.col(FILE_COLUMN).isNotNull() & F.col(PRESENT).isNotNull())
        flat = flat.where(wanted)
    columns = _new_columns(found, clauses, schema, rules)
    file, pos = _place(found, FILE_COLUMN, "string"), _place(found, POS_COLUMN, "bigint")
    row_id = [_row_id(clauses, found).alias(ROW_ID.name)] if columns and has_row_ids else []
    return flat.select(
        _action(clauses).alias(ACTION),
        file.alias(FILE),
        pos.alias(POS),
        *row_id,
        *(value.alias(name) for name, value in columns.items()),
    )


def checks_cardinality(clauses: Sequence[ClauseValues]) -> bool:
    """Whether two source rows for one row of the table are an error: not where all that match are deleted."""
    matched = [clause for clause in clauses if clause.kind == "matched"]
    return bool(matched) and not (len(matched) == 1 and matched[0].action == "delete" and not matched[0].has_condition)


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


def _has_action_for_all(clauses: Sequence[ClauseValues]) -> bool:
    """Whether no row of the join can be left without a clause; the join has matched rows unless all are inserts."""
    kinds = {clause.kind for clause in clauses}
    kept = kinds if kinds == {"not matched"} else kinds | {"matched"}
    return not any(_leaves_some(clauses, kind) for kind in kept)


def _leaves_some(clauses: Sequence[ClauseValues], kind: str) -> bool:
    return all(clause.has_condition for clause in clauses if clause.kind == kind)


def _action(clauses: Sequence[ClauseValues]) -> Column:
    by_clause = [
        (number, _ACTIONS[clause.action] | (BY_SOURCE if clause.kind == "not matched by source" else 0))
        for number, clause in enumerate(clauses)
    ]
    return _chosen((number, F.lit(action)) for number, action in by_clause).otherwise(F.lit(0))


def _row_id(clauses: Sequence[ClauseValues], found: T.StructType) -> Column:
    """Updated rows keep their ids."""
    updates = [number for number, clause in enumerate(clauses) if clause.action == "update"]
    if not updates or ROW_ID_COLUMN not in found.names:
        return F.lit(None).cast("bigint")
    return _chosen((number, F.col(ROW_ID_COLUMN)) for number in updates)


def _place(found: T.StructType, name: str, type_: str) -> Column:
    return F.col(name) if name in found.names else F.lit(None).cast(type_)


def _chosen(values: Iterable[tuple[int, Column]]) -> Column:
    """The value of the clause that applies to a row; null where it is none of these."""
    chosen: Column | None = None
    for number, value in values:
        is_this = F.col(_CLAUSE) == number
        chosen = F.when(is_this, value) if chosen is None else chosen.when(is_this, value)
    return F.lit(None) if chosen is None else chosen


def _new_columns(
    found: T.StructType, clauses: Sequence[ClauseValues], schema: Schema, rules: AssignmentRules
) -> dict[str, Column]:
    """The columns of new rows, each by the clause that applies; nothing where rows are only deleted."""
    old = {field.name: F.col(target_column(i)) for i, field in enumerate(schema.fields)}
    by_clause: dict[int, dict[str, Column]] = {}
    for number, clause in enumerate(clauses):
        values = _values(found, number, clause, rules)
        if clause.action == "update":
            by_clause[number] = updated_columns(schema, values, old)
        elif clause.action == "insert":
            by_clause[number] = {f.name: _inserted(f, values, rules) for f in schema.fields}
    if not by_clause:
        return {}
    return {
        field.name: _chosen((number, columns[field.name]) for number, columns in by_clause.items())
        for field in schema.fields
    }


def _values(found: T.StructType, number: int, clause: ClauseValues, rules: AssignmentRules) -> dict[Name, Column]:
    """The values of a clause by the path of what they are assigned to, as they are stored."""
    values: dict[Name, Column] = {}
    if not clause.fields:
        return values
    struct = _STRUCTS[clause.kind]
    types = found[struct].dataType
    assert isinstance(types, T.StructType)  # noqa: S101
    for i, (assigned, place) in enumerate(zip(clause.fields, clause.places, strict=True)):
        name = value_field(number, i)
        values[assigned.path] = assigned_value(F.col(f"{struct}.{name}"), types[name].dataType, assigned, rules, place)
    return values


def _inserted(field: NestedField, values: dict[Name, Column], rules: AssignmentRules) -> Column:
    """The value of a column in a new row: its default, or null, where the clause gives none."""
    if (field.name,) in values:
        return values[field.name,]
    if (field.required or not rules.nulls_for_missing) and write_value(field) is None:
        kind = "required column" if field.required else "column"
        message = f"expected a value for the {kind} `{field.name}`, found none in INSERT"
        raise InvalidInputError(message, condition=INVALID_ASSIGNMENTS)
    type_ = spark_type(field.type, field.name)
    return F.expr(default_literal(field)).cast(type_)
