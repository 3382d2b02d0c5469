"""Schema evolution: what changes, what stays, what is refused."""

from collections.abc import Callable
from typing import Literal

import msgspec
import pytest

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.format.evolution.columns import (
    add_column,
    change_field,
    drop_column,
    make_optional,
    move_column,
    rename_column,
    require_column,
    set_doc,
    set_identifier_fields,
    set_write_default,
    widen_column,
)
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
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
KEYED = Schema(
    (
        NestedField(
            1,
            "by",
            False,
            MapType(2, StructType((NestedField(4, "a", False, INT), NestedField(5, "b", False, INT))), 3, INT, False),
        ),
    )
)
DAY = Schema(fields=(NestedField(1, "day", False, DATE, None, "1970-01-02", "1970-01-03"),))
KEY = StructType((NestedField(6, "k", False, INT),))
COLUMN = NestedField(
    1,
    "c",
    False,
    StructType(
        (
            NestedField(2, "l", False, ListType(3, INT, True)),
            NestedField(4, "m", False, MapType(5, KEY, 7, StructType((NestedField(8, "v", False, INT),)), False)),
        )
    ),
)


def names(schema: Schema) -> dict[int, str]:
    return schema.names_by_id


def test_added_column_comes_last_with_an_id_above_all_that_were_used() -> None:
    schema, highest = add_column(SCHEMA, ("note",), STRING, LAST, doc="why")
    assert schema.fields[-1] == NestedField(21, "note", False, STRING, "why")
    assert highest == 21
    assert schema.identifier_field_ids == (1,)
    assert schema.schema_id is None


def test_added_nested_type_gets_ids_for_all_its_parts() -> None:
    type_ = StructType((NestedField(1, "a", False, ListType(2, INT, False)), NestedField(3, "b", False, INT)))
    schema, highest = add_column(SCHEMA, ("who", "more"), type_, LAST)
    added = {i: n for i, n in names(schema).items() if i > LAST}
    assert added == {21: "who.more", 22: "who.more.a", 23: "who.more.b", 24: "who.more.a.element"}
    assert highest == 24


