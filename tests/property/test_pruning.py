"""Pruning and filtering against a brute-force reader that shares no code with them."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.reader import read_plan
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.expressions.evaluate import evaluate
from bergline.expressions.metrics import may_match, must_match
from bergline.expressions.predicate import (
    Always,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    bind,
)
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
    STRING,
    TIME,
    TIMESTAMP_NS,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    StructType,
)
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import PlannedFile, ScanPlan

SCHEMA = Schema(
    fields=(
        NestedField(1, "row", True, INT),
        NestedField(2, "i", False, INT),
        NestedField(3, "f", False, FLOAT),
        NestedField(4, "d", False, DOUBLE),
        NestedField(5, "s", False, STRING),
        NestedField(6, "m", False, DecimalType(5, 1)),
        NestedField(7, "b", False, BOOLEAN),
        NestedField(8, "st", False, StructType((NestedField(9, "x", False, INT),))),
        NestedField(10, "t", False, DATE),
        NestedField(11, "n", False, TIMESTAMP_NS),
        NestedField(12, "h", False, TIME),
        NestedField(13, "u", False, UUID),
        NestedField(14, "y", False, BINARY),
        NestedField(15, "x", False, FixedType(2)),
    ),
    schema_id=0,
)
ints = st.integers(-3, 3)
floats = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1.0, 2.5, float("nan"), float("inf"), float("-inf")])
narrow = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1.0, 2.5, float("nan"), float("inf"), float("-inf")])
texts = st.sampled_from(["", "a", "b", "ab", "x" * 16, "x" * 17, "x" * 16 + "y", "\U0010ffff" * 17])
decimals = st.integers(-30, 30).map(lambda n: Decimal(n) / 10)
dates = st.sampled_from([dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)])
instants = st.sampled_from([dt.datetime(1969, 12, 31, 23), dt.datetime(1970, 1, 1), dt.datetime(2020, 2, 29, 1, 2, 3)])  # noqa: DTZ001
times = st.sampled_from([dt.time(0), dt.time(1, 2, 3, 4), dt.time(23, 59, 59, 999_999)])
uuids = st.sampled_from([0, 1, 2**63, 2**64, 2**127, 2**128 - 1]).map(lambda n: uuid.UUID(int=n))
blobs = st.sampled_from([b"", b"a", b"\x7f", b"\x80", b"\xff" * 17, b"a" * 17])
pairs = st.sampled_from([b"\x00\x00", b"ab", b"\x80\x00", b"\xff\xff"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": ints,
    "f": narrow,
    "d": floats,
    "s": texts,
    "m": decimals,
    "b": st.booleans(),
    "t": dates,
    "n": instants,
    "h": times,
    "u": uuids.map(lambda u: u.bytes),
    "y": blobs,
    "x": pairs,
}
LITERALS = VALUES | {
    "f": floats,
    "i": st.integers(-4, 4) | st.sampled_from([2**40, -(2**70), Decimal("1.5"), Decimal("-0.5")]),
    "m": st.integers(-300, 300).map(lambda n: Decimal(n) / 100) | st.sampled_from([10**50, Decimal("-1e9")]),
    "u": uuids,
    "x": pairs | blobs,
    "st.x": ints,
}
rows = st.fixed_dictionaries(
    {name: st.none() | values for name, values in VALUES.items()}
    | {"st": st.none() | st.fixed_dictionaries({"x": st.none() | ints})}
)
columns = st.sampled_from(list(LITERALS))
leaves = st.one_of(
    st.builds(Always, st.booleans()),
    columns.map(IsNull),
    columns.flatmap(
        lambda c: st.builds(
            Comparison, st.just(c), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), LITERALS[c] | st.none()
        )
    ),
    columns.flatmap(
        lambda c: st.builds(IsIn, st.just(c), st.lists(LITERALS[c] | st.none(), min_size=1, max_size=3).map(tuple))
    ),
    st.builds(StartsWith, st.just("s"), texts | st.sampled_from(["xx", "\U0010ffff"])),
    st.builds(IsNan, st.sampled_from(["f", "d"])),
)
predicates = st.recursive(
    leaves, lambda p: st.one_of(st.builds(Not, p), st.builds(And, p, p), st.builds(Or, p, p)), max_leaves=5
)


def brute_force(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    """SQL's three-valued answer for one row, NaN greater than everything."""
    match predicate:
        case Always(value):
            return value
        case IsNull(column):
            return cell(row, column) is None
        case Comparison(column, op, literal):
            value = cell(row, column)
            return None if value is None or literal is None else answer(rank(value), op, rank(literal))
        case IsIn(column, literals):
            value = cell(row, column)
            found = value is not None and any(rank(value) == rank(v) for v in literals if v is not None)
            return True if found else None if value is None or None in literals else False
        case StartsWith(column, prefix):
            value = cell(row, column)
            return None if value is None else value[: len(prefix)] == prefix
        case IsNan(column):
            value = cell(row, column)
            return None if value is None else value != value  # noqa: PLR0124
        case Not(child):
            found = brute_force(child, row)
            return None if found is None else not found
        case And(left, right):
            both = [brute_force(left, row), brute_force(right, row)]
            return False if False in both else None if None in both else True
        case Or(left, right):
            both = [brute_force(left, row), brute_force(right, row)]
            return True if True in both else None if None in both else False
    raise AssertionError(predicate)


