"""The query for the rows that a DELETE or an UPDATE is about, made of the statement's own text.

`UPDATE t SET x = e WHERE c` becomes `FROM t SELECT …, (e) WHERE c`: all that the user wrote stays in its order, so that
errors are shown where they are in the statement.
"""

from collections.abc import Sequence

from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted
from bergline.spark.query_text.assigned_fields import (
    AssignedField,
    assigned_fields,
    default_literal,
    place_of,
    qualifiers_of,
)
from bergline.sql.queries.query import RowLevel
from bergline.sql.text.tokens import Edit


def target_rows(statement: RowLevel, columns: Sequence[str], fields: Sequence[AssignedField] = ()) -> tuple[Edit, ...]:
    """Edits that make the statement a query: it selects columns of the target, then the values of SET."""
    start, end = statement.start, statement.from_end
    text = f" SELECT {', '.join(map(back_quoted, columns))}"
    if not statement.assignments:
        return (start, start + len(statement.keyword), ""), (end, end, text)
    edits: list[Edit] = [(start, start + len(statement.keyword), "FROM")]
    text += ", ("
    for assignment, assigned in zip(statement.assignments, fields, strict=True):
        value = assignment.value
        if value is None:
            text += f"{default_literal(assigned.field)}), ("
        else:
            edits.append((end, value.start, text))
            end, text = value.end, "), ("
    return (*edits, (end, statement.set_end, text.removesuffix(", (")))


def set_fields(statement: RowLevel, schema: Schema, *, case_sensitive: bool = False) -> list[AssignedField]:
    """The column, or field inside of one, that each assignment of an UPDATE is to."""
    sql = statement.whole.sql
    names = [(assignment.target, place_of(sql, assignment.start)) for assignment in statement.assignments]
    qualifiers = qualifiers_of(statement.table, statement.alias)
    return assigned_fields(names, schema, qualifiers, case_sensitive=case_sensitive)
