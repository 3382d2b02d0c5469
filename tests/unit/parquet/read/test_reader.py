"""The reader: columns by field id, rows by three-valued logic."""

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.errors import FormatError, NotFoundError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, Comparison, IsIn, Predicate, bind
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.io.memory import MemoryFileIO
from bergline.parquet.file.arrow_schema import arrow_schema
from bergline.parquet.read.reader import read_plan
from bergline.parquet.write.write_spec import WriteSpec
from bergline.parquet.write.writer import DataFileWriter
from bergline.scan.plan import PlannedFile, ScanPlan

LOCATION = "memory:/f.parquet"
NAN = float("nan")


def optional(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(field_id, name, False, type_)


def required(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(field_id, name, True, type_)


def defaulted(field_id: int, name: str, type_: IcebergType, default: Any) -> NestedField:
    return NestedField(field_id, name, True, type_, initial_default=default)


def with_id(name: str, type_: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})


def stored(files: MemoryFileIO, schema: Schema, rows: list[dict[str, Any]]) -> DataFile:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    with DataFileWriter(files, WriteSpec(schema, UNPARTITIONED, "memory:/data", "zstd", 2**30), "w") as writer:
        writer.write(table)
        return writer.finish()[0]


def foreign(table: pa.Table, **options: Any) -> MemoryFileIO:
    """A file of another writer at LOCATION."""
    out, files = io.BytesIO(), MemoryFileIO()
    pq.write_table(table, out, **options)
    files.create(LOCATION, out.getvalue())
    return files


def read(
    files: MemoryFileIO,
    file: DataFile | None,
    schema: Schema,
    *,
    row_filter: Predicate = ALWAYS_TRUE,
    columns: list[str] | None = None,
) -> pa.Table:
    file = file or DataFile(LOCATION, "PARQUET", (), 1, 1)
    selected = schema if columns is None else schema.select(columns)
    return read_plan(files, ScanPlan(1, schema, selected, bind(row_filter, schema), (PlannedFile(file, 1),)))


def evolved(before: NestedField, after: NestedField, values: list[Any]) -> list[Any]:
    """Values written under one field and read under another."""
    files = MemoryFileIO()
    old = Schema(fields=(required(99, "row", INT), before))
    rows = [{"row": n, before.name: v} for n, v in enumerate(values)]
    table = read(files, stored(files, old, rows), Schema(fields=(after,)))
    table.validate(full=True)
    assert table.schema.equals(arrow_schema(Schema(fields=(after,))), check_metadata=True)
    return table.column(after.name).to_pylist()


def test_every_type_comes_back_as_it_was_written(every_type: Schema, every_row: pa.Table) -> None:
    files = MemoryFileIO()
    table = read(files, stored(files, every_type, every_row.to_pylist()), every_type)
    assert table.schema.equals(arrow_schema(every_type), check_metadata=True)
    assert repr(table.to_pylist()) == repr(every_row.to_pylist())  # as text, where NaN is NaN


A_UUID = uuid.UUID(int=2**127 + 1)
DAY = dt.datetime(2020, 1, 1)  # noqa: DTZ001
STRUCT = StructType((optional(2, "a", INT), optional(3, "b", STRING)))
MAP = MapType(2, STRING, 3, INT, False)
MANY = [[1, None], [], None, [2]]


@pytest.mark.parametrize(
    ("before", "after", "values", "expected"),
    [
        (optional(1, "old", INT), optional(1, "new", INT), [1, None], [1, None]),
        (optional(1, "c", INT), optional(1, "c", LONG), [2**31 - 1, None], [2**31 - 1, None]),
        (optional(1, "c", FLOAT), optional(1, "c", DOUBLE), [1.5, None], [1.5, None]),
        (
            optional(1, "c", DecimalType(5, 2)),
            optional(1, "c", DecimalType(38, 2)),
            [Decimal("-1.50"), None],
            [Decimal("-1.50"), None],
        ),
        (optional(1, "c", DATE), optional(1, "c", TIMESTAMP), [dt.date(2020, 1, 1), None], [DAY, None]),
        (optional(1, "c", DATE), optional(1, "c", TIMESTAMP_NS), [dt.date(2020, 1, 1), None], [DAY, None]),
        (
            optional(1, "c", ListType(2, DATE, False)),
            optional(1, "c", ListType(2, TIMESTAMP, False)),
            [[dt.date(2020, 1, 1)]],
            [[DAY]],
        ),
        (optional(1, "c", INT), optional(2, "c", INT), [1, 2], [None, None]),
        (optional(1, "c", INT), defaulted(2, "d", LONG, 7), [1, 2], [7, 7]),
        (optional(1, "c", INT), defaulted(2, "d", DATE, "2020-01-01"), [1], [dt.date(2020, 1, 1)]),
        (optional(1, "c", INT), defaulted(2, "d", UUID, str(A_UUID)), [1], [A_UUID]),
        (optional(1, "c", INT), defaulted(2, "d", DecimalType(5, 2), "1.50"), [1], [Decimal("1.50")]),
        (
            optional(1, "c", INT),
            defaulted(2, "d", ListType(3, DATE, False), ["2020-01-01"]),
            [1],
            [[dt.date(2020, 1, 1)]],
        ),
        (
            optional(1, "c", INT),
            defaulted(2, "d", MapType(3, STRING, 4, INT, False), {"keys": ["a"], "values": [1]}),
            [1],
            [[("a", 1)]],
        ),
        (
            optional(1, "c", INT),
            defaulted(2, "s", StructType((defaulted(3, "a", INT, 5), optional(4, "b", INT))), {}),
            [1],
            [{"a": 5, "b": None}],
        ),
        (
            optional(1, "s", STRUCT),
            optional(1, "s", StructType((optional(2, "a", INT), defaulted(9, "n", STRING, "x")))),
            [{"a": 1, "b": "y"}, None],
            [{"a": 1, "n": "x"}, None],
        ),
        (optional(1, "c", INT), optional(2, "u", UNKNOWN), [1, 2], [None, None]),
        (optional(1, "c", INT), optional(2, "g", GeometryType("OGC:CRS84")), [1], [None]),
        (optional(1, "c", INT), optional(2, "v", VARIANT), [1], [None]),
        (optional(1, "c", INT), optional(5, "s", STRUCT), [1, 2], [None, None]),
        (
            optional(1, "s", STRUCT),
            optional(1, "s", StructType((optional(3, "b", STRING), optional(9, "n", LONG), optional(2, "z", LONG)))),
            [{"a": 1, "b": "x"}, {"a": None, "b": None}, None],
            [{"b": "x", "n": None, "z": 1}, {"b": None, "n": None, "z": None}, None],
        ),
        (
            optional(1, "s", STRUCT),
            optional(1, "s", StructType((optional(9, "n", LONG),))),
            [{"a": 1, "b": "x"}, None],
            [{"n": None}, None],
        ),
        (optional(1, "c", ListType(2, INT, False)), optional(1, "d", ListType(2, LONG, False)), MANY, MANY),
        (
            optional(1, "c", ListType(9, STRUCT, False)),
            optional(1, "c", ListType(9, StructType((optional(2, "z", LONG),)), False)),
            [[{"a": 1, "b": "x"}, None], [], None],
            [[{"z": 1}, None], [], None],
        ),
        (
            optional(1, "c", MAP),
            optional(1, "d", MapType(2, STRING, 3, LONG, False)),
            [[("a", 1), ("b", None)], [], None],
            [[("a", 1), ("b", None)], [], None],
        ),
        (
            optional(1, "c", MapType(8, INT, 9, STRUCT, False)),
            optional(1, "c", MapType(8, LONG, 9, StructType((optional(3, "b", STRING), optional(7, "n", INT))), False)),
            [[(1, {"a": 1, "b": "x"}), (2, None)], None, []],
            [[(1, {"b": "x", "n": None}), (2, None)], None, []],
        ),
    ],
)
def test_column_is_found_by_id_after_the_schema_changed(
    before: NestedField, after: NestedField, values: list[Any], expected: list[Any]
) -> None:
    assert evolved(before, after, values) == expected


def test_columns_come_in_the_order_asked_for() -> None:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", INT), optional(2, "b", INT)))
    table = read(files, stored(files, schema, [{"a": 1, "b": 2}]), schema, columns=["b", "a"])
    assert table.to_pylist() == [{"b": 2, "a": 1}]
    assert table.column_names == ["b", "a"]


def test_filter_may_use_columns_that_are_not_asked_for() -> None:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", INT), optional(2, "b", INT)))
    file = stored(files, schema, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    table = read(files, file, schema, columns=["a"], row_filter=parse_predicate("b = 4"))
    assert table.to_pydict() == {"a": [3]}


def test_plan_without_files_has_the_columns_and_no_rows(every_type: Schema) -> None:
    table = read_plan(MemoryFileIO(), ScanPlan(None, every_type, every_type, ALWAYS_TRUE, ()))
    assert table.num_rows == 0
    assert table.schema.equals(arrow_schema(every_type), check_metadata=True)


def test_several_files_are_read_in_order() -> None:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", INT),))
    first = stored(files, schema, [{"a": 1}])
    files.create(LOCATION, files.read(first.file_path))
    both = (PlannedFile(first, 1), PlannedFile(DataFile(LOCATION, "PARQUET", (), 1, 1), 2))
    assert read_plan(files, ScanPlan(1, schema, schema, ALWAYS_TRUE, both)).to_pydict() == {"a": [1, 1]}


FILTERED = Schema(
    fields=(
        optional(1, "n", INT),
        optional(2, "l", LONG),
        optional(3, "f", FLOAT),
        optional(4, "d", DOUBLE),
        optional(5, "m", DecimalType(10, 2)),
        optional(6, "s", STRING),
        optional(7, "b", BOOLEAN),
        optional(8, "day", DATE),
        optional(9, "ts", TIMESTAMP),
        optional(10, "tz", TIMESTAMPTZ),
        optional(11, "raw", BINARY),
        optional(12, "st", StructType((optional(13, "x", INT),))),
        optional(14, "li", ListType(15, INT, False)),
        optional(16, "a.b", INT),
    )
)
MOMENT = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001
ROWS = [
    {
        "n": 1,
        "l": 10,
        "f": 0.5,
        "d": 0.1,
        "m": Decimal("5.12"),
        "s": "a",
        "b": True,
        "day": dt.date(2020, 1, 1),
        "ts": MOMENT,
        "tz": MOMENT.replace(tzinfo=dt.UTC),
        "raw": b"a",
        "st": {"x": 1},
        "li": [1],
        "a.b": 1,
    },
    {
        "n": 2,
        "l": 20,
        "f": NAN,
        "d": NAN,
        "m": Decimal("-1.00"),
        "s": "",
        "b": False,
        "day": dt.date(1969, 12, 31),
        "ts": MOMENT + dt.timedelta(microseconds=1),
        "tz": MOMENT.replace(tzinfo=dt.UTC) - dt.timedelta(days=1),
        "raw": b"",
        "st": {"x": None},
        "li": [],
        "a.b": 2,
    },
    dict.fromkeys([f.name for f in FILTERED.fields]),
]


@pytest.fixture(scope="module")
def filtered() -> tuple[MemoryFileIO, DataFile]:
    files = MemoryFileIO()
    return files, stored(files, FILTERED, ROWS)


def kept(filtered: tuple[MemoryFileIO, DataFile], predicate: Predicate) -> list[int | None]:
    return read(*filtered, FILTERED, row_filter=predicate, columns=["n"]).column("n").to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", [1, 2, None]),
        ("false", []),
        ("NOT true", []),
        ("n = 1", [1]),
        ("n != 1", [2]),
        ("NOT n = 1", [2]),
        ("n IS NULL", [None]),
        ("n IS NOT NULL", [1, 2]),
        ("n IN (1, 3)", [1]),
        ("n NOT IN (1, 3)", [2]),
        ("NOT (n IN (3))", [1, 2]),
        ("n IN (1) OR n IS NULL", [1, None]),
        ("n = 1 OR l = 20", [1, 2]),
        ("NOT (n = 1 AND l = 20)", [1, 2]),
        ("n = 1 OR true", [1, 2, None]),
        ("NOT (n = 1 AND false)", [1, 2, None]),
        ("n BETWEEN 2 AND 5", [2]),
        ("n < 9999999999", [1, 2]),
        ("n > 9999999999", []),
        ("n IN (1, 9999999999)", [1]),
        ("n NOT IN (1, 9999999999)", [2]),
        ("f = 0.5", [1]),
        ("f > 100", [2]),
        ("f <= 100", [1]),
        ("NOT f > 100", [1]),
        ("NOT f < 100", [2]),
        ("d != 0.1", [2]),
        ("d >= 0.1", [1, 2]),
        ("d IN (0.1)", [1]),
        ("d NOT IN (0.1)", [2]),
        ("m = 5.12", [1]),
        ("m = 5.120", [1]),
        ("m > 5.119", [1]),
        ("m > 5.121", []),
        ("m < 123456789012345.5", [1, 2]),
        ("m IN (5.12, 5.123)", [1]),
        ("m NOT IN (5.12, 5.123)", [2]),
        ("m < 1e37", [1, 2]),
        ("s = ''", [2]),
        ("s > ''", [1]),
        ("b = true", [1]),
        ("NOT b = true", [2]),
        ("day < DATE '1970-01-01'", [2]),
        ("day IN ('2020-01-01')", [1]),
        ("ts > TIMESTAMP '2020-01-01 12:00:00'", [2]),
        ("tz = '2020-01-01T13:00:00+01:00'", [1]),
        ("tz IN ('2020-01-01T13:00:00+01:00')", [1]),
        ("st.x = 1", [1]),
        ("NOT st.x = 1", []),
        ("st.x IS NULL", [2, None]),
        ("st IS NULL", [None]),
        ("li IS NULL", [None]),
        ("`a.b` = 2", [2]),
    ],
)
def test_filter_keeps_the_rows_that_are_true(
    filtered: tuple[MemoryFileIO, DataFile], text: str, expected: list[int | None]
) -> None:
    assert kept(filtered, parse_predicate(text)) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [(Comparison("raw", ">=", b"a"), [1]), (IsIn("raw", (b"",)), [2]), (IsIn("n", ()), [])],
)
def test_filter_of_values_that_text_cannot_say(
    filtered: tuple[MemoryFileIO, DataFile], predicate: Predicate, expected: list[int | None]
) -> None:
    assert kept(filtered, predicate) == expected


