"""The query of a MERGE: target and source joined once, each row with what its first clause that applies makes of it.

Its levels have the scopes of the clauses: in the join both sides are seen, above it only the source, for INSERT, then
only the target, for rows that no source row matches. An expression is evaluated only for rows that its clause applies
to, and every clause's values come in columns of their own, so that each can be assigned by its own type.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from bergline.errors import InvalidInputError, SqlSyntaxError
from bergline.format.schema.reserved import FILE, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted, back_quoted_path
from bergline.spark.merge.clauses import (
    CLAUSE,
    FILE_COLUMN,
    INSERTED,
    MATCHED,
    POS_COLUMN,
    PRESENT,
    RESULTS,
    ROW_ID_COLUMN,
    AssignedClause,
    assigned_clauses,
    join_type,
    of_kind,
    target_column,
    value_field,
)
from bergline.spark.query_text.assigned_fields import default_literal, place_of, qualifiers_of
from bergline.sql.queries.assignments import Expression
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import Query
from bergline.sql.queries.read import read_query
from bergline.sql.queries.rewritten import ComposedText, Composer, column_edit
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Edit, SqlText
from bergline.table.row_merges.clauses import When

_SOURCE_ALIAS = "_bergline_source"


class MergeQuery(msgspec.Struct, frozen=True):
    """The text of a query, and where the target stands in it."""

    composed: ComposedText
    target_start: int


def text_clauses(
    merge: MergeInto, schema: Schema, source_columns: Sequence[str], *, case_sensitive: bool = False
) -> tuple[AssignedClause, ...]:
    """The clauses of a statement on the columns of a table."""
    return assigned_clauses(
        merge.clauses,
        schema,
        qualifiers_of(merge.table, merge.alias),
        source_columns,
        names=lambda values: [(value.target, place_of(merge.sql, value.start)) for value in values],
        place=lambda start: place_of(merge.sql, start),
        evolves=merge.schema_evolution,
        case_sensitive=case_sensitive,
    )


def compose_merge(
    merge: MergeInto, clauses: tuple[AssignedClause, ...], columns: Sequence[str], *, has_row_ids: bool
) -> MergeQuery:
    """The query's text; `columns` are those of the target, which are all in the result if a clause updates rows."""
    composition = _Composition(merge, clauses, columns, has_row_ids=has_row_ids)
    return MergeQuery(composition.composed(), composition.target_start)


def compose_source(merge: MergeInto) -> ComposedText:
    """A query for the source's columns, without rows."""
    out = Composer(merge.sql)
    if merge.named_queries is not None:
        out.quote(merge.named_queries.start, merge.named_queries.end)
    out.add(" SELECT * FROM ")
    out.quote(merge.source.place.start, merge.source.place.end)
    out.add(" WHERE false")
    return out.result()


def evolving_columns(merge: MergeInto, source_columns: Sequence[str]) -> list[str]:
    """The columns of the source that the table takes over: all for `*`, else those set to one of their own name."""
    if any(clause.has_star for clause in merge.clauses):
        return list(source_columns)
    assigned = [
        (assignment.target[-1].casefold(), assignment.value.text(merge.sql))
        for clause in merge.clauses
        for assignment in clause.values or ()
        if assignment.value is not None
    ]
    sources = {merge.source.alias or (merge.source.name[-1] if merge.source.name else "")}
    return [name for name in source_columns if any(_is_column(name, sources, *found) for found in assigned)]


def _is_column(name: str, qualifiers: set[str], target: str, value: str) -> bool:
    """Whether a value is this column of the source, and assigned to a column of the same name."""
    try:
        parts = parse_name(value, "a column")
    except SqlSyntaxError:
        return False
    is_source = len(parts) == 1 or parts[-2].casefold() in {q.casefold() for q in qualifiers}
    return is_source and name.casefold() == target == parts[-1].casefold()


