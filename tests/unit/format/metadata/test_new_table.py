"""The metadata that a table begins with."""

from typing import Any

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.invariants import check_invariants
from bergline.format.metadata.new_table import blank_metadata, new_metadata
from bergline.format.partition.spec import UNPARTITIONED, parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, TIMESTAMP_NS, NestedField, StructType

NANOS = Schema((NestedField(1, "t", False, TIMESTAMP_NS), NestedField(2, "s", False, STRING)))
PLAIN: dict[str, Any] = {"spec": UNPARTITIONED, "location": "x", "properties": {}, "table_uuid": "u", "now_ms": 5}


def test_new_table_has_fresh_ids_in_schema_and_spec() -> None:
    schema = Schema(
        fields=(
            NestedField(50, "place", False, StructType((NestedField(60, "city", False, STRING),))),
            NestedField(70, "id", True, LONG),
        )
    )
    metadata = new_metadata(
        schema=schema,
        spec=parse_partition_by(["place.city", "bucket(4, id)"], schema),
        location="memory:/t/",
        properties={"a": "b"},
        table_uuid="u",
        now_ms=5,
    )
    assert [f.source_id for f in metadata.spec.fields] == [3, 2]
    assert (metadata.last_column_id, metadata.last_partition_id) == (3, 1001)
    assert (metadata.location, metadata.refs, metadata.current_snapshot) == ("memory:/t", {}, None)
    assert check_invariants(metadata) is metadata


def test_types_of_v3_need_a_v3_table() -> None:
    assert new_metadata(schema=NANOS, **PLAIN, format_version=3).format_version == 3
    for version in (1, 2):
        with pytest.raises(InvalidInputError, match=f"types of format version {version}, found `timestamp_ns`"):
            new_metadata(schema=NANOS, **PLAIN, format_version=version)


@pytest.mark.parametrize("version", [0, 4])
def test_other_versions_are_not_supported(version: int) -> None:
    with pytest.raises(UnsupportedError, match=f"found {version}"):
        new_metadata(schema=NANOS, **PLAIN, format_version=version)
    with pytest.raises(UnsupportedError, match=f"found {version}"):
        blank_metadata(version, 5)