@pytest.mark.parametrize(
    ("arrow", "values", "type_", "expected"),
    [
        (pa.large_string(), ["a", None], STRING, ["a", None]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", None], STRING, ["a", None]),
        (pa.large_binary(), [b"a"], BINARY, [b"a"]),
        (pa.uuid(), [b"a" * 16, None], UUID, [uuid.UUID(bytes=b"a" * 16), None]),
        (pa.binary(16), [b"a" * 16, None], UUID, [uuid.UUID(bytes=b"a" * 16), None]),
        (pa.large_list(with_id("item", pa.int32(), 2)), MANY, ListType(2, LONG, False), MANY),
        (pa.list_(with_id("item", pa.int32(), 2), 1), [[1], [None]], ListType(2, LONG, False), [[1], [None]]),
        (pa.timestamp("ms"), [MOMENT], TIMESTAMP, [MOMENT]),
        (pa.timestamp("ns", "UTC"), [MOMENT], TIMESTAMPTZ, [MOMENT.replace(tzinfo=dt.UTC)]),
        (pa.int16(), [5, None], INT, [5, None]),
        (pa.uint32(), [2**32 - 1], LONG, [2**32 - 1]),
        (pa.timestamp("us", "Europe/Berlin"), [MOMENT], TIMESTAMP, [MOMENT]),
        (pa.time32("ms"), [dt.time(1, 2, 3)], TIME, [dt.time(1, 2, 3)]),
        (pa.decimal128(9, 2), [Decimal("1.50")], DecimalType(12, 2), [Decimal("1.50")]),
        (pa.binary(), [b"a"], STRING, ["a"]),
        (pa.binary(), [b"wkb"], GeometryType("OGC:CRS84"), [b"wkb"]),
        (pa.null(), [None, None], STRING, [None, None]),
        (
            pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())]),
            [{"metadata": b"m", "value": b"v"}, None],
            VARIANT,
            [{"metadata": b"m", "value": b"v"}, None],
        ),
    ],
    ids=str,
)
def test_files_of_other_writers_are_read(
    arrow: pa.DataType, values: list[Any], type_: IcebergType, expected: list[Any]
) -> None:
    table = pa.Table.from_arrays([pa.array(values, arrow)], schema=pa.schema([with_id("c", arrow, 1)]))
    found = read(foreign(table), None, Schema(fields=(optional(1, "c", type_),)))
    assert found.column("c").to_pylist() == expected


