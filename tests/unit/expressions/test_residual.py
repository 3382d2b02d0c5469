"""Residuals of predicates for known partitions."""

from typing import Any

import pytest

from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind
from bergline.expressions.residual import residual
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BINARY, DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, DecimalType, NestedField

SCHEMA = Schema(
    fields=(
        NestedField(1, "i", False, INT),
        NestedField(2, "l", False, LONG),
        NestedField(3, "s", False, STRING),
        NestedField(4, "t", False, TIMESTAMP),
        NestedField(5, "d", False, DATE),
        NestedField(6, "m", False, DecimalType(6, 2)),
        NestedField(7, "f", False, DOUBLE),
        NestedField(8, "b", False, BINARY),
    )
)


def spec_of(*fields: tuple[str, str]) -> PartitionSpec:
    return PartitionSpec(
        0,
        tuple(
            PartitionField(SCHEMA.names[c].id if c in SCHEMA.names else 99, 1000 + n, f"p{n}", parse_transform(t))
            for n, (c, t) in enumerate(fields)
        ),
    )


@pytest.mark.parametrize(
    ("text", "partition", "left"),
    [
        ("i = 1 AND l = 2", (1, 0), "l = 2"),
        ("i = 1 AND l = 2", (2, 0), "false"),
        ("i = 1 AND l = 2", (None, 0), "false"),
        ("i = 1 OR l = 2", (2, 0), "l = 2"),
        ("i = 1 OR l = 2", (1, 0), "true"),
        ("NOT i = 1", (2, 0), "true"),
        ("i IS NULL", (None, 0), "true"),
        ("t >= TIMESTAMP '1970-01-02 10:00:00'", (1, 2), "true"),
        ("t >= TIMESTAMP '1970-01-02 10:00:00'", (1, 1), "t >= TIMESTAMP '1970-01-02 10:00:00'"),
        ("t >= TIMESTAMP '1970-01-02 10:00:00'", (1, 0), "false"),
        ("NOT (t >= TIMESTAMP '1970-01-02 10:00:00' OR i = 2)", (1, 1), "t < TIMESTAMP '1970-01-02 10:00:00'"),
        ("s NOT IN ('x')", (1, 1), "s NOT IN ('x')"),
    ],
)
def test_residual_keeps_what_the_partition_does_not_decide(text: str, partition: tuple[Any, ...], left: str) -> None:
    spec = spec_of(("i", "identity"), ("t", "day"))
    expected = bind(parse_predicate(left), SCHEMA)
    assert residual(bind(parse_predicate(text), SCHEMA), spec, partition, SCHEMA) == expected
