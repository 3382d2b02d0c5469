"""The word DEFAULT in the rows of an INSERT: the default of the column that it stands for."""

from collections.abc import Sequence

from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField
from bergline.spark.query_text.assigned_fields import default_literal
from bergline.sql.queries.query import Insert
from bergline.sql.text.tokens import SqlText, Token, TokenKind


def source_with_defaults(insert: Insert, schema: Schema) -> SqlText:
    """The query of an INSERT, with values in place of DEFAULT in VALUES rows and in the outermost SELECT list."""
    sql = insert.source.sql
    if insert.by_name or not sql.has_word("DEFAULT"):
        return sql
    targets = _targets(insert, schema)
    defaults = [(token, targets[place]) for token, place in _defaults(sql.tokens) if place < len(targets)]
    return sql.edited((token.start, token.end, default_literal(field)) for token, field in defaults)


def _targets(insert: Insert, schema: Schema) -> list[NestedField]:
    """The columns that the query supplies, in order; unknown names are reported later."""
    if insert.columns is not None:
        known = {field.name.casefold(): field for field in schema.fields}
        return [known[name.casefold()] for name in insert.columns if name.casefold() in known]
    given = {name.casefold() for name, value in insert.partition if value is not None}
    return [field for field in schema.fields if field.name.casefold() not in given]


def _defaults(tokens: Sequence[Token]) -> list[tuple[Token, int]]:
    """Each DEFAULT that is a whole value of a row, with its position there."""
    row_depth = 1 if tokens[0].is_word("VALUES") else 0
    if not tokens[0].is_word("VALUES", "SELECT"):
        return []
    found, depth, place = [], 0, 0
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], tokens[-1]], strict=False):
        if token.kind is TokenKind.SYMBOL and token.text in "([{":
            depth += 1
            place = 0 if depth == row_depth else place
        elif token.kind is TokenKind.SYMBOL and token.text in ")]}":
            depth -= 1
        elif depth == row_depth and token.is_symbol(","):
            place += 1
        elif depth == row_depth and token.is_word("FROM"):
            break
        elif depth == row_depth and token.is_word("DEFAULT") and _stands_alone(before, after):
            found.append((token, place))
    return found


def _stands_alone(before: Token, after: Token) -> bool:
    opens = before.is_symbol("(") or before.is_symbol(",") or before.is_word("SELECT")
    closes = after.is_symbol(")") or after.is_symbol(",") or after.is_symbol(";") or after.kind is TokenKind.END
    return opens and (closes or after.is_word("FROM"))
