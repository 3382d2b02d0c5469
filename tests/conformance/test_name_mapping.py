"""Name mappings are what Java makes, reads, and changes with the schema."""

import json
from pathlib import Path
from typing import Any

import pytest

from bergline.errors import FormatError
from bergline.format.encoding.wire import encode_json
from bergline.format.evolution.columns import add_column, drop_column, rename_column
from bergline.format.schema.name_mapping import (
    create_name_mapping,
    parse_name_mapping,
    render_name_mapping,
    update_name_mapping,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, STRING, VARIANT, ListType, MapType, NestedField, StructType
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official

POINT = StructType((NestedField(5, "x", False, INT), NestedField(6, "y", False, INT)))
SPOTS = ListType(9, StructType((NestedField(10, "z", False, INT),)), False)
SCHEMA = Schema(
    (
        NestedField(1, "id", True, INT),
        NestedField(2, "point", False, POINT),
        NestedField(3, "by name", False, MapType(7, STRING, 8, SPOTS, False)),
        NestedField(4, "v", False, VARIANT),
    ),
    schema_id=0,
)


def comparable(text: str) -> Any:
    """The mapping with names in one order: Java keeps them in none."""
    return [_sorted(f) for f in json.loads(text)]


def _sorted(field: dict[str, Any]) -> dict[str, Any]:
    inner = {"fields": [_sorted(f) for f in field["fields"]]} if "fields" in field else {}
    return {"field-id": field["field-id"], "names": sorted(field["names"]), **inner}


def test_mapping_of_a_schema_is_javas(official_runtime: OfficialRuntime) -> None:
    code = """
schema = jvm.org.apache.iceberg.SchemaParser.fromJson(text)
mapping = jvm.org.apache.iceberg.mapping.MappingUtil.create(schema)
result = jvm.org.apache.iceberg.mapping.NameMappingParser.toJson(mapping)
"""
    expected = official_runtime.python(code, text=encode_json(SCHEMA).decode())
    assert json.loads(render_name_mapping(create_name_mapping(SCHEMA))) == json.loads(expected)
    assert parse_name_mapping(expected) == create_name_mapping(SCHEMA)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("[]", True),
        ('[{"field-id": 1, "names": ["a", "b"], "fields": [{"field-id": 2, "names": ["c"]}]}]', True),
        ('[{"field-id": 1}]', True),
        ('[{"field-id": 1, "names": ["a", "a"]}]', True),
        ('[{"names": ["a"]}]', True),
        ('[{"field-id": 1, "names": ["a"], "more": 5}]', True),
        ("{}", False),
        ("[5]", False),
        ('[{"field-id": "1", "names": []}]', False),
        ('[{"field-id": 1, "names": "a"}]', False),
        ('[{"field-id": 1, "names": [5]}]', False),
        ('[{"field-id": 1, "names": ["a"]}, {"field-id": 1, "names": ["b"]}]', False),
        ('[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]', False),
        ('[{"field-id": 1, "names": ["a"], "fields": 5}]', False),
        ("[", False),
    ],
)
def test_mappings_that_java_refuses_are_refused(official_runtime: OfficialRuntime, text: str, accepted: bool) -> None:
    code = """
try:
    jvm.org.apache.iceberg.mapping.NameMappingParser.fromJson(text)
    result = True
except Exception:
    result = False
"""
    assert official_runtime.python(code, text=text) is accepted
    if accepted:
        assert parse_name_mapping(text)
    else:
        with pytest.raises(FormatError):
            parse_name_mapping(text)


def test_mapping_follows_the_schema_as_in_java(official_runtime: OfficialRuntime, tmp_path: Path) -> None:
    code = """
parser = jvm.org.apache.iceberg.SchemaParser
names = "schema.name-mapping.default"
properties = jvm.java.util.HashMap()
properties.put("format-version", "3")
properties.put(names, mapping)
tables = jvm.org.apache.iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration())
spec = jvm.org.apache.iceberg.PartitionSpec.unpartitioned()
table = tables.create(parser.fromJson(text), spec, properties, location)
number = jvm.org.apache.iceberg.types.Types.IntegerType.get()
steps = [
    lambda u: u.renameColumn("id", "key"),
    lambda u: u.addColumn("id", number),
    lambda u: u.renameColumn("point.x", "east"),
    lambda u: u.addColumn("point", "x", number),
    lambda u: u.addColumn("by name.value", "w", number),
    lambda u: u.deleteColumn("point.y"),
    lambda u: u.renameColumn("by name", "names"),
]
result = [[parser.toJson(table.schema()), table.properties().get(names)]]
for step in steps:
    update = table.updateSchema()
    step(update)
    update.commit()
    result.append([parser.toJson(table.schema()), table.properties().get(names)])
"""
    mapping = create_name_mapping(SCHEMA)
    answers = official_runtime.python(
        code, text=encode_json(SCHEMA).decode(), mapping=render_name_mapping(mapping), location=str(tmp_path / "t")
    )
    schemas = [SCHEMA]
    last = SCHEMA.highest_id
    for change in (
        lambda s: rename_column(s, "id", "key"),
        lambda s: add_column(s, ("id",), INT, last)[0],
        lambda s: rename_column(s, "point.x", "east"),
        lambda s: add_column(s, ("point", "x"), INT, last + 1)[0],
        lambda s: add_column(s, ("by name", "value", "w"), INT, last + 2)[0],
        lambda s: drop_column(s, "point.y"),
        lambda s: rename_column(s, "by name", "names"),
    ):
        schemas.append(change(schemas[-1]))
        mapping = update_name_mapping(mapping, schemas[-2], schemas[-1])
        java_schema, java_mapping = answers[len(schemas) - 1]
        assert json.loads(java_schema)["fields"] == json.loads(encode_json(schemas[-1]))["fields"]
        assert comparable(render_name_mapping(mapping)) == comparable(java_mapping)
