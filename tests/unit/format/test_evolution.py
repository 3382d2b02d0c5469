"""Schema evolution: what changes, what stays, what is refused."""

from collections.abc import Callable

import pytest

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.format.evolution import (
    add_column,
    drop_column,
    make_optional,
    move_column,
    rename_column,
    set_doc,
    widen_column,
)
from bergline.format.schema import Schema
from bergline.format.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "n", True, INT),
        NestedField(
            3, "who", False, StructType((NestedField(4, "name", False, STRING), NestedField(5, "f", False, FLOAT)))
        ),
        NestedField(6, "points", False, ListType(7, StructType((NestedField(8, "x", False, INT),)), False)),
        NestedField(9, "m", False, MapType(10, STRING, 11, StructType((NestedField(12, "y", False, INT),)), False)),
        NestedField(13, "d", False, DecimalType(9, 2)),
    ),
    schema_id=3,
    identifier_field_ids=(1,),
)
LAST = 20


def names(schema: Schema) -> dict[int, str]:
    return schema.names_by_id


def test_added_column_comes_last_with_an_id_above_all_that_were_used() -> None:
    schema, highest = add_column(SCHEMA, "note", STRING, LAST, doc="why")
    assert schema.fields[-1] == NestedField(21, "note", False, STRING, "why")
    assert highest == 21
    assert schema.identifier_field_ids == (1,)
    assert schema.schema_id is None


def test_added_nested_type_gets_ids_for_all_its_parts() -> None:
    type_ = StructType((NestedField(1, "a", False, ListType(2, INT, False)), NestedField(3, "b", False, INT)))
    schema, highest = add_column(SCHEMA, "who.more", type_, LAST)
    added = {i: n for i, n in names(schema).items() if i > LAST}
    assert added == {21: "who.more", 22: "who.more.a", 23: "who.more.b", 24: "who.more.a.element"}
    assert highest == 24


@pytest.mark.parametrize("path", ["points.element.z", "points.z", "m.value.z", "m.z", "who.z"])
def test_columns_are_added_inside_structs_of_lists_and_maps(path: str) -> None:
    schema, _ = add_column(SCHEMA, path, INT, LAST)
    assert 21 in schema.ids
    assert len(schema.ids) == len(SCHEMA.ids) + 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda s: rename_column(s, "n", "number"), {2: "number"}),
        (lambda s: rename_column(s, "who.name", "first"), {4: "who.first"}),
        (lambda s: rename_column(s, "who", "person"), {3: "person", 4: "person.name", 5: "person.f"}),
        (lambda s: rename_column(s, "points.element.x", "lon"), {8: "points.element.lon"}),
        (lambda s: drop_column(s, "n"), {2: None}),
        (lambda s: drop_column(s, "who.f"), {5: None}),
        (lambda s: drop_column(s, "who"), {3: None, 4: None, 5: None}),
    ],
)
def test_renamed_and_dropped_columns_leave_all_other_ids_alone(
    change: Callable[[Schema], Schema], expected: dict[int, str | None]
) -> None:
    wanted = {i: n for i, n in ({**names(SCHEMA), **expected}).items() if n is not None}
    assert names(change(SCHEMA)) == wanted


@pytest.mark.parametrize(
    ("place", "order"),
    [
        (("first",), ["d", "id", "n", "who", "points", "m"]),
        (("after", "id"), ["id", "d", "n", "who", "points", "m"]),
        (("before", "who"), ["id", "n", "d", "who", "points", "m"]),
    ],
)
def test_moved_column_keeps_its_id(place: tuple[str, ...], order: list[str]) -> None:
    moved = move_column(SCHEMA, "d", place)  # type: ignore[arg-type]
    assert [f.name for f in moved.fields] == order
    assert names(moved) == names(SCHEMA)


def test_nested_column_moves_in_its_struct() -> None:
    moved = move_column(SCHEMA, "who.f", ("first",)).find("who").type
    assert isinstance(moved, StructType)
    assert [f.name for f in moved.fields] == ["f", "name"]


@pytest.mark.parametrize(
    ("path", "type_"),
    [("n", LONG), ("who.f", DOUBLE), ("d", DecimalType(18, 2)), ("points.element.x", LONG), ("n", INT)],
)
def test_columns_widen(path: str, type_: IcebergType) -> None:
    assert widen_column(SCHEMA, path, type_).find(path).type == type_


def test_optional_and_doc_change_nothing_else() -> None:
    changed = set_doc(make_optional(SCHEMA, "n"), "who.name", "given")
    assert not changed.find("n").required
    assert changed.find("who.name").doc == "given"
    assert names(changed) == names(SCHEMA)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: add_column(SCHEMA, "n", INT, LAST), AlreadyExistsError, "column `n` exists already"),
        (lambda: add_column(SCHEMA, "who.name", INT, LAST), AlreadyExistsError, r"column `who\.name` exists"),
        (lambda: add_column(SCHEMA, "z", INT, LAST, required=True), InvalidInputError, "rows have none"),
        (lambda: add_column(SCHEMA, "n.z", INT, LAST), InvalidInputError, "expected a struct, found `int`"),
        (lambda: add_column(SCHEMA, "nope.z", INT, LAST), NotFoundError, "no column `nope`"),
        (lambda: drop_column(SCHEMA, "id"), InvalidInputError, "it identifies rows"),
        (lambda: drop_column(SCHEMA, "points.element.x"), InvalidInputError, "the only one of its struct"),
        (lambda: drop_column(SCHEMA, "nope"), NotFoundError, "no column `nope`"),
        (lambda: rename_column(SCHEMA, "n", "id"), AlreadyExistsError, "column `id` exists already"),
        (lambda: move_column(SCHEMA, "n", ("after", "nope")), NotFoundError, "no column `nope` beside `n`"),
        (lambda: move_column(SCHEMA, "n", ("after", "name")), NotFoundError, "no column `name` beside `n`"),
        (lambda: make_optional(SCHEMA, "id"), InvalidInputError, "it identifies rows"),
        (lambda: widen_column(SCHEMA, "id", INT), InvalidInputError, "from `long` to `int`"),
        (lambda: widen_column(SCHEMA, "n", STRING), InvalidInputError, "values would not fit"),
        (lambda: widen_column(SCHEMA, "d", DecimalType(18, 3)), InvalidInputError, "values would not fit"),
        (lambda: widen_column(SCHEMA, "d", DecimalType(8, 2)), InvalidInputError, "values would not fit"),
    ],
)
def test_what_would_break_rows_is_refused(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_date_is_not_widened_to_timestamp_in_v2() -> None:
    schema = Schema(fields=(NestedField(1, "day", False, DATE),))
    with pytest.raises(InvalidInputError, match="from `date` to `timestamp`"):
        widen_column(schema, "day", TIMESTAMP)
