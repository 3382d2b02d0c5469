"""Projections through every transform of every type: no matching row is lost, no row is taken that does not match."""

import uuid
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import InvalidInputError
from bergline.expressions.evaluate import evaluate
from bergline.expressions.evaluate_columns import matches_columns
from bergline.expressions.predicate import COMPARE, Comparison, IsIn, IsNan, IsNull, Not, Predicate, StartsWith
from bergline.expressions.project import partition_schema, project_inclusive, project_strict
from bergline.expressions.residual import residual
from bergline.expressions.summaries import may_match_manifest
from bergline.format.manifest.manifest import FieldSummary
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import Transform, UnknownTransform, parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value
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
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
)
from support.fixtures.predicate_strategies import ALL_TYPES, bound_predicates, plain_values

TRANSFORMS = [
    parse_transform(text)
    for text in (
        *("identity", "void", "year", "month", "day", "hour", "bucket[1]", "bucket[3]", "bucket[16]"),
        *("truncate[1]", "truncate[2]", "truncate[3]", "truncate[10]", "truncate[1000]", "zorder[4]"),
    )
]


def takes(transform: Transform, type_: IcebergType) -> bool:
    try:
        transform.result_type(type_)
    except InvalidInputError:
        return False
    return True


PAIRS = [(t, type_) for t in TRANSFORMS for type_ in ALL_TYPES if takes(t, type_)]


def spec_of(*fields: tuple[int, Transform]) -> PartitionSpec:
    return PartitionSpec(
        0, tuple(PartitionField(source, 1000 + n, f"p{n}", transform) for n, (source, transform) in enumerate(fields))
    )


def partition_of(row: dict[str, Any], spec: PartitionSpec, schema: Schema) -> tuple[Any, ...]:
    return tuple(
        "?" if isinstance(f.transform, UnknownTransform) else f.transform.apply(source.type, row[source.name])
        for f in spec.fields
        for source in (schema.ids[f.source_id],)
    )


def answer(projected: Predicate, spec: PartitionSpec, partition: tuple[Any, ...]) -> bool | None:
    return evaluate(projected, lambda name: partition[[f.name for f in spec.fields].index(name)])


def check(predicate: Predicate, rows: list[dict[str, Any]], spec: PartitionSpec, schema: Schema) -> None:
    inclusive = project_inclusive(predicate, spec, schema)
    strict = project_strict(predicate, spec, schema)
    for row in rows:
        partition = partition_of(row, spec, schema)
        found = evaluate(predicate, row.__getitem__)
        if found is True:
            assert answer(inclusive, spec, partition) is True, (inclusive, row)
        if answer(strict, spec, partition) is True:
            assert found is True, (strict, row)
        left = residual(predicate, spec, partition, schema)
        assert (evaluate(left, row.__getitem__) is True) == (found is True), (left, row)


NASTY: dict[IcebergType, list[Any]] = {
    BOOLEAN: [True, False],
    INT: [-(2**31), -(2**31) + 9, -11, -10, -1, 0, 1, 9, 10, 2**31 - 1],
    LONG: [-(2**63), -(2**63) + 9, -11, -10, -1, 0, 1, 9, 10, 2**63 - 1],
    FLOAT: [float("-inf"), -1.5, -0.0, 0.0, 0.5, float("inf"), float("nan")],
    DOUBLE: [float("-inf"), -1.5, -0.0, 0.0, 0.1, float("inf"), float("nan")],
    DATE: [-(2**31), -800, -366, -365, -32, -31, -1, 0, 1, 30, 31, 365, 2**31 - 1],
    TIME: [0, 1, 86_399_999_999],
    STRING: ["", "a", "ab", "abc", "abcd", "b", "a\uffff", "a\U0001f600", "\U0010ffff" * 3, "ab\x00"],
    BINARY: [b"", b"a", b"ab", b"abc", b"abcd", b"b", b"a\x00", b"a\xff", b"\xff\xff\xff"],
    UUID: [uuid.UUID(int=n) for n in (0, 1, 2**63, 2**127, 2**128 - 1)],
    FixedType(2): [b"\x00\x00", b"\x7f\xff", b"\x80\x00"],
    DecimalType(4, 1): [Decimal(n) / 10 for n in (-9999, -11, -10, -1, 0, 1, 9, 10, 9999)],
    DecimalType(38, 10): [Decimal(n).scaleb(-10, Context(prec=76)) for n in (-(10**38) + 1, -1, 0, 10, 10**38 - 1)],
}
HOURS = (0, 1, 24, 31 * 24, 365 * 24)
MICROS = [s * (h * 3_600_000_000) + off for s in (1, -1) for h in HOURS for off in (-1, 0, 1, 999_999)]
NASTY |= {t: [-(2**63), *MICROS, 2**63 - 1] for t in (TIMESTAMP, TIMESTAMPTZ)}
NASTY |= {t: [-(2**63), *(m * 1000 + 999 for m in MICROS), 2**63 - 1] for t in (TIMESTAMP_NS, TIMESTAMPTZ_NS)}


