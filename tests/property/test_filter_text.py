"""Whatever the text of a filter, it is a predicate or one of our errors."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind, columns_of
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BOOLEAN, DATE, DOUBLE, LONG, STRING, TIMESTAMP, DecimalType, NestedField

TYPES = {"a": LONG, "b": BOOLEAN, "s": STRING, "d": DOUBLE, "t": TIMESTAMP, "e": DATE, "m": DecimalType(9, 2)}
SCHEMA = Schema(fields=tuple(NestedField(n + 1, name, False, TYPES[name]) for n, name in enumerate(TYPES)))
NAMES = ["a", "b", "s", "d", "t", "e", "m", "x.y", "`a`", "`x", '"a"']
NUMBERS = ["1", "-1", "0", "1.5", "1e5", "1e-400", "9e999", "5L", "5Y", "1.5D", "1.5F", "2BD", ".5", "5.", "0x1F"]
LITERALS = ["X'1F'", "X'G'", "'x'", "'x%'", "'_'", "'2020-01-01'", "'NaN'", "NULL", "TRUE", "FALSE", "r'x'"]
SIGNS = [
    *"+-*/%&|^~!()[]{},;:.?@#$\\'\"`",
    "=",
    "==",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "||",
    "::",
    "--",
    "/*",
    "*/",
]
KEYWORDS = [
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "LIKE",
    "ILIKE",
    "RLIKE",
    "ESCAPE",
    "ANY",
    "ALL",
    "BETWEEN",
    "EXISTS",
    "DISTINCT",
]
PHRASES = [
    "FROM",
    "SELECT",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST(",
    "AS",
    "isnan(",
    "startswith(",
    "count(*)",
    "over(",
]
TYPE_NAMES = [
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TIME",
    "INTERVAL",
    "DECIMAL(2,1)",
    "DECIMAL(a)",
    "INT",
    "DOUBLE",
    "ARRAY",
]
WORDS = [*NAMES, *NUMBERS, *LITERALS, *SIGNS, *KEYWORDS, *PHRASES, *TYPE_NAMES]
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=6).map("".join),
    st.text(max_size=20),
    st.tuples(
        st.sampled_from(list(TYPES)),
        st.sampled_from(["=", "<", ">=", "<=>", "LIKE", "IN (1, ", "NOT IN (", "IS"]),
        st.sampled_from(WORDS) | st.text(max_size=6).map(lambda t: f"'{t}'"),
        st.sampled_from(["", ")", "AND b", "ESCAPE '!'"]),
    ).map(" ".join),
)


@settings(max_examples=100)
@example("a = CAST(1 AS DECIMAL(a))")
@example("a = CAST(1 AS DECIMAL(2, 1, 0))")
@example("a = CAST('1e999999999999999999' AS DECIMAL)")
@example("a = 1e99999999999999999999")
@example("m = 1e999999999999999999")
@example("s = '\ud800'")
@example("{ { 2BD")
@example("s LIKE '\\")
@given(texts)
def test_only_our_errors_come_out(text: str) -> None:
    refused = ""
    try:
        bound = bind(parse_predicate(text), SCHEMA)
    except (InvalidInputError, UnsupportedError, NotFoundError) as error:
        refused = str(error)
    assert refused or columns_of(bound) <= SCHEMA.names.keys()
