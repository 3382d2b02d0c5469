"""What is left of a filter for a file: true for the same rows as the whole filter."""

import math
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from bergline.expressions.evaluate import evaluate
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.new_table import new_metadata
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import (
    BINARY,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    IcebergType,
    NestedField,
)
from bergline.server.planning.fields import FieldNames
from bergline.server.planning.filters import file_filter, read_filter
from bergline.server.planning.residuals import NOTHING, WHOLE, Residuals

MANY = 200
Number = Callable[[int], Any]
TYPES: dict[str, tuple[IcebergType, Number, Number]] = {
    "long": (LONG, int, int),
    "long by text of a decimal": (LONG, int, lambda n: n / 2),
    "string": (STRING, lambda n: f"{n:03}é", lambda n: f"{n:03}é"),
    "date": (DATE, int, lambda n: n),
    "timestamp": (TIMESTAMP, int, int),
    "decimal": (DecimalType(9, 2), lambda n: Decimal(n) / 4, lambda n: str(Decimal(n) / 4)),
    "binary": (BINARY, lambda n: bytes([n % 256, n // 256]), lambda n: bytes([n % 256, n // 256]).hex()),
    "double": (DOUBLE, lambda n: math.nan if n == 7 else n / 2, lambda n: n / 2),
    "uuid": (UUID, lambda n: uuid.UUID(int=n << 120 | n), lambda n: str(uuid.UUID(int=n << 120 | n))),
}
"""The type, the value of a row, and how a client says it."""


def residuals(type_: IcebergType, wire: Any) -> tuple[FieldNames, Residuals]:
    schema = Schema(fields=(NestedField(id=1, name="x", type=type_, required=False),))
    metadata = new_metadata(
        schema=schema, spec=UNPARTITIONED, location="memory://t", properties={}, table_uuid="u", now_ms=0
    )
    names = FieldNames(metadata.schema)
    return names, Residuals(read_filter(wire, names), metadata, metadata.schema)


@pytest.mark.parametrize("joined", ["", "and", "or"])
@pytest.mark.parametrize("kind", ["in", "not-in"])
@pytest.mark.parametrize(("type_", "value", "word"), TYPES.values(), ids=TYPES)
def test_what_is_left_of_a_long_list_holds_for_the_same_rows(
    type_: IcebergType, value: Number, word: Number, kind: str, joined: str
) -> None:
    chance = random.Random(f"{type_} {kind} {joined}")  # noqa: S311
    listed = [word(n) for n in chance.sample(range(256), MANY)]
    test = {"type": kind, "term": "x", "values": listed}
    wire = {"type": joined, "left": {"type": "is-null", "term": "x"}, "right": test} if joined else test
    names, left = residuals(type_, wire)
    whole = file_filter(read_filter(wire, names), names)
    for _ in range(8):
        rows = [value(n) for n in chance.sample(range(256), chance.randint(1, 20))]
        inside = [v for v in rows if not (isinstance(v, float) and math.isnan(v))]
        bounds = {} if not inside else {"lower_bounds": {1: encode_value(type_, min(inside))}}
        if inside and chance.random() < 0.8:
            bounds["upper_bounds"] = {1: encode_value(type_, max(inside))}
        found = left.of(DataFile("f", "PARQUET", (), len(rows), 1, **bounds))
        reduced = file_filter(read_filter(msgspec.json.decode(found), names), names)
        for row in [*rows, None]:
            wanted = evaluate(whole.predicate, lambda _, row=row: row) is True
            assert (evaluate(reduced.predicate, lambda _, row=row: row) is True) is wanted, (row, found)


def test_list_that_no_row_can_match_leaves_nothing() -> None:
    listed = list(range(MANY))
    file = DataFile("f", "PARQUET", (), 1, 1, lower_bounds={1: encode_value(LONG, 900)})
    assert residuals(LONG, {"type": "in", "term": "x", "values": listed})[1].of(file) is NOTHING
    assert residuals(LONG, {"type": "not-in", "term": "x", "values": listed})[1].of(file) is WHOLE


def test_short_lists_stay_as_the_client_said_them() -> None:
    wire = {"type": "in", "term": "x", "values": [5, 1, 900]}
    _, left = residuals(LONG, wire)
    assert not left.needs_bounds
    file = DataFile("f", "PARQUET", (), 1, 1, lower_bounds={1: encode_value(LONG, 900)})
    assert msgspec.json.decode(left.of(file)) == wire
