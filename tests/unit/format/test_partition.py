"""Partition specs: terms, result types and the paths people see."""

from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.partition import UNPARTITIONED, PartitionField, PartitionSpec, parse_partition_by
from bergline.format.schema import Schema
from bergline.format.transforms import IDENTITY, Bucket, TimeTransform, Transform, Truncate
from bergline.format.types import (
    BINARY,
    BOOLEAN,
    DATE,
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
from bergline.format.wire import decode_json, encode_json

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "region", False, STRING),
        NestedField(3, "ts", False, TIMESTAMPTZ),
        NestedField(4, "place", False, StructType((NestedField(5, "city", False, STRING),))),
        NestedField(6, "tags", False, ListType(7, STRING, False)),
        NestedField(8, "ts_day", False, DATE),
        NestedField(9, "amount", False, DecimalType(9, 2)),
    )
)


@pytest.mark.parametrize(
    ("term", "source", "name", "transform"),
    [
        ("region", 2, "region", IDENTITY),
        ("identity(region)", 2, "region", IDENTITY),
        ("month(ts)", 3, "ts_month", TimeTransform("month")),
        ("HOURS( ts )", 3, "ts_hour", TimeTransform("hour")),
        ("bucket(16, id)", 1, "id_bucket", Bucket(16)),
        ("bucket(id, 16)", 1, "id_bucket", Bucket(16)),
        ("truncate(4, region)", 2, "region_trunc", Truncate(4)),
        ("place.city", 5, "place.city", IDENTITY),
        ("`region`", 2, "region", IDENTITY),
    ],
)
def test_term_becomes_a_field(term: str, source: int, name: str, transform: Transform) -> None:
    assert parse_partition_by([term], SCHEMA).fields == (PartitionField(source, 1000, name, transform),)


def test_fields_are_numbered_from_1000() -> None:
    spec = parse_partition_by(["region", "bucket(4, id)"], SCHEMA)
    assert [f.field_id for f in spec.fields] == [1000, 1001]
    assert spec.highest_field_id == 1001
    assert UNPARTITIONED.highest_field_id == 999


@pytest.mark.parametrize(
    "terms",
    [
        ["day(ts)"],  # a column `ts_day` exists
        ["region", "region"],
        ["bucket(0, id)"],
        ["bucket(id)"],
        ["zorder(id)"],
        ["hour(region)"],
        ["tags"],
        ["day("],
        [""],
        ["void(id)"],
    ],
)
def test_term_that_cannot_be_is_refused(terms: list[str]) -> None:
    with pytest.raises(InvalidInputError):
        parse_partition_by(terms, SCHEMA)


def test_unknown_column_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="`regio`"):
        parse_partition_by(["regio"], SCHEMA)


def test_partition_type_takes_ids_and_names_of_the_fields() -> None:
    struct = parse_partition_by(["bucket(4, id)", "amount"], SCHEMA).partition_type(SCHEMA)
    assert struct.fields == (
        NestedField(1000, "id_bucket", False, INT),
        NestedField(1001, "amount", False, DecimalType(9, 2)),
    )


def test_dropped_source_column_is_named() -> None:
    spec = PartitionSpec(0, (PartitionField(99, 1000, "gone", IDENTITY),))
    with pytest.raises(InvalidInputError, match="id 99 for partition field `gone`"):
        spec.partition_type(SCHEMA)


@pytest.mark.parametrize(
    ("type_", "transform", "value", "expected"),
    [
        (STRING, IDENTITY, None, "null"),
        (STRING, IDENTITY, "a/b=c d", "a%2Fb%3Dc+d"),
        (STRING, IDENTITY, "zürich", "z%C3%BCrich"),
        (LONG, IDENTITY, -7, "-7"),
        (BOOLEAN, IDENTITY, True, "true"),
        (DecimalType(9, 2), IDENTITY, Decimal("1.50"), "1.50"),
        (BINARY, IDENTITY, b"\x00\xff", "00ff"),
        (DATE, IDENTITY, 17486, "2017-11-16"),
        (TIMESTAMP, IDENTITY, 0, "1970-01-01T00%3A00%3A00"),
        (TIMESTAMPTZ, IDENTITY, 1, "1970-01-01T00%3A00%3A00.000001%2B00%3A00"),
        (TIMESTAMP, TimeTransform("year"), 47, "2017"),
        (TIMESTAMP, TimeTransform("month"), 574, "2017-11"),
        (TIMESTAMP, TimeTransform("month"), -1, "1969-12"),
        (TIMESTAMP, TimeTransform("day"), 17486, "2017-11-16"),
        (TIMESTAMP, TimeTransform("hour"), 419686, "2017-11-16-22"),
        (TIMESTAMP, TimeTransform("hour"), -1, "1969-12-31-23"),
    ],
)
def test_path_shows_values_as_people_read_them(
    type_: IcebergType, transform: Transform, value: Any, expected: str
) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    spec = PartitionSpec(0, (PartitionField(1, 1000, "p q", transform),))
    assert spec.partition_path(schema, (value,)) == f"p+q={expected}"


def test_spec_survives_its_json_with_an_unknown_transform() -> None:
    data = b'{"spec-id":3,"fields":[{"source-id":1,"field-id":1000,"name":"z","transform":"zorder[2]"}]}'
    assert encode_json(decode_json(data, PartitionSpec, "x")) == data
