"""Which fields of a table assignments are about."""

import pytest

from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    ListType,
    NestedField,
    StructType,
)
from bergline.spark.query_text.assigned_fields import assigned_fields, default_literal, place_of, qualifiers_of
from bergline.sql.text.tokens import SqlText


def _point(first: int) -> StructType:
    return StructType((NestedField(first, "x", False, INT), NestedField(first + 1, "Y", False, INT)))


SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "point", False, _point(11)),
        NestedField(3, "t", False, _point(21)),
        NestedField(4, "tags", False, ListType(13, STRING, False)),
        NestedField(5, "level", False, INT, write_default=3),
    )
)


def _paths(*targets: str, alias: str | None = None) -> list[str]:
    placed = [(tuple(target.split(".")), " at 1") for target in targets]
    return [".".join(f.path) for f in assigned_fields(placed, SCHEMA, qualifiers_of(("lake", "db", "t"), alias))]


def test_names_may_be_qualified_and_in_any_case() -> None:
    assert _paths("ID", "t.point.y", "lake.db.t.level") == ["id", "point.Y", "level"]
    assert _paths("db.t.id", "db.t.point.x", "point.y") == ["id", "point.x", "point.Y"]
    assert _paths("a.id", "A.Level", alias="a") == ["id", "level"]


def test_names_are_exact_where_the_session_says_so() -> None:
    for name in ("ID", "point.y", "T.id"):
        with pytest.raises(NotFoundError, match=f"no column `{name}`"):
            assigned_fields([(tuple(name.split(".")), "")], SCHEMA, [("t",)], case_sensitive=True)


def test_field_of_a_struct_that_is_named_like_its_table() -> None:
    assert _paths("t.x", "t.t.y") == ["t.x", "t.Y"]


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        (("nope",), NotFoundError, "no column `nope`: there are `id`, `point`, `t`, `tags`, `level` at 1"),
        (("point.z",), NotFoundError, "no column `point.z`: there are `point.x`, `point.Y` at 1"),
        (("tags.element",), UnsupportedError, "expected a struct to set a field of, found `tags` of type"),
        (("id", "ID"), InvalidInputError, "expected one value for column `id`, found another for `id` at 1"),
        (("point", "point.x"), InvalidInputError, "expected one value for column `point`, found another for `point.x`"),
        (("point.x", "point"), InvalidInputError, "expected one value for column `point.x`, found another for `point`"),
    ],
)
def test_one_error_with_its_place(targets: tuple[str, ...], error: type[BerglineError], message: str) -> None:
    with pytest.raises(error) as raised:
        _paths(*targets)
    assert message in str(raised.value)


def test_default_is_a_literal_or_null() -> None:
    assert [default_literal(f) for f in SCHEMA.fields] == ["CAST(NULL AS bigint)", "NULL", "NULL", "NULL", "3"]
    assert default_literal(NestedField(1, "x", False, DOUBLE, None, None, 1.5)) == "CAST(1.5 AS double)"
    assert default_literal(NestedField(1, "x", False, TIMESTAMPTZ)) == "CAST(NULL AS timestamp_ltz)"


def test_place_is_line_and_column() -> None:
    assert place_of(SqlText("SET\n  a = 1"), 6) == " at line 2, column 3"
