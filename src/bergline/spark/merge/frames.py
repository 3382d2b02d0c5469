"""`df.mergeInto(…)`: target and source joined as frames, with the columns that the query of a MERGE has.

The clauses have the same scopes: both sides in the join, then the source's columns alone, then the target's.
"""

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import FILE, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted, back_quoted_path
from bergline.spark.backends.choose import backend_of
from bergline.spark.merge.clauses import (
    CLAUSE,
    FILE_COLUMN,
    INSERTED,
    MATCHED,
    POS_COLUMN,
    PRESENT,
    ROW_ID_COLUMN,
    UNMATCHED,
    AssignedClause,
    assigned_clauses,
    join_type,
    of_kind,
    target_column,
    value_field,
)
from bergline.spark.query_text.assigned_fields import qualifiers_of
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Name
from bergline.table.row_merges.clauses import MergeClause, When, clause_before_others

_JOINS = {"INNER": "inner", "RIGHT OUTER": "right", "LEFT OUTER": "left", "FULL OUTER": "full"}

FrameClause = MergeClause[Column, Mapping[str, Column]]
"""A clause of the builder: its condition and its values are columns."""


def frame_clauses(
    clauses: Sequence[FrameClause],
    schema: Schema,
    table: Name,
    source: Sequence[str],
    *,
    evolves: bool,
    case_sensitive: bool = False,
) -> tuple[AssignedClause, ...]:
    """The clauses of a builder on the columns of a table."""
    if (early := clause_before_others(clauses)) is not None:
        raise InvalidInputError(
            f"expected a condition in every clause for rows that are {early.when} but the last, found none"
        )
    return assigned_clauses(
        clauses,
        schema,
        qualifiers_of(table, None),
        source,
        names=lambda values: [(parse_name(name, "a column name"), "") for name in values],
        evolves=evolves,
        case_sensitive=case_sensitive,
    )


class FrameMerge(msgspec.Struct, frozen=True):
    """A source, and what becomes of the rows of a target that it is joined to."""

    source: DataFrame
    condition: Column
    clauses: Sequence[AssignedClause]
    name: Name
    """What the target's columns may be qualified by, whole or its end."""
    metadata: TableMetadata

    @property
    def columns(self) -> list[str]:
        """Those of the target."""
        return [field.name for field in self.metadata.schema.fields]

    def joined(self, target: DataFrame) -> DataFrame:
        """Both joined; the target has its own columns and those that say where its rows are."""
        kinds = [assigned.clause.when for assigned in self.clauses]
        places = {FILE_COLUMN: FILE, POS_COLUMN: POS}
        if self.metadata.format_version >= ROW_LINEAGE_VERSION:
            places[ROW_ID_COLUMN] = ROW_ID
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

    def _result(self, kind: When, source: DataFrame | None) -> Column:
        """A struct of the first clause of a kind whose condition is true, with its values."""
        clauses = of_kind(self.clauses, kind)
        result: Column | None = None
        for number, assigned in clauses.items():
            condition, struct = assigned.clause.condition, _struct(number, clauses, source)
            if condition is None:
                return struct if result is None else result.otherwise(struct)
            result = F.when(condition, struct) if result is None else result.when(condition, struct)
        if result is None:
            raise InvalidInputError(f"expected a clause for rows that are {kind}, found none")
        return result


def _struct(chosen: int, clauses: Mapping[int, AssignedClause], source: DataFrame | None) -> Column:
    """The values of one clause, and null for those of the others."""
    fields = [F.lit(chosen).alias(CLAUSE)]
    for number, assigned in clauses.items():
        given = list(assigned.clause.values.values()) if assigned.clause.values else []
        for i, column in enumerate(assigned.fields):
            if number != chosen:
                value = F.lit(None)
            elif source is not None and assigned.clause.has_star:
                value = source[back_quoted(column.path[0])]
            else:
                value = given[i]
            fields.append(value.alias(value_field(number, i)))
    return F.struct(*fields)
