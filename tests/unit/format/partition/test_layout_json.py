"""Schemas, specs and orders in files: Java's order of keys, ids where there are none."""

import json

import pytest

from bergline.errors import InvalidInputError
from bergline.format.encoding.wire import encode_json
from bergline.format.partition.layout_json import (
    render_order,
    render_schema,
    render_spec,
    with_field_ids,
    with_schema_ids,
)
from bergline.format.partition.sort_order import SortField, SortOrder
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, Bucket, UnknownTransform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField

COLUMN = NestedField(1, "id", True, LONG)


def test_schema_has_its_fields_last() -> None:
    written = json.loads(encode_json(render_schema(Schema((COLUMN,), 3, (1,)))))
    assert list(written) == ["type", "schema-id", "identifier-field-ids", "fields"]
    assert list(render_schema(Schema((COLUMN,), 3))) == ["type", "schema-id", "fields"]


def test_spec_and_order_are_written_as_java_does() -> None:
    spec = PartitionSpec(2, (PartitionField(1, 1000, "b", Bucket(4)),))
    assert encode_json(render_spec(spec)) == (
        b'{"spec-id":2,"fields":[{"name":"b","transform":"bucket[4]","source-id":1,"field-id":1000}]}'
    )
    order = SortOrder(2, (SortField(1, IDENTITY, "desc", "nulls-last"),))
    assert encode_json(render_order(order)) == (
        b'{"order-id":2,"fields":[{"transform":"identity","source-id":1,"direction":"desc","null-order":"nulls-last"}]}'
    )


def test_transforms_of_several_columns_name_them_all() -> None:
    field = PartitionField(field_id=1000, name="z", transform=UnknownTransform("zorder"), source_ids=(1, 2))
    written = json.loads(encode_json(render_spec(PartitionSpec(0, (field,)))))
    assert written["fields"] == [{"name": "z", "transform": "zorder", "source-ids": [1, 2], "field-id": 1000}]


def test_fields_without_ids_count_from_1000() -> None:
    fields = tuple(PartitionField(1, name=name, transform=IDENTITY) for name in "ab")
    assert [f.field_id for f in with_field_ids(PartitionSpec(0, fields)).fields] == [1000, 1001]
    given = PartitionSpec(0, (PartitionField(1, 1007, "a", IDENTITY),))
    assert with_field_ids(given) is given
    with pytest.raises(InvalidInputError, match="found 1 of 2 without one"):
        with_field_ids(PartitionSpec(0, (*given.fields, fields[1])))


def test_schema_without_id_is_0() -> None:
    assert [s.schema_id for s in with_schema_ids([Schema((COLUMN,)), Schema((COLUMN,), 4)])] == [0, 4]
