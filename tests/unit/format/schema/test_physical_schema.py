"""Physical schemas in the headers of manifests, their numbers in a process, and their ids by a name mapping."""

import pytest

from bergline.format.manifest.avro import parse_manifest, render_manifest, render_manifests
from bergline.format.manifest.manifest import DataFile, EntryStatus, FileContent, ManifestContent, ManifestEntry
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.name_mapping import parse_name_mapping
from bergline.format.schema.physical_schema import (
    NO_ID,
    _Numbered,
    number_of,
    parse_physical_schemas,
    physical_schema,
    render_physical_schemas,
    schema_of,
    with_mapped_ids,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, ListType, MapType, NestedField, StructType

A, B = NestedField(1, "a", False, INT), NestedField(2, "b", False, STRING)
FIRST, SECOND = StructType((A, B)), StructType((B,))


def entry(number: int, schema: StructType | None, content: FileContent = FileContent.DATA) -> ManifestEntry:
    file = DataFile(f"memory://{number}.parquet", "PARQUET", (), 1, 1, content=content, physical_schema=schema)
    return ManifestEntry(EntryStatus.ADDED, file)


def read_back(data: bytes) -> list[StructType | None]:
    entries = parse_manifest(data, UNPARTITIONED, Schema(fields=(A, B)), "m.avro")
    return [e.data_file.physical_schema for e in entries]


@pytest.mark.parametrize(
    "schemas",
    [
        [],
        [None, None],
        [FIRST],
        [FIRST] * 5,
        [FIRST, None, FIRST, SECOND, SECOND, None],
        [StructType((A, B)), StructType((A, B))],  # equal, and not the same object
    ],
)
def test_manifests_say_what_their_files_store(schemas: list[StructType | None]) -> None:
    entries = [entry(n, schema) for n, schema in enumerate(schemas)]
    assert read_back(render_manifest(entries, Schema(fields=(A, B)), UNPARTITIONED)) == schemas


def test_each_of_several_manifests_says_it_of_its_own_files() -> None:
    schemas = [FIRST if n < 3000 else SECOND for n in range(6000)]
    rendered = render_manifests(
        [entry(n, schema) for n, schema in enumerate(schemas)],
        Schema(fields=(A, B)),
        UNPARTITIONED,
        format_version=2,
        content=ManifestContent.DATA,
        target_size=1,
    )
    manifests = [read_back(data) for data, _ in rendered]
    assert len(manifests) > 2
    assert [schema for found in manifests for schema in found] == schemas


def test_of_delete_files_nothing_is_said() -> None:
    deletes = [entry(0, FIRST, FileContent.POSITION_DELETES)]
    data = render_manifest(deletes, Schema(fields=(A,)), UNPARTITIONED, content=ManifestContent.DELETES)
    assert b"bergline." not in data


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schemas", b"{"),
        ("schemas", b'[[{"id": 1, "name": "a", "required": false, "type": "no type"}]]'),
        ("schemas", b"\xff"),
        ("schemas", b"[]"),
        ("schema-runs", b"[[0, 2]]"),
        ("schema-runs", b"[[1, 3]]"),
        ("schema-runs", b"[[-2, 3]]"),
        ("schema-runs", b"[[0, -1], [0, 4]]"),
        ("schema-runs", b"[[0, 3], [0, 0]]"),
        ("schema-runs", b"null"),
    ],
)
def test_a_header_that_cannot_be_understood_says_nothing(key: str, value: bytes) -> None:
    header = {name: text.encode() for name, text in render_physical_schemas([FIRST] * 3).items()}
    assert parse_physical_schemas(header, 3) == [(number_of(FIRST), 3)]
    assert parse_physical_schemas({**header, f"bergline.physical-{key}": value}, 3) == [(None, 3)]


def test_files_store_neither_comments_nor_defaults() -> None:
    field = NestedField(1, "a", True, INT, "a comment", 5, 6)
    nested = NestedField(2, "l", True, ListType(3, StructType((field,)), True))
    (found,) = physical_schema([nested]).fields
    assert found == NestedField(2, "l", False, ListType(3, StructType((NestedField(1, "a", False, INT),)), False))


def test_numbers_are_never_given_twice() -> None:
    numbered = _Numbered(2)
    schemas = [StructType((NestedField(n, "a", False, INT),)) for n in range(3)]
    numbers = [numbered.number_of(schema) for schema in schemas]
    assert numbered.schema_of(numbers[0]) is None
    assert [numbered.schema_of(n) for n in numbers[1:]] == schemas[1:]
    assert numbered.number_of(schemas[0]) not in numbers
    assert numbered.number_of(schemas[2]) == numbers[2]
    assert schema_of(None) is None


def test_a_name_mapping_counts_where_a_file_has_no_ids_at_any_level() -> None:
    mapping = parse_name_mapping(
        """[{"field-id": 1, "names": ["x", "y"]}, {"names": ["z"]}, {"field-id": 5, "names": ["l"], "fields": [
        {"field-id": 6, "names": ["element"], "fields": [{"field-id": 7, "names": ["q"]}]}]},
        {"field-id": 8, "names": ["m"], "fields": [{"field-id": 9, "names": ["key"]}]}]"""
    )
    without = [
        NestedField(NO_ID, "y", False, INT),
        NestedField(NO_ID, "z", False, INT),
        NestedField(NO_ID, "other", False, INT),
        NestedField(NO_ID, "l", False, ListType(NO_ID, StructType((NestedField(NO_ID, "q", False, INT),)), False)),
        NestedField(NO_ID, "m", False, MapType(NO_ID, STRING, NO_ID, LONG, False)),
    ]
    found = with_mapped_ids(StructType(tuple(without)), mapping)
    assert found is not None
    assert [f.id for f in found.fields] == [1, NO_ID, NO_ID, 5, 8]
    assert found.fields[3].type == ListType(6, StructType((NestedField(7, "q", False, INT),)), False)
    assert found.fields[4].type == MapType(9, STRING, NO_ID, LONG, False)
    assert with_mapped_ids(StructType(tuple(without)), None) is None
    some = StructType((*without, NestedField(2, "own", False, INT)))
    assert with_mapped_ids(some, mapping) is some
