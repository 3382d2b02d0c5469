"""The clauses of a MERGE on the columns of a table, and how the rows of its join say what each makes of them.

Text and `mergeInto` differ only in what their conditions and values are: here they are the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.schema.schema import Schema
from bergline.spark.query_text.assigned_fields import AssignedField, Placed, assigned_fields
from bergline.sql.text.tokens import Name
from bergline.table.row_merges.clauses import Condition, MergeClause, Values, When

MATCHED, INSERTED, UNMATCHED = "_bergline_matched", "_bergline_inserted", "_bergline_unmatched"
"""Structs: what clauses of a kind make of a row; null where none applies."""
RESULTS: dict[When, str] = {"matched": MATCHED, "not matched": INSERTED, "not matched by source": UNMATCHED}
CLAUSE = "clause"
"""The field of these structs that says which clause applies, by its number in the statement."""
FILE_COLUMN, POS_COLUMN, ROW_ID_COLUMN = "_bergline_file", "_bergline_pos", "_bergline_row_id"
PRESENT = "_bergline_present"
"""True in rows that have a source row."""


class AssignedClause(msgspec.Struct, frozen=True):
    """A clause, and the columns that it gives values to, in the order of its values; none if it deletes."""

    clause: MergeClause[Any, Any]
    fields: tuple[AssignedField, ...]
    places: tuple[str, ...]
    """Where each value stands, for errors."""


def assigned_clauses(
    clauses: Sequence[MergeClause[Condition, Values]],
    schema: Schema,
    qualifiers: Sequence[Name],
    source_columns: Sequence[str],
    *,
    names: Callable[[Values], Sequence[Placed]],
    place: Callable[[int], str] = lambda _: "",
    evolves: bool,
    case_sensitive: bool = False,
) -> tuple[AssignedClause, ...]:
    """The columns that each clause gives values to, for a table of this schema; one error for the first unknown one.

    `names` are those that values are given to, and `place` says where in the text a clause stands. `*` needs a
    column of the source for each of the table's, unless the table takes over those of the source.
    """
    found = []
    for clause in clauses:
        if clause.has_star:
            at = place(clause.start)
            fields = _star_fields(schema, source_columns, at, evolves=evolves, case_sensitive=case_sensitive)
            places = [at] * len(fields)
        else:
            placed = () if clause.values is None else names(clause.values)
            fields = assigned_fields(placed, schema, qualifiers, case_sensitive=case_sensitive)
            places = [at for _, at in placed]
        for field, at in zip(fields, places, strict=True):
            if clause.action == "insert" and len(field.path) > 1:
                path = ".".join(field.path)
                raise InvalidInputError(f"expected columns to insert into, found the field `{path}` of one{at}")
        found.append(AssignedClause(clause, tuple(fields), tuple(places)))
    return tuple(found)


def of_kind(clauses: Sequence[AssignedClause], when: When) -> dict[int, AssignedClause]:
    """The clauses of a kind, in order, by their numbers in the statement."""
    return {number: assigned for number, assigned in enumerate(clauses) if assigned.clause.when == when}


def target_column(number: int) -> str:
    """The name that a column of the target has in the join."""
    return f"_bergline_target_{number}"


def value_field(clause: int, number: int) -> str:
    """The field of a result that has a clause's value."""
    return f"v{clause}_{number}"


def join_type(kinds: Sequence[When]) -> str:
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


def _star_fields(
    schema: Schema, source_columns: Sequence[str], place: str, *, evolves: bool, case_sensitive: bool
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
