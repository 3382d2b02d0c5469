"""Bound predicates as Arrow expressions."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.reader import read_plan
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
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
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import PlannedFile, ScanPlan

LOCATION = "memory:/f.parquet"


NAN = float("nan")


def optional(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(field_id, name, False, type_)


def stored(files: MemoryFileIO, schema: Schema, rows: list[dict[str, Any]]) -> DataFile:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    with DataFileWriter(files, WriteSpec(schema, UNPARTITIONED, "memory:/data", "zstd", 2**30), "w") as writer:
        writer.write(table)
        return writer.finish()[0]


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
