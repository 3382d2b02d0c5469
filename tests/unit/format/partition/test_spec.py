"""Partition specs: terms, result types and the paths people see."""

import pytest

from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.partition.spec import UNNUMBERED, UNPARTITIONED, PartitionField, PartitionSpec, parse_partition_by
from bergline.format.partition.transforms import (
    IDENTITY,
    VOID,
    Bucket,
    TimeTransform,
    Transform,
    Truncate,
    UnknownTransform,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    DecimalType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)

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


@pytest.mark.parametrize(
    ("transform", "type_"),
    [
        (IDENTITY, UNKNOWN),
        (VOID, UNKNOWN),
        (Truncate(3), UNKNOWN),
        (Bucket(3), INT),
        (TimeTransform("day"), DATE),
        (TimeTransform("hour"), INT),
        (UnknownTransform("zorder"), STRING),
    ],
)
def test_type_of_a_dropped_source_column_is_known_where_the_transform_says_it(
    transform: Transform, type_: IcebergType
) -> None:
    spec = PartitionSpec(0, (PartitionField(99, 1000, "gone", transform),))
    assert spec.partition_type(SCHEMA).fields == (NestedField(1000, "gone", False, type_),)


@pytest.mark.parametrize("terms", [["day(t)", "hour(t)"], ["year(t)", "month(t)"]])
def test_one_unit_of_time_is_enough_for_a_column(terms: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="expected one unit of time"):
        parse_partition_by(terms, Schema((NestedField(1, "t", False, TIMESTAMP),)))


def test_columns_inside_lists_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="outside lists and maps"):
        parse_partition_by(["tags.element"], SCHEMA)


def test_spec_of_removed_fields_only_is_unpartitioned() -> None:
    assert PartitionSpec(1, (PartitionField(1, 1000, "id", VOID),)).is_unpartitioned
    assert not PartitionSpec(1, (PartitionField(1, 1000, "id", IDENTITY),)).is_unpartitioned


def test_path_joins_names_and_values() -> None:
    spec = parse_partition_by(["region", "bucket(4, id)"], SCHEMA)
    assert spec.partition_path(SCHEMA, ("a b", None)) == "region=a+b/id_bucket=null"


def test_spec_survives_its_json_with_an_unknown_transform() -> None:
    data = b'{"spec-id":3,"fields":[{"source-id":1,"field-id":1000,"name":"z","transform":"zorder[2]"}]}'
    assert encode_json(decode_json(data, PartitionSpec, "x")) == data


def test_transform_of_several_columns_survives_its_json() -> None:
    data = b'{"spec-id":3,"fields":[{"field-id":1000,"name":"z","transform":"zorder","source-ids":[1,2]}]}'
    spec = decode_json(data, PartitionSpec, "x")
    assert encode_json(spec) == data
    assert spec.fields[0].source_ids == (1, 2)
    assert spec.partition_type(SCHEMA).fields[0].type == STRING


def test_one_column_in_a_list_is_a_column() -> None:
    data = b'{"spec-id":3,"fields":[{"field-id":1000,"name":"r","transform":"identity","source-ids":[2]}]}'
    assert decode_json(data, PartitionSpec, "x").fields == (PartitionField(2, 1000, "r", IDENTITY),)


def test_field_of_an_old_table_has_no_id_yet() -> None:
    field = decode_json(b'{"name":"r","transform":"identity","source-id":2}', PartitionField, "x")
    assert field == PartitionField(2, UNNUMBERED, "r", IDENTITY)


@pytest.mark.parametrize(
    "data",
    [
        b'{"name":"r","transform":"identity"}',
        b'{"name":"r","transform":"identity","source-ids":[]}',
        b'{"transform":"identity","source-id":2}',
        b'{"name":"r","source-id":2}',
        b'{"name":"r","transform":5,"source-id":2}',
        b'{"name":"r","transform":"bucket[0]","source-id":2}',
    ],
)
def test_field_that_lacks_something_is_a_format_error(data: bytes) -> None:
    with pytest.raises(FormatError, match="in x"):
        decode_json(data, PartitionField, "x")
