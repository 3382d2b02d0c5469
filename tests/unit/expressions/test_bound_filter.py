"""A filter that was bound once, on a schema in which columns have other names."""

import pytest

from bergline.errors import ConflictError
from bergline.expressions.bound_filter import EVERY_ROW, bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, bind
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, INT, LONG, STRING, NestedField, StructType

NOW = Schema(
    fields=(
        NestedField(1, "x", False, INT),
        NestedField(2, "d", False, DOUBLE),
        NestedField(3, "st", False, StructType((NestedField(4, "s", False, STRING),))),
    )
)
LATER = Schema(
    fields=(
        NestedField(2, "x", False, DOUBLE),
        NestedField(1, "d", False, INT),
        NestedField(3, "in", False, StructType((NestedField(4, "t", False, STRING), NestedField(5, "u", False, INT)))),
    )
)


def test_columns_are_found_by_their_ids() -> None:
    text = "x IN (1, 2) AND NOT (isnan(d) OR st.s LIKE 'a%') OR st IS NULL AND d > 5 OR true"
    later = "d IN (1, 2) AND NOT (isnan(x) OR `in`.t LIKE 'a%') OR `in` IS NULL AND x > 5 OR true"
    bound = bind_filter(parse_predicate(text), NOW)
    assert bound.on(NOW) == bind(parse_predicate(text), NOW)
    assert bound.on(LATER) == bind(parse_predicate(later), LATER)
    assert EVERY_ROW.on(LATER) == ALWAYS_TRUE


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (NestedField(2, "x", False, INT), "column `x`, found it dropped"),
        (NestedField(1, "x", False, LONG), "found `long`"),
    ],
)
def test_column_that_is_gone_or_has_another_type_is_a_conflict(field: NestedField, message: str) -> None:
    with pytest.raises(ConflictError, match=message):
        bind_filter(parse_predicate("x = 1"), NOW).on(Schema(fields=(field,)))
