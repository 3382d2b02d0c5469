"""`df.mergeInto(…)`: target and source joined as frames, with the columns that the query of a MERGE has.

The clauses have the same scopes: both sides in the join, then the source's columns alone, then the target's.
"""

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError
from bergline.format.schema.reserved import FILE, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted, back_quoted_path
from bergline.spark.backends.choose import backend_of
from bergline.spark.query_text.assigned_fields import assigned_fields, qualifiers_of
from bergline.spark.query_text.merge_query import (
    CLAUSE,
    FILE_COLUMN,
    INSERTED,
    MATCHED,
    POS_COLUMN,
    PRESENT,
    ROW_ID_COLUMN,
    UNMATCHED,
    ClauseValues,
    join_type,
    star_fields,
    target_column,
    value_field,
)
from bergline.sql.queries.merge import ClauseAction, ClauseKind
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Name

_JOINS = {"INNER": "inner", "RIGHT OUTER": "right", "LEFT OUTER": "left", "FULL OUTER": "full"}


class FrameClause(msgspec.Struct, frozen=True):
    """What one clause of the builder says."""

    kind: ClauseKind
    action: ClauseAction
    condition: Column | None = None
    assignments: Mapping[str, Column] = {}
    star: bool = False


def frame_clause_values(
    clauses: Sequence[FrameClause],
    schema: Schema,
    table: Name,
    source: Sequence[str],
    *,
    evolves: bool,
    case_sensitive: bool = False,
) -> tuple[ClauseValues, ...]:
    """The columns that each clause gives values to; one error for the first unknown one."""
    _check_conditions(clauses)
    return tuple(
        _values(clause, schema, table, source, evolves=evolves, case_sensitive=case_sensitive) for clause in clauses
    )


class FrameMerge(msgspec.Struct, frozen=True):
    """A source, and what becomes of the rows of a target that it is joined to."""

    source: DataFrame
    condition: Column
    clauses: Sequence[FrameClause]
    values: Sequence[ClauseValues]
    name: Name
    """What the target's columns may be qualified by, whole or its end."""
    columns: Sequence[str]
    has_row_ids: bool

    def joined(self, target: DataFrame) -> DataFrame:
        """Both joined; the target has its own columns and those that say where its rows are."""
        kinds = [clause.kind for clause in self.clauses]
        places = {FILE_COLUMN: FILE, POS_COLUMN: POS} | ({ROW_ID_COLUMN: ROW_ID} if self.has_row_ids else {})
        own = [F.col(back_quoted(name)) for name in self.columns]
        rows = self._qualified(target.select(*own, *(F.col(field.name).alias(name) for name, field in places.items())))
        source = self.source.withColumn(PRESENT, F.lit(True))
        if set(kinds) == {"not matched"}:
            unmatched = source.join(rows, self.condition, "left_anti")
            return unmatched.select(self._result("not matched", source).alias(INSERTED))
        joined = rows.join(source, self.condition, _JOINS[join_type(kinds)])
        results, carried = [], [F.col(name) for name in places]
        if "matched" in kinds:
            both = F.col(FILE_COLUMN).isNotNull() & F.col(PRESENT).isNotNull()
            results.append(F.when(both, self._result("matched", source)).alias(MATCHED))
        old = [
            F.col(back_quoted_path((self.name[-1], name))).alias(target_column(i))
            for i, name in enumerate(self.columns)
        ]
        frame = joined.select(*results, *carried, *old, source["*"])
        kept = [MATCHED] if results else []
        if "not matched" in kinds:
            inserted = F.when(F.col(FILE_COLUMN).isNull(), self._result("not matched", source)).alias(INSERTED)
            frame = frame.select(*self._kept(kept, places), inserted)
            kept.append(INSERTED)
        else:
            frame = frame.select(*self._kept(kept, places))
        return self._with_unmatched(frame, kept, places) if "not matched by source" in kinds else frame

    def _with_unmatched(self, frame: DataFrame, kept: Sequence[str], places: Mapping[str, object]) -> DataFrame:
        columns = [F.col(target_column(i)) for i in range(len(self.columns))]
        own = [column.alias(name) for column, name in zip(columns, self.columns, strict=True)]
        scope = self._qualified(frame.select(*(F.col(name) for name in (*kept, PRESENT, *places)), *columns, *own))
        unmatched = F.when(F.col(PRESENT).isNull(), self._result("not matched by source", None)).alias(UNMATCHED)
        return scope.select(*self._kept(kept, places), unmatched)

    def _qualified(self, rows: DataFrame) -> DataFrame:
        return backend_of(rows).qualified(rows, self.name)

    def _kept(self, results: Sequence[str], places: Mapping[str, object]) -> list[Column]:
        columns = (target_column(i) for i in range(len(self.columns)))
        return [F.col(name) for name in (*results, PRESENT, *places, *columns)]

    def _result(self, kind: ClauseKind, source: DataFrame | None) -> Column:
        """A struct of the first clause of a kind whose condition is true, with its values."""
        numbers = [number for number, clause in enumerate(self.clauses) if clause.kind == kind]
        result: Column | None = None
        for number in numbers:
            condition, struct = self.clauses[number].condition, self._struct(number, numbers, source)
            if condition is None:
                return struct if result is None else result.otherwise(struct)
            result = F.when(condition, struct) if result is None else result.when(condition, struct)
        if result is None:
            raise InvalidInputError(f"expected a clause for rows that are {kind}, found none")
        return result

    def _struct(self, chosen: int, numbers: Sequence[int], source: DataFrame | None) -> Column:
        fields = [F.lit(chosen).alias(CLAUSE)]
        for number in numbers:
            given = list(self.clauses[number].assignments.values())
            for i, assigned in enumerate(self.values[number].fields):
                if number != chosen:
                    value = F.lit(None)
                elif source is not None and self.clauses[number].star:
                    value = source[back_quoted(assigned.path[0])]
                else:
                    value = given[i]
                fields.append(value.alias(value_field(number, i)))
        return F.struct(*fields)


def _values(
    clause: FrameClause,
    schema: Schema,
    table: Name,
    source: Sequence[str],
    *,
    evolves: bool,
    case_sensitive: bool,
) -> ClauseValues:
    if clause.star:
        fields = star_fields(schema, source, "", evolves=evolves, case_sensitive=case_sensitive)
    else:
        names = [(parse_name(name, "a column name"), "") for name in clause.assignments]
        fields = assigned_fields(names, schema, qualifiers_of(table, None), case_sensitive=case_sensitive)
    for field in fields:
        if clause.action == "insert" and len(field.path) > 1:
            raise InvalidInputError(f"expected columns to insert into, found the field `{'.'.join(field.path)}` of one")
    return ClauseValues(clause.kind, clause.action, clause.condition is not None, tuple(fields), ("",) * len(fields))


def _check_conditions(clauses: Sequence[FrameClause]) -> None:
    for number, clause in enumerate(clauses):
        if clause.condition is None and any(later.kind == clause.kind for later in clauses[number + 1 :]):
            raise InvalidInputError(
                f"expected a condition in every clause for rows that are {clause.kind} but the last, found none"
            )