def test_many_row_groups_are_one_column() -> None:
    arrow = pa.list_(with_id("element", pa.int32(), 2))
    table = pa.Table.from_arrays([pa.array(MANY * 10, arrow)], schema=pa.schema([with_id("c", arrow, 1)]))
    found = read(foreign(table, row_group_size=3), None, Schema(fields=(optional(1, "c", ListType(2, INT, False)),)))
    assert found.column("c").to_pylist() == MANY * 10


@pytest.mark.parametrize(
    ("arrow", "value", "type_"),
    [
        (pa.int32(), 1, STRUCT),
        (pa.int32(), 1, ListType(2, INT, False)),
        (pa.int32(), 1, MAP),
        (pa.struct([with_id("a", pa.int32(), 2)]), {"a": 1}, INT),
        (pa.struct([with_id("a", pa.int32(), 2)]), {"a": 1}, ListType(2, INT, False)),
        (pa.list_(with_id("element", pa.int32(), 2)), [1], STRUCT),
        (pa.list_(with_id("element", pa.int32(), 2)), [1], MAP),
        (pa.list_view(with_id("element", pa.int32(), 2)), [1], ListType(2, INT, False)),
        (pa.struct([with_id("a", pa.int32(), 2)]), {"a": 1}, StructType((required(3, "b", INT),))),
        (pa.int64(), 1, INT),
        (pa.float64(), 1.5, FLOAT),
        (pa.decimal128(5, 1), Decimal("1.5"), DecimalType(5, 2)),
        (pa.decimal128(9, 2), Decimal("1000.00"), DecimalType(5, 2)),
        (pa.binary(), b"\xff", STRING),
        (pa.binary(3), b"abc", BINARY),
        (pa.binary(3), b"abc", FixedType(4)),
        (pa.binary(3), b"abc", UUID),
        (pa.date32(), 1, TIMESTAMPTZ),
        (pa.date32(), 10**6, TIMESTAMP_NS),
        (pa.int32(), 1, DATE),
        (pa.string(), "x", BINARY),
        (pa.struct([("metadata", pa.binary())]), {"metadata": b"m"}, VARIANT),
        (pa.string(), "x", INT),
        (pa.timestamp("ns"), 1001, TIMESTAMP),
    ],
    ids=str,
)
def test_file_of_the_wrong_type_is_a_format_error(arrow: pa.DataType, value: Any, type_: IcebergType) -> None:
    table = pa.Table.from_arrays([pa.array([value], arrow)], schema=pa.schema([with_id("c", arrow, 1)]))
    with pytest.raises(FormatError, match=rf"expected .* in {LOCATION}"):
        read(foreign(table), None, Schema(fields=(optional(1, "c", type_),)))