def cell(row: dict[str, Any], column: str) -> Any:
    if column == "st.x":
        return None if row["st"] is None else row["st"]["x"]
    return row[column]


def rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, uuid.UUID):
        value = value.bytes
    return (1, 0) if isinstance(value, float) and value != value else (0, value)  # noqa: PLR0124


def answer(left: Any, op: str, right: Any) -> bool:
    if op in {"=", "!="}:
        return (left == right) == (op == "=")
    if op in {"<", "<="}:
        return left < right or (op == "<=" and left == right)
    return right < left or (op == ">=" and left == right)


def stored(table_rows: list[dict[str, Any]]) -> tuple[MemoryFileIO, DataFile]:
    files = MemoryFileIO()
    numbered = [{"row": n, **row} for n, row in enumerate(table_rows)]
    with DataFileWriter(files, WriteSpec(SCHEMA, UNPARTITIONED, "memory:/d", "zstd", 2**30), "w") as writer:
        writer.write(pa.Table.from_pylist(numbered, schema=arrow_schema(SCHEMA)))
        return files, writer.finish()[0]


ZERO = dict.fromkeys(VALUES) | {"f": -0.0, "d": -0.0, "st": None}
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001


def plain(row: dict[str, Any], column: str) -> Any:
    """A cell as the layers below Arrow know it."""
    match column, cell(row, column):
        case _, None:
            return None
        case "t", value:
            return value.toordinal() - EPOCH.toordinal()
        case "n", value:
            return (value - EPOCH) // dt.timedelta(microseconds=1) * 1000
        case "h", value:
            return (dt.datetime.combine(EPOCH, value) - EPOCH) // dt.timedelta(microseconds=1)
        case "u", value:
            return uuid.UUID(bytes=value)
        case _, value:
            return value


@settings(max_examples=100)
@example([ZERO], [IsIn("d", (0.0,)), IsIn("f", (0.0, 1.0)), Not(IsIn("d", (0.0,)))])
@given(st.lists(rows, min_size=1, max_size=4), st.lists(predicates, min_size=1, max_size=8))
def test_no_file_with_a_matching_row_is_pruned_and_only_matching_rows_are_read(
    table_rows: list[dict[str, Any]], filters: list[Predicate]
) -> None:
    files, file = stored(table_rows)
    for predicate in filters:
        bound = bind(predicate, SCHEMA)
        answers = [brute_force(predicate, row) for row in table_rows]
        assert [evaluate(bound, lambda c, row=row: plain(row, c)) for row in table_rows] == answers
        expected = [n for n, answer in enumerate(answers) if answer is True]
        assert must_match(bound, file, SCHEMA) <= (len(expected) == len(table_rows))
        if expected:
            assert may_match(bound, file, SCHEMA)
            assert may_match(bound, DataFile(file.file_path, "PARQUET", (), 1, 1), SCHEMA)
        plan = ScanPlan(1, SCHEMA, SCHEMA.select(["row"]), bound, (PlannedFile(file, 1),))
        assert read_plan(files, plan).column("row").to_pylist() == expected


@settings(max_examples=60)
@given(st.lists(rows, min_size=1, max_size=4), predicates, st.data())
def test_leaving_out_metrics_only_keeps_more_files(
    table_rows: list[dict[str, Any]], predicate: Predicate, data: st.DataObject
) -> None:
    _, file = stored(table_rows)
    metrics = ["value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]
    kept = data.draw(st.sets(st.sampled_from(metrics)))
    poorer = DataFile(file.file_path, "PARQUET", (), 1, 1, **{name: getattr(file, name) for name in kept})
    bound = bind(predicate, SCHEMA)
    assert may_match(bound, file, SCHEMA) <= may_match(bound, poorer, SCHEMA)
    assert must_match(bound, poorer, SCHEMA) <= must_match(bound, file, SCHEMA)
    if any(brute_force(predicate, row) is True for row in table_rows):
        assert may_match(bound, poorer, SCHEMA)
