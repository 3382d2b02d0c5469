"""The query of a MERGE: target and source joined once, each row with what its first clause that applies makes of it.

Its levels have the scopes of the clauses: in the join both sides are seen, above it only the source, for INSERT, then
only the target, for rows that no source row matches. An expression is evaluated only for rows that its clause applies
to, and every clause's values come in columns of their own, so that each can be assigned by its own type.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from bergline.errors import InvalidInputError, NotFoundError, SqlSyntaxError
from bergline.format.schema.reserved import FILE, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted, back_quoted_path
from bergline.spark.query_text.assigned_fields import (
    AssignedField,
    assigned_fields,
    default_literal,
    place_of,
    qualifiers_of,
)
from bergline.sql.queries.assignments import Expression
from bergline.sql.queries.merge import ClauseAction, ClauseKind, MergeInto, WhenClause
from bergline.sql.queries.query import Query
from bergline.sql.queries.read import read_query
from bergline.sql.queries.rewritten import column_edit
from bergline.sql.text.composed import ComposedText, Composer
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Edit, Name, SqlText, TokenKind

MATCHED, INSERTED, UNMATCHED = "_bergline_matched", "_bergline_inserted", "_bergline_unmatched"
"""Structs: what clauses of a kind make of a row; null where none applies."""
CLAUSE = "clause"
"""The field of these structs that says which clause applies, by its number in the statement."""
FILE_COLUMN, POS_COLUMN, ROW_ID_COLUMN = "_bergline_file", "_bergline_pos", "_bergline_row_id"
PRESENT = "_bergline_present"
"""True in rows that have a source row."""
_SOURCE_ALIAS = "_bergline_source"
_RESULTS: dict[ClauseKind, str] = {"matched": MATCHED, "not matched": INSERTED, "not matched by source": UNMATCHED}


class ClauseValues(msgspec.Struct, frozen=True):
    """What a clause does, and which fields it gives values to, in order; none if it deletes."""

    kind: ClauseKind
    action: ClauseAction
    has_condition: bool
    fields: tuple[AssignedField, ...]
    places: tuple[str, ...]
    """Where each value stands, for errors."""


class MergeQuery(msgspec.Struct, frozen=True):
    """The text, and what its columns mean."""

    composed: ComposedText
    target_start: int
    """Where the name of the target stands in it."""
    clauses: tuple[ClauseValues, ...]


def target_column(number: int) -> str:
    """The name that a column of the target has in the result."""
    return f"_bergline_target_{number}"


def value_field(clause: int, number: int) -> str:
    """The field of a result that has a clause's value."""
    return f"v{clause}_{number}"


def join_type(kinds: Sequence[ClauseKind]) -> str:
    """The join that keeps the rows that clauses of these kinds are about; the target is on the left.

    Clauses for source rows that match nothing need an anti join, if there are no others.
    """
    match "not matched" in kinds, "not matched by source" in kinds:
        case False, False:
            return "INNER"
        case True, False:
            return "RIGHT OUTER"
        case False, True:
            return "LEFT OUTER"
    return "FULL OUTER"


def clause_values(
    merge: MergeInto, schema: Schema, source_columns: Sequence[str], *, case_sensitive: bool = False
) -> tuple[ClauseValues, ...]:
    """The columns that each clause gives values to, for a table of this schema; one error for the first unknown one.

    `*` needs a column of the source for each of the table's, unless the statement lets the schema evolve.
    """
    qualifiers = qualifiers_of(merge.table, merge.alias)
    return tuple(
        _clause_values(merge, clause, schema, qualifiers, source_columns, case_sensitive=case_sensitive)
        for clause in merge.clauses
    )


def star_fields(
    schema: Schema, source_columns: Sequence[str], place: str, *, evolves: bool, case_sensitive: bool = False
) -> list[AssignedField]:
    """What `*` gives values to: all columns of a table that the source has too."""
    fold = str if case_sensitive else str.casefold
    given = {fold(name) for name in source_columns}
    if not evolves and (lacking := [f.name for f in schema.fields if fold(f.name) not in given]):
        raise NotFoundError(
            f"no column `{lacking[0]}` in the source for `*`{place}",
            kind="column",
            name=lacking[0],
            known=source_columns,
            hints=["name the columns that get values, or write MERGE WITH SCHEMA EVOLUTION"],
        )
    return [AssignedField((f.name,), f) for f in schema.fields if fold(f.name) in given]