class _Composition:
    """The text of one MERGE's query."""

    def __init__(
        self, merge: MergeInto, clauses: tuple[AssignedClause, ...], columns: Sequence[str], *, has_row_ids: bool
    ) -> None:
        self._merge = merge
        self._clauses = clauses
        self._columns = columns
        self._rows = [FILE_COLUMN, POS_COLUMN, *([ROW_ID_COLUMN] if has_row_ids else [])]
        self._target = merge.alias or merge.table[-1]
        named = merge.source.name[-1] if merge.source.name else _SOURCE_ALIAS
        self._source = merge.source.alias or named
        if self._source.casefold() == self._target.casefold():
            raise InvalidInputError(
                f"expected target and source by different names, found both as `{self._target}`",
                hints=["give one of them an alias, as in `USING db.changes AS c`"],
            )
        self._kinds = [clause.when for clause in merge.clauses]
        self._updates = any(clause.action == "update" for clause in merge.clauses)
        sides = (merge.table, merge.alias), (merge.source.name, merge.source.alias)
        self._named = [name for name, alias in sides if name is not None and alias is None]
        self._out = Composer(merge.sql)
        self.target_start = 0

    def composed(self) -> ComposedText:
        named = self._merge.named_queries
        if named is not None:
            self._out.quote(named.start, named.end)
            self._out.add(" ")
        if set(self._kinds) == {"not matched"}:
            self._inserts_alone()
        elif "not matched by source" in self._kinds:
            self._unmatched_level()
        elif "not matched" in self._kinds:
            self._inserted_level()
        else:
            self._join_level()
        return self._out.result()

    def _inserts_alone(self) -> None:
        """Source rows that match nothing: none of the target's rows is in the result, however many match."""
        self._out.add("SELECT ")
        self._result("not matched", None)
        self._out.add(" FROM (SELECT * FROM ")
        self._quote(self._merge.source.place)
        self._out.add(f") AS {back_quoted(self._source)} LEFT ANTI JOIN ")
        self._target_rows()
        self._out.add(" ON ")
        self._quote(self._merge.condition, edited=True)

    def _unmatched_level(self) -> None:
        """Only the target's columns are seen, by their own names."""
        has_inserts, out, target = "not matched" in self._kinds, self._out, back_quoted(self._target)
        kept = [*([MATCHED] if "matched" in self._kinds else []), *([INSERTED] if has_inserts else [])]
        out.add(f"SELECT {_list([*kept, PRESENT, *self._rows])}")
        if self._updates:
            names = (f", {target}.{back_quoted(c)} AS {target_column(i)}" for i, c in enumerate(self._columns))
            out.add("".join(names))
        out.add(", ")
        self._result("not matched by source", f"{PRESENT} IS NULL")
        columns = (f", {target_column(i)} AS {back_quoted(c)}" for i, c in enumerate(self._columns))
        out.add(f" FROM (SELECT {_list([*kept, PRESENT, *self._rows])}{''.join(columns)} FROM (")  # noqa: S608  (it is meant to be)
        if has_inserts:
            self._inserted_level(all_columns=True)
        else:
            self._join_level(all_columns=True)
        out.add(f")) AS {target}")

    def _inserted_level(self, *, all_columns: bool = False) -> None:
        """Only the source's columns are seen, and it may have been given no alias."""
        out, columns = self._out, self._carried(all_columns=all_columns)
        kept = [*([MATCHED] if "matched" in self._kinds else []), PRESENT, *self._rows, *columns]
        out.add(f"SELECT {_list(kept)}, ")
        self._result("not matched", f"{FILE_COLUMN} IS NULL")
        out.add(" FROM (")
        self._join_level(all_columns=all_columns, with_source=True)
        out.add(f") AS {back_quoted(self._source)}")

    def _join_level(self, *, all_columns: bool = False, with_source: bool = False) -> None:
        out, target, source = self._out, back_quoted(self._target), back_quoted(self._source)
        out.add("SELECT ")
        if "matched" in self._kinds:
            both = f"{target}.{FILE_COLUMN} IS NOT NULL AND {source}.{PRESENT} IS NOT NULL"
            self._result("matched", None if join_type(self._kinds) == "INNER" else both)
            out.add(", ")
        out.add(_list(f"{target}.{name}" for name in self._rows))
        for i, column in enumerate(self._columns if self._carried(all_columns=all_columns) else ()):
            out.add(f", {target}.{back_quoted(column)} AS {target_column(i)}")
        out.add(f", {source}.*" if with_source else f", {source}.{PRESENT}")
        out.add(" FROM ")
        self._target_rows()
        out.add(f" {join_type(self._kinds)} JOIN (SELECT *, true AS {PRESENT} FROM ")  # noqa: S608
        self._quote(self._merge.source.place)
        out.add(f") AS {source} ON ")
        self._quote(self._merge.condition, edited=True)

    def _target_rows(self) -> None:
        """The target's rows with their places."""
        self._out.add("(SELECT ")
        for column in self._columns:
            self._out.add(f"{back_quoted(column)}, ")
        metadata = {FILE_COLUMN: FILE.name, POS_COLUMN: POS.name, ROW_ID_COLUMN: ROW_ID.name}
        self._out.add(_list(f"{metadata[name]} AS {name}" for name in self._rows) + " FROM ")
        self.target_start = self._out.length
        self._quote(self._merge.table_place)
        self._out.add(f") AS {back_quoted(self._target)}")

    def _carried(self, *, all_columns: bool) -> list[str]:
        """The target's columns that levels above the join need."""
        return [target_column(i) for i in range(len(self._columns))] if all_columns or self._updates else []

    def _result(self, kind: When, applies: str | None) -> None:
        """A struct of the first clause of a kind whose condition is true, with its values; None if all rows are."""
        clauses = of_kind(self._clauses, kind)
        if applies is not None:
            self._out.add(f"CASE WHEN {applies} THEN ")
        first, *others = clauses
        if not others and clauses[first].clause.condition is None:
            self._struct(first, clauses)
        else:
            self._out.add("CASE")
            for number, assigned in clauses.items():
                self._out.add(" WHEN ")
                if assigned.clause.condition is None:
                    self._out.add("true")
                else:
                    self._quote(assigned.clause.condition, edited=True)
                self._out.add(" THEN ")
                self._struct(number, clauses)
            self._out.add(" END")
        self._out.add(f"{'' if applies is None else ' END'} AS {RESULTS[kind]}")

    def _struct(self, chosen: int, clauses: Mapping[int, AssignedClause]) -> None:
        """The values of one clause, and null for those of the others."""
        self._out.add(f"named_struct('{CLAUSE}', {chosen}")
        for number, assigned in clauses.items():
            for i in range(len(assigned.fields)):
                self._out.add(f", '{value_field(number, i)}', ")
                if number == chosen:
                    self._value(assigned, i)
                else:
                    self._out.add("NULL")
        self._out.add(")")

    def _value(self, assigned: AssignedClause, number: int) -> None:
        clause, column = assigned.clause, assigned.fields[number]
        if clause.values is None:
            self._out.add(back_quoted_path((self._source, column.path[0])))
        elif (value := clause.values[number].value) is None:
            self._out.add(default_literal(column.field))
        else:
            self._quote(value, edited=True)

    def _quote(self, expression: Expression, *, edited: bool = False) -> None:
        if edited:
            self._out.add("(")
        self._out.quote(expression.start, expression.end, self._edits(expression) if edited else ())
        if edited:
            self._out.add(")")

    def _edits(self, expression: Expression) -> tuple[Edit, ...]:
        """Edits that leave only the alias of a column's qualifier: `orders.id` of `db.orders.id`.

        The expression is read as one of a query on both sides: tables in its subqueries keep their names.
        """
        if not self._named:
            return ()
        text = expression.text(self._merge.sql)
        tokens = SqlText(text).tokens
        dots = [place for place, token in enumerate(tokens) if token.is_symbol(".")]
        if not any(after - before == 2 for before, after in pairwise(dots)):  # noqa: PLR2004
            return ()  # only names of three parts or more have too many
        words = {token.value.casefold() for token in tokens}
        # tables in subqueries are told from the sides by their names, which mostly come without a catalog
        named = [name if len(name) < 3 or name[0].casefold() in words else name[1:] for name in self._named]  # noqa: PLR2004
        head, sides = "SELECT ", ", ".join(map(back_quoted_path, named))
        query = read_query(SqlText(f"{head}{text} FROM {sides}"))
        if not isinstance(query, Query):  # the composed query cannot be read either, and says so
            return ()
        uses = [use for use in query.tables if use.start >= len(head) + len(text)]
        plain = [msgspec.structs.replace(use, alias="last") for use in uses]
        # the join knows both sides by the last part alone, which in a subquery may be another table's
        strict = [use if use.alias == "last" else msgspec.structs.replace(use, alias="unclear") for use in uses]
        edits = (
            column_edit(name, starts, strict if _is_in_subquery(query.sql, starts[0]) else plain)
            for name, starts in query.columns
        )
        moved = expression.start - len(head)
        return tuple((edit[0] + moved, edit[1] + moved, edit[2]) for edit in edits if edit)


def _is_in_subquery(sql: SqlText, place: int) -> bool:
    """Whether a place is inside of parentheses that begin with a word of a query."""
    opened: list[bool] = []
    for token, following in pairwise(sql.tokens):
        if token.start >= place:
            break
        if token.is_symbol("("):
            opened.append(following.is_word("SELECT", "WITH", "FROM", "VALUES") or following.is_symbol("("))
        elif token.is_symbol(")") and opened:
            opened.pop()
    return any(opened)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
