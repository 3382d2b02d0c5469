"""Calls of functions whose result may be another each time, as they stand in a text."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from bergline.sql.text.tokens import SqlText, Token, TokenKind

_FUNCTIONS: Final = frozenset(
    (
        *("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"),
        *("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"),
        *("java_method", "reflect", "try_reflect"),
    )
)
"""Those that come with Spark: only Spark knows of users' own."""


def random_calls(sql: SqlText) -> Iterator[Token]:
    """The names of such functions where they are called."""
    for token, following in pairwise(sql.tokens):
        is_name = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        if is_name and token.value.lower() in _FUNCTIONS and following.is_symbol("("):
            yield token