@pytest.mark.parametrize("path", ["points.element.z", "points.z", "m.value.z", "m.z", "who.z"])
def test_columns_are_added_inside_structs_of_lists_and_maps(path: str) -> None:
    schema, _ = add_column(SCHEMA, path.split("."), INT, LAST)
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
        (lambda: add_column(SCHEMA, ("n",), INT, LAST), AlreadyExistsError, "column `n` exists already"),
        (lambda: add_column(SCHEMA, ("who", "name"), INT, LAST), AlreadyExistsError, r"column `who\.name` exists"),
        (lambda: add_column(SCHEMA, ("z",), INT, LAST, required=True), InvalidInputError, "rows have none"),
        (lambda: add_column(SCHEMA, ("n", "z"), INT, LAST), InvalidInputError, "expected a struct, found `int`"),
        (lambda: add_column(SCHEMA, ("nope", "z"), INT, LAST), NotFoundError, "no column `nope`"),
        (lambda: drop_column(SCHEMA, "id"), InvalidInputError, "it identifies rows"),
        (lambda: drop_column(SCHEMA, "points.element.x"), InvalidInputError, "the only one of its struct"),
        (lambda: drop_column(SCHEMA, "nope"), NotFoundError, "no column `nope`"),
        (lambda: rename_column(SCHEMA, "n", "id"), AlreadyExistsError, "column `id` exists already"),
        (lambda: move_column(SCHEMA, "n", ("after", "nope")), NotFoundError, "no column `nope` beside `n`"),
        (lambda: move_column(SCHEMA, "n", ("after", "name")), NotFoundError, "no column `name` beside `n`"),
        (lambda: make_optional(SCHEMA, "id"), InvalidInputError, "an identifier field that is never null"),
        (lambda: drop_column(SCHEMA, "points.element"), InvalidInputError, "it is the element of a `list"),
        (lambda: drop_column(SCHEMA, "m.key"), InvalidInputError, "it is the key of a `map"),
        (lambda: rename_column(SCHEMA, "m.value", "v"), InvalidInputError, "it is the value of a `map"),
        (lambda: rename_column(SCHEMA, "n", ""), InvalidInputError, "expected a name"),
        (lambda: move_column(SCHEMA, "m.key", ("first",)), InvalidInputError, "cannot move `m.key`"),
        (lambda: set_doc(SCHEMA, "m.key", "x"), InvalidInputError, "cannot describe `m.key`"),
        (lambda: add_column(KEYED, ("by", "key", "z"), INT, LAST), InvalidInputError, "outside the keys of maps"),
        (lambda: drop_column(KEYED, "by.key.a"), InvalidInputError, "outside the keys of maps"),
        (lambda: widen_column(KEYED, "by.key.a", LONG), InvalidInputError, "outside the keys of maps"),
        (lambda: make_optional(KEYED, "by.key"), InvalidInputError, "outside the keys of maps"),
        (lambda: require_column(SCHEMA, "d"), InvalidInputError, "cannot make column `d` required"),
        (lambda: set_identifier_fields(SCHEMA, ["d"]), InvalidInputError, "never null, found `d`"),
        (lambda: set_write_default(SCHEMA, "n", "x"), InvalidInputError, "expected a `int` value"),
        (lambda: add_column(SCHEMA, ("z",), INT, 2147483447), InvalidInputError, "found none left"),
        (lambda: widen_column(SCHEMA, "id", INT), InvalidInputError, "from `long` to `int`"),
        (lambda: widen_column(SCHEMA, "n", STRING), InvalidInputError, "from `int` to `string`: types only widen"),
        (lambda: widen_column(SCHEMA, "d", DecimalType(18, 3)), InvalidInputError, "types only widen"),
        (lambda: widen_column(SCHEMA, "d", DecimalType(8, 2)), InvalidInputError, "types only widen"),
    ],
)
def test_what_would_break_rows_is_refused(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


@pytest.mark.parametrize("side", ["after", "before"])
def test_column_is_not_moved_beside_itself(side: Literal["after", "before"]) -> None:
    with pytest.raises(InvalidInputError, match=f"expected another column to move `id` {side}, found `id` itself"):
        move_column(SCHEMA, "id", (side, "id"))


@pytest.mark.parametrize("version", [2, 3])
def test_types_that_a_column_may_change_to_are_listed(version: int) -> None:
    with pytest.raises(InvalidInputError, match="cannot change column `id` from `long` to `string`") as caught:
        widen_column(SCHEMA, "id", STRING, version)
    assert "int to long, float to double, decimal" in caught.value.hints[0]
    assert ("date to timestamp" in caught.value.hints[0]) == (version == 3)


def test_required_column_comes_with_a_default() -> None:
    schema, _ = add_column(SCHEMA, ("since",), DATE, LAST, required=True, default=1)
    assert schema.fields[-1] == NestedField(21, "since", True, DATE, None, "1970-01-02", "1970-01-02")


def test_caller_may_know_that_no_row_is_there() -> None:
    schema, _ = add_column(SCHEMA, ("z",), INT, LAST, required=True, allow_incompatible=True)
    assert require_column(schema, "d", allow_incompatible=True).find("d").required
    assert require_column(schema, "z").find("z").required


def test_write_default_changes_alone() -> None:
    schema, _ = add_column(SCHEMA, ("z",), INT, LAST, default=1)
    changed = set_write_default(schema, "z", 2).find("z")
    assert (changed.initial_default, changed.write_default) == (1, 2)
    assert set_write_default(schema, "z", None).find("z").write_default is None


def test_identifier_fields_are_named() -> None:
    assert set_identifier_fields(SCHEMA, ["n", "id"]).identifier_field_ids == (1, 2)
    assert set_identifier_fields(SCHEMA, []).identifier_field_ids == ()
    assert rename_column(SCHEMA, "id", "key").identifier_field_ids == (1,)


def test_elements_and_values_become_optional_and_wider() -> None:
    schema = Schema((NestedField(1, "l", False, ListType(2, INT, True)),))
    changed = widen_column(make_optional(schema, "l.element"), "l.element", LONG)
    assert changed.fields[0].type == ListType(2, LONG, False)


def test_short_names_reach_into_lists_and_maps() -> None:
    assert rename_column(SCHEMA, "points.x", "lon").find("points.element.lon").id == 8
    assert widen_column(SCHEMA, "m.y", LONG).find("m.value.y").type == LONG


@pytest.mark.parametrize("type_", [TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS])
def test_date_is_not_widened_to_timestamp_in_v2(type_: IcebergType) -> None:
    with pytest.raises(InvalidInputError, match="from `date` to `timestamp"):
        widen_column(DAY, "day", type_, 2)


def test_date_widens_to_timestamps_without_zone_in_v3() -> None:
    widened = widen_column(DAY, "day", TIMESTAMP, 3).find("day")
    assert (widened.initial_default, widened.write_default) == ("1970-01-02T00:00:00", "1970-01-03T00:00:00")
    assert widen_column(DAY, "day", TIMESTAMP_NS, 3).find("day").type == TIMESTAMP_NS
    with pytest.raises(InvalidInputError, match="from `date` to `timestamptz`"):
        widen_column(DAY, "day", TIMESTAMPTZ, 3)


def test_default_of_a_float_stays_the_same_number() -> None:
    schema = Schema((NestedField(1, "f", False, FLOAT, None, 0.1, None),))
    assert widen_column(schema, "f", DOUBLE).find("f").initial_default == 0.10000000149011612


@pytest.mark.parametrize(("transform", "allowed"), [("identity", False), ("bucket[4]", False), ("month", True)])
def test_rows_stay_in_their_partitions(transform: str, allowed: bool) -> None:
    spec = PartitionSpec(0, (PartitionField(1, 1000, "p", parse_transform(transform)),))
    if allowed:
        assert widen_column(DAY, "day", TIMESTAMP, 3, [spec]).find("day").type == TIMESTAMP
    else:
        with pytest.raises(InvalidInputError, match="the values of partition field `p` would change"):
            widen_column(DAY, "day", TIMESTAMP, 3, [spec])


def test_unknown_widens_to_any_primitive_in_v3() -> None:
    schema = Schema((NestedField(1, "u", False, UNKNOWN),))
    assert widen_column(schema, "u", DecimalType(9, 2), 3).find("u").type == DecimalType(9, 2)
    for type_, version in ((INT, 2), (ListType(2, INT, False), 3)):
        with pytest.raises(InvalidInputError, match="from `unknown`"):
            widen_column(schema, "u", type_, version)


def widened(field: NestedField) -> NestedField:
    return msgspec.structs.replace(field, type=LONG)


def test_field_of_the_id_changes_and_all_others_stay() -> None:
    changed = change_field(COLUMN, 8, widened)
    assert changed.type == StructType(
        (
            NestedField(2, "l", False, ListType(3, INT, True)),
            NestedField(4, "m", False, MapType(5, KEY, 7, StructType((NestedField(8, "v", False, LONG),)), False)),
        )
    )


def test_element_changes_its_type_and_whether_it_may_be_null() -> None:
    changed = change_field(COLUMN, 3, lambda f: msgspec.structs.replace(f, type=LONG, required=False))
    assert isinstance(changed.type, StructType)
    assert changed.type.fields[0].type == ListType(3, LONG, False)


@pytest.mark.parametrize("field_id", [5, 6])
def test_keys_of_maps_stay(field_id: int) -> None:
    with pytest.raises(InvalidInputError, match="outside the keys of maps"):
        change_field(COLUMN, field_id, lambda f: msgspec.structs.replace(f, type=STRING))


@pytest.mark.parametrize("field_id", [6, 8, 99])
def test_nothing_changed_is_the_same_field(field_id: int) -> None:
    assert change_field(COLUMN, field_id, lambda f: f) is COLUMN
