"""Pruning and filtering against a brute-force reader that shares no code with them."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import Always, And, Comparison, IsIn, IsNull, Not, Or, Predicate, bind
from bergline.format.manifest import DataFile
from bergline.format.partition import UNPARTITIONED
from bergline.format.schema import Schema
from bergline.format.types import BOOLEAN, DOUBLE, FLOAT, INT, STRING, DecimalType, NestedField, StructType
from bergline.io.memory import MemoryFileIO
from bergline.parquet.arrow_schema import arrow_schema
from bergline.parquet.read import read_plan
from bergline.parquet.write import DataFileWriter
from bergline.parquet.write_spec import WriteSpec
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
    ),
    schema_id=0,
)
ints = st.integers(-3, 3)
floats = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1.0, 2.5, float("nan"), float("inf"), float("-inf")])
narrow = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1.0, 2.5, float("nan"), float("inf"), float("-inf")])
texts = st.sampled_from(["", "a", "b", "ab", "x" * 16, "x" * 17, "x" * 16 + "y", "\U0010ffff" * 17])
decimals = st.integers(-30, 30).map(lambda n: Decimal(n) / 10)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": ints,
    "f": narrow,
    "d": floats,
    "s": texts,
    "m": decimals,
    "b": st.booleans(),
}
LITERALS = VALUES | {
    "f": floats.filter(lambda v: v == v),  # noqa: PLR0124
    "d": floats.filter(lambda v: v == v),  # noqa: PLR0124
    "i": st.integers(-4, 4) | st.just(2**40),
    "m": st.integers(-300, 300).map(lambda n: Decimal(n) / 100),
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
        lambda c: st.builds(Comparison, st.just(c), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), LITERALS[c])
    ),
    columns.flatmap(lambda c: st.builds(IsIn, st.just(c), st.lists(LITERALS[c], min_size=1, max_size=3).map(tuple))),
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
            return None if value is None else answer(rank(value), op, rank(literal))
        case IsIn(column, literals):
            value = cell(row, column)
            return None if value is None else any(rank(value) == rank(v) for v in literals)
        case Not(child):
            found = brute_force(child, row)
            return None if found is None else not found
        case And(left, right):
            both = {brute_force(left, row), brute_force(right, row)}
            return False if False in both else None if None in both else True
        case Or(left, right):
            both = {brute_force(left, row), brute_force(right, row)}
            return True if True in both else None if None in both else False
    raise AssertionError(predicate)


def cell(row: dict[str, Any], column: str) -> Any:
    if column == "st.x":
        return None if row["st"] is None else row["st"]["x"]
    return row[column]


def rank(value: Any) -> tuple[int, Any]:
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


ZERO = {"i": None, "f": -0.0, "d": -0.0, "s": None, "m": None, "b": None, "st": None}


@settings(max_examples=100)
@example([ZERO], [IsIn("d", (0.0,)), IsIn("f", (0.0, 1.0)), Not(IsIn("d", (0.0,)))])
@given(st.lists(rows, min_size=1, max_size=4), st.lists(predicates, min_size=1, max_size=8))
def test_no_file_with_a_matching_row_is_pruned_and_only_matching_rows_are_read(
    table_rows: list[dict[str, Any]], filters: list[Predicate]
) -> None:
    files, file = stored(table_rows)
    for predicate in filters:
        bound = bind(predicate, SCHEMA)
        expected = [n for n, row in enumerate(table_rows) if brute_force(predicate, row) is True]
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
    if any(brute_force(predicate, row) is True for row in table_rows):
        assert may_match(bound, poorer, SCHEMA)