def test_missing_required_column_is_a_format_error() -> None:
    table = pa.table([pa.array([1])], schema=pa.schema([with_id("c", pa.int64(), 1)]))
    with pytest.raises(FormatError, match=rf"required column `d` \(id 2\), found none in {LOCATION}"):
        read(foreign(table), None, Schema(fields=(required(2, "d", INT),)))


def test_file_without_field_ids_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match=f"expected field ids or a name mapping, found neither in {LOCATION}"):
        read(foreign(pa.table({"c": [1]})), None, Schema(fields=(optional(1, "c", LONG),)))


def test_shredded_variants_are_not_supported_and_named() -> None:
    arrow = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    table = pa.table([pa.array([{"metadata": b""}], arrow)], schema=pa.schema([with_id("v", arrow, 1)]))
    schema = Schema(fields=(optional(1, "v", VARIANT), optional(2, "c", INT)))
    with pytest.raises(UnsupportedError, match=f"in column `v` in {LOCATION}"):
        read(foreign(table), None, schema)
    assert read(foreign(table), None, schema, columns=["c"]).to_pydict() == {"c": [None]}


def test_field_id_that_stands_twice_is_a_format_error() -> None:
    fields = [with_id("a", pa.int32(), 1), with_id("b", pa.int32(), 1)]
    table = pa.table([pa.array([1], pa.int32())] * 2, schema=pa.schema(fields))
    with pytest.raises(FormatError, match=f"found 1 twice in {LOCATION}"):
        read(foreign(table), None, Schema(fields=(optional(1, "c", INT),)))


