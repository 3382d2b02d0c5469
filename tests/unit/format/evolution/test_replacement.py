"""Tables that begin again: which ids columns and partition fields have."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.evolution.replacement import replacement_updates
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, IcebergType, ListType, NestedField, StructType


def column(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(id=field_id, name=name, type=type_, required=False)


def schema(*fields: NestedField) -> Schema:
    return Schema(fields=fields)


OLD = schema(
    column(1, "id", INT),
    column(2, "name", STRING),
    column(3, "place", StructType((column(4, "city", STRING), column(5, "zip", INT)))),
    column(6, "tags", ListType(7, STRING, False)),
)


def table(version: int = 2, partition_by: tuple[str, ...] = ("name",)) -> TableMetadata:
    return new_metadata(
        schema=OLD,
        spec=parse_partition_by(partition_by, OLD),
        location="s3://b/t",
        properties={"a": "1", "b": "1"},
        table_uuid="u",
        now_ms=1,
        format_version=version,
    )


def replaced(base: TableMetadata, new: Schema, *terms: str, **properties: str) -> TableMetadata:
    updates = replacement_updates(
        base, schema=new, spec=parse_partition_by(terms, new), location=base.location, properties=properties
    )
    return apply_updates(base, updates, base_location=None, now_ms=2)


def test_columns_keep_the_ids_of_those_that_had_their_names_and_could_become_them() -> None:
    new = schema(
        column(1, "tags", ListType(2, STRING, False)),
        column(3, "name", INT),
        column(4, "more", STRING),
        column(5, "id", LONG),
        column(6, "place", StructType((column(7, "zip", STRING), column(8, "city", STRING)))),
    )
    after = replaced(table(), new)
    assert {name: f.id for name, f in after.schema.names.items()} == {
        "tags": 4,
        "tags.element": 7,
        "name": 8,
        "more": 9,
        "id": 1,
        "place": 3,
        "place.zip": 10,
        "place.city": 5,
    }
    assert after.last_column_id == 10
    assert (after.current_schema_id, len(after.schemas)) == (1, 2)


def test_partition_fields_that_were_there_keep_their_ids() -> None:
    after = replaced(table(), OLD, "bucket(4, id)", "name")
    assert [(f.name, f.field_id) for f in after.spec.fields] == [("id_bucket", 1001), ("name", 1000)]
    assert (after.spec.spec_id, after.last_partition_id) == (1, 1001)
    assert replaced(after, OLD, "name").default_spec_id == 0


def test_properties_that_are_named_are_set_and_others_stay() -> None:
    after = replaced(table(), OLD, b="2", c="3", **{"format-version": "3"})
    assert after.properties == {"a": "1", "b": "2", "c": "3"}
    assert after.format_version == 3


def test_format_version_never_goes_down() -> None:
    with pytest.raises(InvalidInputError, match="never goes down"):
        replaced(table(), OLD, **{"format-version": "1"})


def test_partitioned_table_of_version_1_keeps_its_partition_fields_or_is_upgraded() -> None:
    base = table(version=1)
    assert replaced(base, OLD, "name").spec == base.spec
    with pytest.raises(UnsupportedError, match="the same partition fields"):
        replaced(base, OLD, "id")
    assert replaced(base, OLD, "id", **{"format-version": "2"}).spec.fields[0].field_id == 1001
    assert replaced(table(version=1, partition_by=()), OLD, "id").spec.fields[0].field_id == 1000
