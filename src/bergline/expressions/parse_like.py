"""LIKE patterns that are a prefix or a whole text."""

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.predicate import Comparison, Predicate, StartsWith


def parse_like(column: str, pattern: str, escape: str, text: str) -> Predicate:
    """`abc%` is a prefix, `abc` an equality; UnsupportedError for wildcards elsewhere."""
    literal, wildcards = _split(pattern, escape, text)
    if wildcards.strip("%"):
        raise UnsupportedError(
            f"expected a LIKE pattern with % at its end only, found '{pattern}' in the filter `{text}`",
            hints=["`LIKE 'abc%'` and `LIKE 'abc'` are understood"],
        )
    return StartsWith(column, literal) if wildcards else Comparison(column, "=", literal)


def _split(pattern: str, escape: str, text: str) -> tuple[str, str]:
    """The characters before the first wildcard, and the rest of the pattern."""
    literal = []
    position = 0
    while position < len(pattern) and (found := pattern[position]) not in "%_":
        if found == escape:
            position += 1
            found = pattern[position : position + 1]
            if not found or found not in {"%", "_", escape}:  # as Spark has it
                raise InvalidInputError(
                    f"expected %, _ or {escape} after {escape}, found '{pattern}' in the filter `{text}`"
                )
        literal.append(found)
        position += 1
    return "".join(literal), pattern[position:]