def test_text_that_is_no_text_is_a_format_error() -> None:
    text = pa.array([b"\xff\xfe"]).view(pa.string())
    table = pa.table([text], schema=pa.schema([with_id("c", pa.string(), 1)]))
    with pytest.raises(FormatError, match=LOCATION):
        read(foreign(table), None, Schema(fields=(optional(1, "c", STRING),)))


def test_file_of_another_format_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match=f"found ORC at {LOCATION}"):
        read(MemoryFileIO(), DataFile(LOCATION, "ORC", (), 1, 1), Schema(fields=(optional(1, "c", LONG),)))


def test_encrypted_files_are_refused_by_name() -> None:
    file = DataFile(LOCATION, "PARQUET", (), 1, 1, key_metadata=b"k")
    with pytest.raises(UnsupportedError, match=f"encrypted file {LOCATION}"):
        read(MemoryFileIO(), file, Schema(fields=(optional(1, "c", LONG),)))


def test_missing_file_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=LOCATION):
        read(MemoryFileIO(), None, Schema(fields=(optional(1, "c", LONG),)))


def whole_file() -> tuple[bytes, Schema]:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", LONG), optional(2, "b", STRING)))
    return files.read(stored(files, schema, [{"a": n, "b": str(n)} for n in range(20)]).file_path), schema


def test_truncated_file_is_a_format_error_wherever_it_is_cut() -> None:
    data, schema = whole_file()
    for cut in range(0, len(data), 7):
        files = MemoryFileIO()
        files.create(LOCATION, data[:cut])
        with pytest.raises(FormatError, match=f"in {LOCATION}"):
            read(files, None, schema)


def test_damaged_footer_gives_rows_or_our_error() -> None:
    data, schema = whole_file()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    problems = []
    for position in range(len(data) - footer, len(data)):
        files = MemoryFileIO()
        files.create(LOCATION, bytes([*data[:position], data[position] ^ 0xFF, *data[position + 1 :]]))
        try:
            read(files, None, schema)
        except (FormatError, UnsupportedError) as error:
            problems.append(str(error))
    assert problems
    assert all(LOCATION in text for text in problems)
