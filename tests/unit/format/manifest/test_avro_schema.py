"""The Avro schemas of manifests and manifest lists."""

from typing import Any

import fastavro
import pytest

from bergline.errors import UnsupportedError
from bergline.format.manifest.avro_schema import avro_name, avro_type, manifest_list_schema, manifest_schema
from bergline.format.types.types import (
    INT,
    PRIMITIVES,
    STRING,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)


def struct(*types: IcebergType) -> StructType:
    return StructType(tuple(NestedField(1000 + n, f"p{n}", False, t) for n, t in enumerate(types)))


def ids(schema: dict[str, Any]) -> dict[str, int]:
    return {f["name"]: f["field-id"] for f in schema["fields"]}


def test_manifest_entry_has_the_ids_of_the_specification() -> None:
    schema = manifest_schema(struct())
    assert ids(schema) == {
        "status": 0,
        "snapshot_id": 1,
        "sequence_number": 3,
        "file_sequence_number": 4,
        "data_file": 2,
    }
    data_file = next(f["type"] for f in schema["fields"] if f["name"] == "data_file")
    assert ids(data_file) == {
        "content": 134,
        "file_path": 100,
        "file_format": 101,
        "partition": 102,
        "record_count": 103,
        "file_size_in_bytes": 104,
        "column_sizes": 108,
        "value_counts": 109,
        "null_value_counts": 110,
        "nan_value_counts": 137,
        "lower_bounds": 125,
        "upper_bounds": 128,
        "key_metadata": 131,
        "split_offsets": 132,
        "equality_ids": 135,
        "sort_order_id": 140,
        "referenced_data_file": 143,
    }


def test_manifest_list_has_the_ids_and_order_of_java() -> None:
    assert list(ids(manifest_list_schema()).values()) == [
        *(500, 501, 502, 517, 515, 516, 503),
        *(504, 505, 506, 512, 513, 514, 507, 519),
    ]


@pytest.mark.parametrize(
    "type_",
    [*(t for t in PRIMITIVES.values() if t not in (UNKNOWN, VARIANT)), DecimalType(38, 2), FixedType(5)],
    ids=str,
)
def test_two_partition_fields_may_have_the_same_type(type_: IcebergType) -> None:
    assert fastavro.parse_schema(manifest_schema(struct(type_, type_)))["name"] == "manifest_entry"


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (18, 8), (38, 16)])
def test_decimals_are_fixed_of_the_least_size(precision: int, size: int) -> None:
    avro = avro_type(DecimalType(precision, 1), 7)
    assert (avro["type"], avro["size"], avro["precision"], avro["scale"]) == ("fixed", size, precision, 1)


def test_uuid_is_fixed_of_sixteen_bytes() -> None:
    assert avro_type(UUID, 7)["size"] == 16


def test_nested_partition_type_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="primitive partition type, found `list<int>`"):
        avro_type(ListType(1, INT, False), 7)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain_1", "plain_1"),
        ("a b", "a_x20b"),
        ("1st", "_1st"),
        ("é", "_xE9"),
        ("٣", "_x663"),
        ("a.b", "a_x2Eb"),
        ("-", "_x2D"),
    ],
)
def test_names_are_made_fit_for_avro(name: str, expected: str) -> None:
    assert avro_name(name) == expected
    fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": avro_name(name), "type": "int"}]})


def test_changed_partition_name_is_kept_beside() -> None:
    partition = StructType((NestedField(1000, "a b", False, STRING),))
    data_file = next(f["type"] for f in manifest_schema(partition)["fields"] if f["name"] == "data_file")
    field = next(f["type"] for f in data_file["fields"] if f["name"] == "partition")["fields"][0]
    assert (field["name"], field["iceberg-field-name"], field["field-id"]) == ("a_x20b", "a b", 1000)


def test_partition_field_of_unknown_type_is_null_alone() -> None:
    partition = StructType((NestedField(1000, "gone", False, UNKNOWN),))
    data_file = next(f["type"] for f in manifest_schema(partition)["fields"] if f["name"] == "data_file")
    field = next(f["type"] for f in data_file["fields"] if f["name"] == "partition")["fields"][0]
    assert field == {"name": "gone", "type": "null", "default": None, "field-id": 1000}