def compose_merge(
    merge: MergeInto, clauses: tuple[ClauseValues, ...], columns: Sequence[str], *, has_row_ids: bool
) -> MergeQuery:
    """The query's text; `columns` are those of the target, which are all in the result if a clause updates rows."""
    composition = _Composition(merge, clauses, columns, has_row_ids=has_row_ids)
    return MergeQuery(composition.composed(), composition.target_start, clauses)


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
    if any(clause.star for clause in merge.clauses):
        return list(source_columns)
    assigned = [
        (assignment.target[-1].casefold(), assignment.value.text(merge.sql))
        for clause in merge.clauses
        for assignment in clause.assignments
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


def key_columns(condition: str, schema: Schema, target: str) -> list[str]:
    """The columns of a target that a condition speaks of, by their names alone or with the target's in front."""
    try:
        tokens = SqlText(condition).tokens
    except SqlSyntaxError:
        return []
    found: dict[str, None] = {}
    for place, token in enumerate(tokens):
        qualifier = tokens[place - 2].value if place > 1 and tokens[place - 1].is_symbol(".") else target
        column = next((f.name for f in schema.fields if f.name.casefold() == token.value.casefold()), None)
        if (
            column is not None
            and token.kind in {TokenKind.WORD, TokenKind.QUOTED}
            and qualifier.casefold() == target.casefold()
        ):
            found[column] = None
    return list(found)


def _clause_values(
    merge: MergeInto,
    clause: WhenClause,
    schema: Schema,
    qualifiers: list[Name],
    source_columns: Sequence[str],
    *,
    case_sensitive: bool,
) -> ClauseValues:
    if clause.star:
        place = place_of(merge.sql, clause.start)
        fields = star_fields(
            schema, source_columns, place, evolves=merge.schema_evolution, case_sensitive=case_sensitive
        )
        return _values(clause, fields, [place] * len(fields))
    places = [place_of(merge.sql, assignment.start) for assignment in clause.assignments]
    targets = [(assignment.target, place) for assignment, place in zip(clause.assignments, places, strict=True)]
    fields = assigned_fields(targets, schema, qualifiers, case_sensitive=case_sensitive)
    for field, place in zip(fields, places, strict=True):
        if clause.action == "insert" and len(field.path) > 1:
            raise InvalidInputError(
                f"expected columns to insert into, found the field `{'.'.join(field.path)}` of one{place}"
            )
    return _values(clause, fields, places)


def _values(clause: WhenClause, fields: Sequence[AssignedField], places: Sequence[str]) -> ClauseValues:
    return ClauseValues(clause.kind, clause.action, clause.condition is not None, tuple(fields), tuple(places))


class _Composition:
    """The text of one MERGE's query."""

    def __init__(
        self, merge: MergeInto, clauses: tuple[ClauseValues, ...], columns: Sequence[str], *, has_row_ids: bool
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
        self._kinds = [clause.kind for clause in merge.clauses]
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

    def _result(self, kind: ClauseKind, applies: str | None) -> None:
        """A struct of the first clause of a kind whose condition is true, with its values; None if all rows are."""
        clauses = self._merge.of_kind(kind)
        if applies is not None:
            self._out.add(f"CASE WHEN {applies} THEN ")
        if clauses[0][1].condition is None:
            self._struct(0, clauses)
        else:
            self._out.add("CASE")
            for place, (_, clause) in enumerate(clauses):
                self._out.add(" WHEN ")
                if clause.condition is None:
                    self._out.add("true")
                else:
                    self._quote(clause.condition, edited=True)
                self._out.add(" THEN ")
                self._struct(place, clauses)
            self._out.add(" END")
        self._out.add(f"{'' if applies is None else ' END'} AS {_RESULTS[kind]}")

    def _struct(self, chosen: int, clauses: Sequence[tuple[int, WhenClause]]) -> None:
        """The values of one clause, and null for those of the others."""
        out = self._out
        out.add(f"named_struct('{CLAUSE}', {clauses[chosen][0]}")
        for place, (number, clause) in enumerate(clauses):
            for i, assigned in enumerate(self._clauses[number].fields):
                out.add(f", '{value_field(number, i)}', ")
                if place != chosen:
                    out.add("NULL")
                else:
                    self._value(clause, i, assigned)
        out.add(")")

    def _value(self, clause: WhenClause, number: int, assigned: AssignedField) -> None:
        if clause.star:
            self._out.add(back_quoted_path((self._source, assigned.path[0])))
            return
        value = clause.assignments[number].value
        if value is None:
            self._out.add(default_literal(assigned.field))
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
        words = {token.value.casefold() for token in SqlText(text).tokens}
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
