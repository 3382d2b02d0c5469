"""Rows made to fit a schema, or refused with the column that does not."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema, arrow_type
from bergline.datafiles.write.fit import fit_to_schema
from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

TWO = Schema(fields=(NestedField(1, "id", True, LONG), NestedField(2, "name", False, STRING)))
MAPS = pa.array([[("a", 1)], [("b", None)], None], pa.map_(pa.string(), pa.int64()))
INNER = StructType((NestedField(4, "p", True, LONG), NestedField(5, "q", False, INT, write_default=9)))
OUTER = StructType((NestedField(2, "a", False, INT), NestedField(3, "b", False, INNER)))
POINT = StructType((NestedField(2, "x", True, INT),))
ONE_UUID, OTHER_UUID = uuid.UUID(int=1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
STRUCT = StructType((NestedField(2, "u", False, UUID), NestedField(3, "s", False, STRING)))
LISTS = ListType(4, UUID, True)
NESTED = StructType((NestedField(2, "n", False, StructType((NestedField(3, "l", False, LISTS),))),))
HIDDEN = pa.StructArray.from_arrays([pa.array([["any text"], [str(ONE_UUID)]])], ["n"], mask=pa.array([True, False]))


def fit(array: pa.Array, type_: IcebergType, *, required: bool = False) -> list[Any]:
    schema = Schema(fields=(NestedField(1, "c", required, type_),))
    return fit_to_schema(pa.table({"c": array}), schema).column("c").to_pylist()


def test_rows_of_every_type_fit_as_they_are(every_type: Schema, every_row: pa.Table) -> None:
    fitted = fit_to_schema(every_row, every_type)
    assert fitted.schema.equals(every_row.schema, check_metadata=True)
    assert repr(fitted.to_pylist()) == repr(every_row.to_pylist())  # as text, where NaN is NaN


def test_columns_are_put_in_order_and_missing_ones_are_null() -> None:
    both = fit_to_schema(pa.table({"name": ["a"], "id": [1]}), TWO)
    assert both.schema.equals(arrow_schema(TWO), check_metadata=True)
    assert fit_to_schema(pa.table({"id": [1, 2]}), TWO).to_pydict() == {"id": [1, 2], "name": [None, None]}


def test_missing_columns_have_their_defaults() -> None:
    point = StructType((NestedField(4, "x", False, INT, write_default=5),))
    schema = Schema(
        fields=(
            NestedField(1, "id", True, LONG),
            NestedField(2, "n", True, INT, initial_default=1, write_default=7),
            NestedField(3, "s", False, point, write_default={}),
            NestedField(5, "d", False, DATE, initial_default="1970-01-02"),
        )
    )
    fitted = fit_to_schema(pa.table({"id": [1, 2]}), schema)
    assert fitted.to_pylist() == [{"id": i, "n": 7, "s": {"x": 5}, "d": None} for i in (1, 2)]
    given = pa.table({"id": [1], "n": [2], "s": pa.nulls(1), "d": pa.nulls(1)})
    assert fit_to_schema(given, schema).to_pylist() == [{"id": 1, "n": 2, "s": None, "d": None}]


def test_structs_are_put_in_order_and_what_they_lack_has_its_default() -> None:
    given = pa.array([{"b": {"p": 1}}, {"b": None}, None], pa.struct([("b", pa.struct([("p", pa.int32())]))]))
    assert fit(given, OUTER) == [{"a": None, "b": {"p": 1, "q": 9}}, {"a": None, "b": None}, None]
    turned = pa.array([{"b": {"q": 1, "p": 2}, "a": 3}])
    assert fit(turned, OUTER) == [{"a": 3, "b": {"p": 2, "q": 1}}]
    with pytest.raises(InvalidInputError, match=r"required column `b\.p`"):
        fit(pa.array([{"a": 1, "b": {"q": 1}}]), OUTER)


def test_batches_and_readers_are_rows_too() -> None:
    table = pa.table({"id": [1, 2]})
    expected = fit_to_schema(table, TWO)
    assert fit_to_schema(table.to_batches()[0], TWO) == expected
    assert fit_to_schema(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), TWO) == expected


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([1], pa.int8()), LONG, [1]),
        (pa.array([1], pa.int64()), INT, [1]),
        (pa.array([1], pa.uint64()), LONG, [1]),
        (pa.array([1.5], pa.float32()), DOUBLE, [1.5]),
        (pa.array([Decimal("1.5")], pa.decimal256(50, 2)), DecimalType(5, 1), [Decimal("1.5")]),
        (pa.array(["a"], pa.large_string()), STRING, ["a"]),
        (pa.array(["a"], pa.string_view()), STRING, ["a"]),
        (pa.array(["a", None]).dictionary_encode(), STRING, ["a", None]),
        (pa.array([86_400_000], pa.date64()), DATE, [dt.date(1970, 1, 2)]),
        (pa.array([1], pa.time32("s")), TIME, [dt.time(0, 0, 1)]),
        (pa.array([1], pa.timestamp("s")), TIMESTAMP, [dt.datetime(1970, 1, 1, 0, 0, 1)]),  # noqa: DTZ001
        (pa.array([0], pa.timestamp("ms", "Asia/Tokyo")), TIMESTAMPTZ, [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
        (pa.array([[1]], pa.large_list(pa.int8())), ListType(2, LONG, False), [[1]]),
        (pa.array([{"a": 1}, None]), StructType((NestedField(2, "a", True, INT),)), [{"a": 1}, None]),
        (MAPS[:1], MapType(2, STRING, 3, LONG, True), [[("a", 1)]]),
        (MAPS, MapType(2, STRING, 3, INT, False), [[("a", 1)], [("b", None)], None]),
    ],
    ids=str,
)
def test_cast_that_keeps_the_meaning_is_made(array: pa.Array, type_: IcebergType, expected: list[Any]) -> None:
    assert fit(array, type_) == expected


@pytest.mark.parametrize(
    "type_",
    [
        LONG,
        UUID,
        FixedType(3),
        DecimalType(5, 2),
        TIMESTAMPTZ,
        ListType(2, INT, True),
        MapType(2, STRING, 3, INT, True),
    ],
    ids=str,
)
def test_column_of_nothing_fits_every_type(type_: IcebergType) -> None:
    assert fit(pa.nulls(2), type_) == [None, None]


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (pa.array([2**40]), INT),
        (pa.array([2**63], pa.uint64()), LONG),
        (pa.array([Decimal("1.234")]), DecimalType(5, 2)),
        (pa.array([Decimal(1000)]), DecimalType(3, 0)),
        (pa.array([1], pa.timestamp("ns")), TIMESTAMP),
        (pa.array([2**60], pa.timestamp("s")), TIMESTAMP),
        (pa.array([0], pa.timestamp("us", "UTC")), TIMESTAMP),
        (pa.array([0], pa.timestamp("us")), TIMESTAMPTZ),
        (pa.array([1.5]), FLOAT),
        (pa.array([1.0]), LONG),
        (pa.array([1]), DOUBLE),
        (pa.array(["1"]), LONG),
        (pa.array([1]), STRING),
        (pa.array([True]), INT),
        (pa.array([b"a"]), STRING),
        (pa.array([b"ab"], pa.binary(2)), FixedType(3)),
        (pa.array([{"b": 1}]), StructType((NestedField(2, "a", False, INT),))),
        (pa.array([1]), ListType(2, INT, False)),
        (pa.array([[1]], pa.list_view(pa.int64())), ListType(2, LONG, False)),
    ],
    ids=str,
)
def test_value_that_would_change_is_refused(array: pa.Array, type_: IcebergType) -> None:
    with pytest.raises(InvalidInputError, match="column `c`"):
        fit(array, type_)


@pytest.mark.parametrize(
    ("array", "type_", "required"),
    [
        (pa.array([1, None]), LONG, True),
        (pa.nulls(1), LONG, True),
        (pa.array([[None]], pa.list_(pa.int64())), ListType(2, LONG, True), False),
        (MAPS, MapType(2, STRING, 3, LONG, True), False),
        (pa.array([{"x": None}], pa.struct([("x", pa.int32())])), POINT, False),
        (pa.array([[{"x": None}]], pa.list_(pa.struct([("x", pa.int32())]))), ListType(3, POINT, False), False),
    ],
    ids=str,
)
def test_null_where_a_value_is_required_is_refused(array: pa.Array, type_: IcebergType, required: bool) -> None:
    with pytest.raises(InvalidInputError, match="`c"):
        fit(array, type_, required=required)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"name": ["a"]}), "required column `id`, found `name`"),
        (pa.table({"id": [1], "nmae": ["a"]}), "columns `id`, `name`, found `nmae`"),
        (pa.table([[1], [2]], names=["id", "id"]), "each column once"),
        (pa.table({}), "required column `id`, found no columns"),
        ({"id": [1]}, "expected rows as Arrow data"),
    ],
    ids=["missing", "unknown", "twice", "none", "no rows"],
)
def test_columns_that_do_not_fit_are_named(rows: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fit_to_schema(rows, TWO)


@pytest.mark.parametrize(
    "array", [pa.array([b"a", b"\xff\xfe"]).view(pa.string()), pa.array([b"\xff"]).view(pa.string())]
)
def test_text_that_is_no_utf_8_is_refused_by_column(array: pa.Array) -> None:
    schema = Schema((NestedField(1, "t", False, STRING),))
    with pytest.raises(InvalidInputError, match=r"expected text in UTF-8, found other bytes in column `t`.*UTF8"):
        fit_to_schema(pa.table({"t": array}), schema)


def test_null_in_a_required_field_of_a_struct_names_the_field() -> None:
    type_ = StructType((NestedField(2, "a", True, LONG),))
    rows = pa.table({"st": pa.array([{"a": None}], pa.struct([("a", pa.int32())]))})
    with pytest.raises(InvalidInputError, match=r"expected values in the required column `st\.a`, found 1 null$"):
        fit_to_schema(rows, Schema((NestedField(1, "st", False, type_),)))


def test_column_in_other_letters_is_refused_with_the_right_ones() -> None:
    with pytest.raises(InvalidInputError, match="expected columns `id`, `name`, found `ID`") as caught:
        fit_to_schema(pa.table({"ID": [1]}), TWO)
    assert caught.value.hints == ("did you mean `id`?",)


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([str(ONE_UUID), None, str(OTHER_UUID).upper()]), UUID, [ONE_UUID, None, OTHER_UUID]),
        (pa.array([str(ONE_UUID)], pa.large_string()), UUID, [ONE_UUID]),
        (pa.array(["x", str(ONE_UUID), None])[1:], UUID, [ONE_UUID, None]),
        (pa.array([], pa.string()), UUID, []),
        (pa.array([{"s": "a", "u": str(OTHER_UUID)}, None]), STRUCT, [{"u": OTHER_UUID, "s": "a"}, None]),
        (
            pa.array([{"u": str(ONE_UUID)}, None]),
            StructType((NestedField(2, "u", True, UUID),)),
            [{"u": ONE_UUID}, None],
        ),
        (
            pa.array([{"n": {"l": [str(ONE_UUID)]}}, {"n": None}, None]),
            NESTED,
            [{"n": {"l": [ONE_UUID]}}, {"n": None}, None],
        ),
        (HIDDEN, StructType((NestedField(2, "n", True, LISTS),)), [None, {"n": [ONE_UUID]}]),
        (pa.array([[str(ONE_UUID), None], None, []])[0:], ListType(2, UUID, False), [[ONE_UUID, None], None, []]),
        (pa.array([["x"], [str(ONE_UUID)], None])[1:], ListType(2, UUID, False), [[ONE_UUID], None]),
        (
            pa.array([[(str(ONE_UUID), str(OTHER_UUID))], None], pa.map_(pa.string(), pa.string())),
            MapType(2, UUID, 3, UUID, False),
            [[(ONE_UUID, OTHER_UUID)], None],
        ),
    ],
    ids=str,
)
def test_text_becomes_uuids_wherever_they_stand(array: pa.Array, type_: IcebergType, expected: list[Any]) -> None:
    assert fit(array, type_) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        str(ONE_UUID)[:-1],
        ONE_UUID.hex,
        f"{{{ONE_UUID}}}",
        f"urn:uuid:{ONE_UUID}",
        f"{ONE_UUID}\n",
        "1-1-1-1-1",
    ],
)
def test_other_text_is_refused_with_its_column(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected `uuid`, found .* in column `c`"):
        fit(pa.array([str(ONE_UUID), text]), UUID)
    with pytest.raises(InvalidInputError, match=r"in column `c\.element`"):
        fit(pa.array([[text]]), ListType(2, UUID, False))


def test_other_types_are_no_uuids() -> None:
    with pytest.raises(InvalidInputError, match="expected `uuid`, found `int64` in column `c`"):
        fit(pa.array([1]), UUID)


ONE_VARIANT = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
FROM_SPARK = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])


@pytest.mark.parametrize("arrow", [FROM_SPARK, arrow_type(VARIANT), None], ids=["spark", "own", "inferred"])
def test_variants_are_arranged_wherever_they_stand(arrow: pa.DataType | None) -> None:
    inside = StructType((NestedField(6, "v", True, VARIANT),))
    fields = [(1, VARIANT), (2, ListType(5, VARIANT, False)), (3, inside), (4, MapType(7, INT, 8, VARIANT, False))]
    schema = Schema(fields=tuple(NestedField(n, f"c{n}", False, type_) for n, type_ in fields))
    rows: list[Any] = [
        [ONE_VARIANT, None, ONE_VARIANT],
        [[ONE_VARIANT, None], None, []],
        [{"v": ONE_VARIANT}, None, {"v": ONE_VARIANT}],
        [[(1, None), (2, ONE_VARIANT)], None, []],
    ]
    types = [None] * 4
    if arrow is not None:
        types = [arrow, pa.list_(arrow), pa.struct([("v", arrow)]), pa.map_(pa.int32(), arrow)]
    else:
        types[3] = pa.map_(pa.int32(), pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))
    given = pa.table({f"c{n}": pa.array(column, t) for n, (column, t) in enumerate(zip(rows, types, strict=True), 1)})
    for table in (given, given.slice(1)):
        found = fit_to_schema(table, schema)
        assert found.schema == arrow_schema(schema)
        assert found.to_pydict() == {f"c{n}": column[3 - table.num_rows :] for n, column in enumerate(rows, 1)}


@pytest.mark.parametrize("type_", [GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "karney")], ids=str)
def test_bytes_that_are_no_shape_are_refused_wherever_they_stand(type_: IcebergType) -> None:
    wrong = b"POINT (1 2)"
    inside = StructType((NestedField(2, "g", False, type_),))
    for found, array, path in [
        (type_, pa.array([None, wrong]), "c"),
        (inside, pa.array([{"g": wrong}, None]), r"c\.g"),
        (ListType(2, type_, False), pa.array([[None], [wrong]]), r"c\.element"),
    ]:
        with pytest.raises(InvalidInputError, match=f"expected well-known binary, found 504f.* in column `{path}`"):
            fit_to_schema(pa.table({"c": array}), Schema(fields=(NestedField(1, "c", False, found),)))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array(["{}"]), "expected `variant`, found `string` in column `c`"),
        (pa.array([{"value": b"\x00"}]), "expected `variant` as a struct of the binary fields `metadata` and `value`"),
        (pa.array([{"value": "x", "metadata": "y"}]), "found `struct<value: string, metadata: string>` in column `c`"),
        (
            pa.array([{"value": None, "metadata": b"\x01\x00\x00"}], FROM_SPARK),
            "expected variants of encoding version 1",
        ),
        (pa.array([{"value": b"", "metadata": b"\x01\x00\x00"}]), "found other bytes in column `c`"),
        (pa.array([{"value": b"\x00", "metadata": b"\x02\x00\x00"}]), "found other bytes in column `c`"),
        (pa.array([{"value": b"\x00", "metadata": b""}]), "found other bytes in column `c`"),
    ],
)
def test_other_values_are_no_variants(array: pa.Array, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fit_to_schema(pa.table({"c": array}), Schema(fields=(NestedField(1, "c", False, VARIANT),)))


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        (TIME, ["23:59:59.999999", None, "01:02"], [dt.time(23, 59, 59, 999_999), None, dt.time(1, 2)]),
        (FixedType(2), [b"ab", None, b"\x00\xff"], [b"ab", None, b"\x00\xff"]),
    ],
    ids=str,
)
def test_text_and_bytes_become_times_and_fixed_wherever_they_stand(
    type_: IcebergType, given: list[Any], expected: list[Any]
) -> None:
    fields = (
        NestedField(1, "c", False, type_),
        NestedField(2, "l", False, ListType(3, type_, False)),
        NestedField(4, "s", False, StructType((NestedField(5, "x", True, type_),))),
    )
    struct = [None if value is None else {"x": value} for value in given]
    table = pa.table({"c": pa.array(given), "l": pa.array([given, None, []]), "s": pa.array(struct)})
    found = fit_to_schema(table, Schema(fields=fields))
    assert found.to_pydict() == {
        "c": expected,
        "l": [expected, None, []],
        "s": [None if value is None else {"x": value} for value in expected],
    }


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (TIME, "25:00:00", "expected a time of the day, found `25:00:00` in column `c` of type `time`"),
        (TIME, "1 pm", "expected a time like 22:31:08, found `1 pm` in column `c` of type `time`"),
        (TIME, "01:00:00.0000001", "in column `c` of type `time`"),
        (FixedType(2), b"abc", r"expected 2 bytes, found 3 \(616263\) in column `c`"),
    ],
)
def test_other_values_are_refused_by_name(type_: IcebergType, value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fit_to_schema(pa.table({"c": [None, value]}), Schema(fields=(NestedField(1, "c", False, type_),)))