def all_tests(type_: IcebergType) -> Iterator[Predicate]:
    yield IsNull("c")
    yield IsIn("c", ())
    if type_ in (FLOAT, DOUBLE):
        yield IsNan("c")
    literals = [v for v in NASTY[type_] if v == v]  # noqa: PLR0124
    for n, literal in enumerate(literals):
        yield from (Comparison("c", op, literal) for op in COMPARE)
        yield IsIn("c", (literal, literals[n - 1]))
        if type_ == STRING:
            yield StartsWith("c", literal)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
def test_projection_is_sound_for_every_test_and_nasty_value(transform: Transform) -> None:
    for type_ in NASTY:
        if takes(transform, type_):
            schema = Schema(fields=(NestedField(1, "c", False, type_),))
            spec = spec_of((1, transform))
            rows = [{"c": v} for v in (None, *NASTY[type_])]
            partitions = [partition_of(row, spec, schema) for row in rows]
            for test in all_tests(type_):
                for predicate in (test, Not(test)):
                    inclusive = project_inclusive(predicate, spec, schema)
                    strict = project_strict(predicate, spec, schema)
                    for row, partition in zip(rows, partitions, strict=True):
                        found = evaluate(predicate, row.__getitem__)
                        assert found is not True or answer(inclusive, spec, partition) is True, (predicate, row)
                        assert answer(strict, spec, partition) is not True or found is True, (predicate, row)


@settings(max_examples=100)
@given(st.sampled_from(PAIRS), st.data())
def test_projection_through_one_field_is_sound(pair: tuple[Transform, IcebergType], data: st.DataObject) -> None:
    transform, type_ = pair
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    predicate = data.draw(bound_predicates(schema, max_leaves=2))
    rows = data.draw(st.lists(st.none() | plain_values(type_), min_size=1, max_size=8))
    check(predicate, [{"c": v} for v in rows], spec_of((1, transform)), schema)


MANY = Schema(
    fields=(NestedField(1, "i", False, LONG), NestedField(2, "t", False, TIMESTAMP), NestedField(3, "s", False, STRING))
)


@settings(max_examples=100)
@given(st.data())
def test_projection_through_several_fields_is_sound(data: st.DataObject) -> None:
    fields = data.draw(
        st.lists(
            st.integers(1, 3).flatmap(
                lambda i: st.tuples(st.just(i), st.sampled_from([t for t in TRANSFORMS if takes(t, MANY.ids[i].type)]))
            ),
            max_size=4,
        )
    )
    row = st.fixed_dictionaries({f.name: st.none() | plain_values(f.type) for f in MANY.fields})
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    check(data.draw(bound_predicates(MANY)), rows, spec_of(*fields), MANY)


def summary(values: list[Any], type_: IcebergType) -> FieldSummary:
    """What a careful writer says of partition values."""
    known = [v for v in values if v is not None]
    numbers = [v for v in known if v == v]  # noqa: PLR0124
    lower, upper = (min(numbers), max(numbers)) if numbers else (None, None)
    return FieldSummary(
        contains_null=len(known) < len(values),
        contains_nan=len(numbers) < len(known),
        lower_bound=None if lower is None else encode_value(type_, lower),
        upper_bound=None if upper is None else encode_value(type_, upper),
    )


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
@settings(max_examples=15)
@given(st.data())
def test_no_manifest_with_a_matching_partition_is_skipped(type_: IcebergType, data: st.DataObject) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    spec = spec_of((1, parse_transform("identity")), (1, parse_transform("zorder[4]")))
    rows = data.draw(st.lists(st.none() | plain_values(type_), min_size=1, max_size=4))
    predicate = data.draw(bound_predicates(schema, max_leaves=3))
    projected = project_inclusive(predicate, spec, schema)
    found = [evaluate(predicate, lambda _, v=v: v) is True for v in rows]
    may = may_match_manifest(projected, (summary(rows, type_), FieldSummary(True)), spec, schema)
    assert any(found) <= may
    poorer = FieldSummary(contains_null=True, contains_nan=None)
    if any(v is not None for v in rows) and all(v == v for v in rows):  # noqa: PLR0124
        bounds = summary(rows, type_)
        poorer = FieldSummary(True, None, bounds.lower_bound, None)
        assert may <= may_match_manifest(projected, (poorer, FieldSummary(True)), spec, schema)
    assert may_match_manifest(projected, None, spec, schema)
    columns = partition_schema(spec, schema)
    values = pl.Series(rows, dtype=pl.Object)
    assert matches_columns(projected, lambda _: values, len(rows), columns).to_list() == found


def test_smallest_numbers_wrap_around_to_the_top() -> None:
    """Where Java loses rows: its projection of `c < 0` leaves out the partition that the smallest int is in."""
    schema = Schema(fields=(NestedField(1, "c", False, INT),))
    spec = spec_of((1, parse_transform("truncate[10]")))
    row = {"c": -(2**31)}
    assert partition_of(row, spec, schema) == (2147483646,)
    for op, literal in (("<", 0), ("<=", -(2**31)), (">=", -(2**31)), ("=", -(2**31)), (">", -5)):
        check(Comparison("c", op, literal), [row, {"c": 2147483646}], spec, schema)  # type: ignore[arg-type]
