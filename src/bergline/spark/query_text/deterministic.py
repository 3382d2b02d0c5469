"""Conditions that are not deterministic, like `rand() < 0.5`: refused where rows are changed, as Spark does.

A task that runs again would find other rows.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from bergline.errors import BerglineError, InvalidInputError
from bergline.spark.query_text.assigned_fields import place_of
from bergline.sql.queries.assignments import Expression
from bergline.sql.text.tokens import SqlText, Token, TokenKind

_RANDOM: Final = frozenset(
    (
        *("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"),
        *("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"),
        *("java_method", "reflect", "try_reflect"),
    )
)
"""Those that come with Spark: only Spark knows of users' own."""
_CONDITION = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_MERGE_CONDITION = "UNSUPPORTED_MERGE_CONDITION.NON_DETERMINISTIC"


def check_deterministic(sql: SqlText, condition: Expression | None, statement: str) -> None:
    """Refuse a condition that calls one of Spark's random functions; users' own functions only Spark knows."""
    if condition is None:
        return
    for call in random_calls(sql.part(condition.start, condition.end)):
        found = f"`{call.value.lower()}`{place_of(sql, condition.start + call.start)}"
        raise not_deterministic(statement, found)


def not_deterministic(statement: str, found: str = "one that may be another each time") -> BerglineError:
    """The error for such a condition of a statement."""
    return InvalidInputError(
        f"expected a deterministic condition in {statement}, found {found}",
        hints=["compute the value in a table, or in the source of a MERGE, and compare with that"],
        condition=_MERGE_CONDITION if statement == "MERGE" else _CONDITION,
    )


def random_calls(sql: SqlText) -> Iterator[Token]:
    """The names of Spark's random functions where they are called."""
    for token, following in pairwise(sql.tokens):
        is_name = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        if is_name and token.value.lower() in _RANDOM and following.is_symbol("("):
            yield token
