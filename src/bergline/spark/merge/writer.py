"""`df.mergeInto("db.orders", condition)` for lake tables."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.arguments import shown
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.spark.merge.frames import FrameClause, FrameMerge, frame_clauses
from bergline.spark.merge.statement import commit_merge
from bergline.spark.reads.scan import read
from bergline.spark.rows.statements import place_columns
from bergline.spark.runtime.errors import spark_errors
from bergline.spark.statements.tables import SessionTables
from bergline.spark.writes.evolution import evolved
from bergline.spark.writes.store_assignment import assignment_rules
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Name
from bergline.table.row_merges.clauses import Action, When


class LakeMergeWriter:
    """MergeIntoWriter on a lake table: clauses of a kind are tried in the order in which they were given."""

    def __init__(self, tables: SessionTables, source: DataFrame, name: Name, condition: Column) -> None:
        self._tables = tables
        self._source = source
        self._name = name
        self._condition = _checked(condition)
        self._clauses: list[FrameClause] = []
        self._evolves = False

    def whenMatched(self, condition: Column | None = None) -> "MatchedActions":  # noqa: N802  (Spark's names)
        """What becomes of rows of the table that a source row matches."""
        return MatchedActions(self, "matched", condition)

    def whenNotMatched(self, condition: Column | None = None) -> "InsertActions":  # noqa: N802
        """What becomes of source rows that match no row of the table."""
        return InsertActions(self, "not matched", condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> "MatchedActions":  # noqa: N802
        """What becomes of rows of the table that no source row matches."""
        return MatchedActions(self, "not matched by source", condition)

    def withSchemaEvolution(self) -> "LakeMergeWriter":  # noqa: N802
        """Let the table take over columns and wider types of the source."""
        self._evolves = True
        return self

    def merge(self) -> None:
        """Run it: one commit, or none."""
        with spark_errors():
            self._merge()

    def add(self, clause: FrameClause) -> "LakeMergeWriter":
        """Take a clause."""
        self._clauses.append(clause)
        return self

    def _merge(self) -> None:
        if not self._clauses:
            raise InvalidInputError("expected whenMatched, whenNotMatched or whenNotMatchedBySource, found none")
        tables, source = self._tables, self._source
        name = tables.full_name(self._name)
        target = tables.resolve_write(self._name)
        write_target = resolve_write_target(tables, target, None)
        with evolved(target, self._taken(source.schema)) as changing:
            metadata = changing.table.metadata
            scan = tables.scan_target(changing, place_columns(metadata))
            rules = assignment_rules(tables.spark)
            merge = FrameMerge(
                source,
                self._condition,
                frame_clauses(
                    self._clauses,
                    metadata.schema,
                    name,
                    source.columns,
                    evolves=self._evolves,
                    case_sensitive=rules.is_case_sensitive,
                ),
                name,
                metadata,
            )
            scan = scan.where(tables.backend.frame_filter(scan, merge.joined))
            joined = merge.joined(read(scan, tables.spark))
            commit_merge(
                changing.table,
                write_target,
                joined,
                scan,
                merge.clauses,
                rules=rules,
                on=(_text(self._condition), name[-1]),
            )

    def _taken(self, source: T.StructType) -> T.StructType:
        """The columns of the source that the table takes over: all for `updateAll`, else those that are assigned."""
        if not self._evolves:
            return T.StructType()
        named = {parse_name(name, "a column name")[-1].casefold() for c in self._clauses for name in c.values or ()}
        has_star = any(clause.has_star for clause in self._clauses)
        return T.StructType([field for field in source if has_star or field.name.casefold() in named])


class _Actions:
    def __init__(self, writer: LakeMergeWriter, when: When, condition: Column | None) -> None:
        self._writer = writer
        self._when = when
        self._condition = None if condition is None else _checked(condition)

    def _add(self, action: Action, values: Mapping[str, Column] | None = None) -> LakeMergeWriter:
        return self._writer.add(FrameClause(self._when, action, self._condition, values))


class MatchedActions(_Actions):
    """What can be done to rows of the table."""

    def update(self, assignments: Mapping[str, Column]) -> LakeMergeWriter:
        """Set columns, or fields inside of them."""
        return self._add("update", _checked_assignments(assignments))

    def updateAll(self) -> LakeMergeWriter:  # noqa: N802
        """Set every column to the source's of the same name."""
        if self._when != "matched":
            with spark_errors():
                raise UnsupportedError("cannot update all columns of rows that no source row matches")
        return self._add("update")

    def delete(self) -> LakeMergeWriter:
        """Delete the rows."""
        return self._add("delete")


class InsertActions(_Actions):
    """What can be done with source rows."""

    def insert(self, assignments: Mapping[str, Column]) -> LakeMergeWriter:
        """Insert rows with these values; other columns get their default, or null."""
        return self._add("insert", _checked_assignments(assignments))

    def insertAll(self) -> LakeMergeWriter:  # noqa: N802
        """Insert rows by the names of their columns."""
        return self._add("insert")


def _text(condition: Column) -> str:
    """What PySpark shows of a column: names and functions, much as in SQL."""
    return str(condition).removeprefix("Column<'").removesuffix("'>")


def _checked(condition: Any) -> Column:
    if not isinstance(condition, Column):
        with spark_errors():
            raise InvalidInputError(f"expected a condition as a column, found {shown(condition)}")
    return condition


def _checked_assignments(assignments: Any) -> dict[str, Column]:
    with spark_errors():
        if not isinstance(assignments, Mapping) or not assignments:
            raise InvalidInputError(f"expected values by the names of columns, found {shown(assignments)}")
        for name, value in assignments.items():
            if not isinstance(name, str) or not isinstance(value, Column):
                raise InvalidInputError(f"expected a column as the value of {shown(name)}, found {shown(value)}")
    return dict(assignments)
