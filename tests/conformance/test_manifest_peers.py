"""Manifests and manifest lists next to Java's own readers and writers and PyIceberg, both ways, every version."""

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyiceberg import partitioning as pyiceberg_partitioning
from pyiceberg import schema as pyiceberg_schema
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile as PyIcebergFile
from pyiceberg.manifest import (
    DataFileContent,
    ManifestEntryStatus,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.manifest import ManifestEntry as PyIcebergEntry
from pyiceberg.typedef import Record, TableVersion

from bergline import Lake
from bergline.format.encoding.avro_container import read_container
from bergline.format.encoding.wire import encode_json
from bergline.format.manifest.avro import parse_manifest, parse_manifest_list, render_manifest, render_manifest_list
from bergline.format.manifest.inheritance import assign_numbers, assign_row_ids, inherit
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.manifest.summary import describe_manifest, summarize_partitions
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.io.schemes import SchemeFileIO
from support.fixtures.every_partition import any_file, every_partition, partition_values, vector_file
from support.java.java_manifests import JAVA, entry_json, manifest_json, read_table
from support.servers.peers import OfficialRuntime

official_only = pytest.mark.official
VERSIONS = (1, 2, 3)
# beyond 32 bits, so that py4j passes them as what Java expects
SNAPSHOT, PARENT, OLDER, FIRST_ROW_ID = 2**62 + 1, 2**61, 2**60, 2**40
NUMBER = 9
DATA, DELETES = ManifestContent.DATA, ManifestContent.DELETES


def some_entries(version: int, content: ManifestContent, seed: int) -> list[ManifestEntry]:
    """Entries of every status and kind that a version has, in partitions with all edges of all types."""
    schema, spec = every_partition(version)
    chance = random.Random(seed)  # noqa: S311  (the same files in every run)
    entries = []
    for number in range(12):
        partition = partition_values(spec, schema, number)
        path = f"file:/lake/{content.name}/{seed}/{number}.parquet"
        if content is DATA:
            file = any_file(path, partition, FileContent.DATA, chance)
        elif version > 2 and number % 2:
            file = vector_file(path, partition, number)
        else:
            kind = (FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)[number // 2 % 2]
            file = any_file(path, partition, kind, chance)
        file = msgspec.structs.replace(file, spec_id=spec.spec_id)
        entries.append(entry(version, EntryStatus(number % 3), file, number))
    return entries


def entry(version: int, status: EntryStatus, file: Any, number: int) -> ManifestEntry:
    if version == 1:
        return ManifestEntry(status, file, OLDER if status is EntryStatus.EXISTING else SNAPSHOT)
    if status is EntryStatus.ADDED:
        # compaction pins an older number
        return ManifestEntry(status, file, None if number % 2 else SNAPSHOT, 2 if number == 4 else None)
    if version > 2 and file.content is FileContent.DATA and number % 4:
        file = msgspec.structs.replace(file, first_row_id=1000 * number)
    snapshot_id = OLDER if status is EntryStatus.EXISTING else SNAPSHOT
    return ManifestEntry(status, file, snapshot_id, 3 + number % 3, 4 + number % 3)


def contents(version: int) -> tuple[ManifestContent, ...]:
    return (DATA,) if version == 1 else (DATA, DELETES)


def numbered(manifests: Sequence[ManifestFile], version: int) -> tuple[list[ManifestFile], int | None]:
    """The rows of a manifest list, and the next row id."""
    assigned = assign_numbers(manifests, SNAPSHOT, 0 if version == 1 else NUMBER)
    if version < 3:
        return assigned, None
    assigned, taken = assign_row_ids(assigned, FIRST_ROW_ID)
    return assigned, FIRST_ROW_ID + taken


def write_ours(
    version: int, directory: Path, unfit: Callable[[Any], bool]
) -> tuple[str, list[ManifestFile], list[list[ManifestEntry]]]:
    """A list of ours with two manifests of each content."""
    schema, spec = every_partition(version)
    manifests, entries = [], []
    for seed, content in enumerate(contents(version) * 2):
        path = directory / f"m{seed}.avro"
        entries.append(without(some_entries(version, content, seed), unfit))
        path.write_bytes(render_manifest(entries[-1], schema, spec, format_version=version, content=content))
        manifests.append(
            describe_manifest(
                f"file://{path}",
                path.stat().st_size,
                entries[-1],
                spec=spec,
                schema=schema,
                content=content,
                snapshot_id=SNAPSHOT,
            )
        )
    rows, _ = numbered(manifests, version)
    location = directory / "list.avro"
    location.write_bytes(
        render_manifest_list(
            rows,
            SNAPSHOT,
            PARENT,
            0 if version == 1 else NUMBER,
            format_version=version,
            first_row_id=FIRST_ROW_ID if version > 2 else None,
        )
    )
    return f"file://{location}", rows, entries


def names_of(schema: Schema, spec: PartitionSpec) -> dict[str, Any]:
    return {"schema": encode_json(schema).decode(), "specs": [encode_json(spec).decode()]}


def is_fixed(value: Any) -> bool:
    """Java reads fixed values with a length before them, against its own schema (apache/iceberg#17501)."""
    return isinstance(value, bytes) and len(value) == 5


def is_not_json(value: Any) -> bool:
    """Java's JSON parser, by which the values go to its writer, takes no NaN and no infinity."""
    return isinstance(value, float) and not math.isfinite(value)


def without(entries: list[ManifestEntry], unfit: Callable[[Any], bool]) -> list[ManifestEntry]:
    """Entries with nulls in place of partition values that do not fit."""

    def fit(file: DataFile) -> DataFile:
        return msgspec.structs.replace(file, partition=tuple(None if unfit(v) else v for v in file.partition))

    return [msgspec.structs.replace(e, data_file=fit(e.data_file)) for e in entries]


@official_only
@pytest.mark.parametrize("version", VERSIONS)
def test_java_reads_every_field_of_our_entries_and_lists(
    official_runtime: OfficialRuntime, tmp_path: Path, version: int
) -> None:
    schema, spec = every_partition(version)
    location, manifests, entries = write_ours(version, tmp_path, is_fixed)
    code = JAVA + "result = read_all(path, parse_specs(schema, specs))"
    theirs = official_runtime.python(code, path=location, **names_of(schema, spec))
    struct = spec.partition_type(schema)
    assert [m["manifest"] for m in theirs] == [manifest_json(m) for m in manifests]
    for found, manifest, written in zip(theirs, manifests, entries, strict=True):
        assert found["entries"] == [entry_json(e, struct) for e in inherit(written, manifest)]


@official_only
@pytest.mark.parametrize("version", VERSIONS)
def test_we_read_every_field_of_what_java_writes(
    official_runtime: OfficialRuntime, tmp_path: Path, version: int
) -> None:
    schema, spec = every_partition(version)
    struct = spec.partition_type(schema)
    location = f"file://{tmp_path}/list.avro"
    written = [
        (c, without(some_entries(version, c, seed), is_not_json)) for seed, c in enumerate(contents(version) * 2)
    ]
    code = (
        JAVA
        + """
specs = parse_specs(schema, specs)
(spec,) = specs.values()
manifests = [
    write_manifest(version, f"{directory}/m{i}.avro", entries, spec, snapshot_id, content)
    for i, (content, entries) in enumerate(written)
]
next_row_id = write_list(version, location, manifests, snapshot_id, parent, number, first_row_id)
result = {"next_row_id": next_row_id, "read": read_all(location, specs)}
"""
    )
    theirs = official_runtime.python(
        code,
        version=version,
        directory=f"file://{tmp_path}",
        location=location,
        written=[(int(c), [entry_json(e, struct) for e in entries]) for c, entries in written],
        snapshot_id=SNAPSHOT,
        parent=PARENT,
        number=0 if version == 1 else NUMBER,
        first_row_id=FIRST_ROW_ID if version > 2 else None,
        **names_of(schema, spec),
    )
    manifests = parse_manifest_list((tmp_path / "list.avro").read_bytes(), location)
    assert [manifest_json(m) for m in manifests] == [m["manifest"] for m in theirs["read"]]
    described = [
        describe_manifest(
            m.manifest_path,
            m.manifest_length,
            entries,
            spec=spec,
            schema=schema,
            content=content,
            snapshot_id=SNAPSHOT,
        )
        for m, (content, entries) in zip(manifests, written, strict=True)
    ]
    expected, next_row_id = numbered(described, version)
    assert [manifest_json(m) for m in manifests] == [manifest_json(m) for m in expected]
    assert next_row_id == theirs["next_row_id"]
    for manifest, found in zip(manifests, theirs["read"], strict=True):
        path = manifest.manifest_path
        stored = parse_manifest(SchemeFileIO().read(path), spec, schema, path)
        assert [entry_json(e, struct) for e in inherit(stored, manifest)] == found["entries"]
        assert summarize_partitions(stored, struct) == manifest.partitions


def shape(schema: Any, named: dict[str, Any]) -> Any:
    """An Avro schema without what says nothing about the bytes: names of types, texts for people."""
    match schema:
        case {"type": "record" | "fixed" | "enum", "name": name}:
            named[name] = schema
    match schema:
        case list():
            return [shape(option, named) for option in schema]
        case {"type": "record", "fields": fields}:
            return [{**f, "type": shape(f["type"], named), "doc": None} for f in fields]
        case {"items": items}:
            return {**schema, "items": shape(items, named)}
        case {"type": "fixed"}:
            return {**schema, "name": None}
        case str() if schema in named:
            return shape(named[schema], named)
    return schema


@official_only
@pytest.mark.parametrize("version", VERSIONS)
def test_headers_and_schemas_are_those_of_java(official_runtime: OfficialRuntime, tmp_path: Path, version: int) -> None:
    """Beside `schema-id`, which the specification wants, and `iceberg.schema`, which repeats the Avro schema."""
    schema, spec = every_partition(version)
    write_ours(version, tmp_path, is_fixed)
    code = (
        JAVA
        + """
(spec,) = parse_specs(schema, specs).values()
manifests = [write_manifest(version, f"{directory}/java{i}.avro", [], spec, snapshot_id, i) for i in range(kinds)]
write_list(version, f"{directory}/java-list.avro", manifests, snapshot_id, parent, number, first_row_id)
"""
    )
    official_runtime.python(
        code,
        version=version,
        directory=f"file://{tmp_path}",
        kinds=len(contents(version)),
        snapshot_id=SNAPSHOT,
        parent=PARENT,
        number=0 if version == 1 else NUMBER,
        first_row_id=FIRST_ROW_ID if version > 2 else None,
        **names_of(schema, spec),
    )
    pairs = [("list", "java-list"), *((f"m{i}", f"java{i}") for i in range(len(contents(version))))]
    for ours, theirs in pairs:
        left, right = (read_container((tmp_path / f"{n}.avro").read_bytes(), n).metadata for n in (ours, theirs))
        our_shape, their_shape = (shape(json.loads(header.pop("avro.schema")), {}) for header in (left, right))
        if version == 1 and ours != "list":
            # Java makes the snapshot id optional here too, where the specification requires it
            their_shape[1] = our_shape[1]
        assert our_shape == their_shape
        for name in ("schema", "partition-spec"):
            assert json.loads(left.pop(name, b"0")) == json.loads(right.pop(name, b"0"))
        left.pop("schema-id", None)
        right.pop("iceberg.schema", None)
        assert left == right


ADD_EQUALITY_DELETES = """
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "db.t")
spec = table.specs()[spec_id]
ids = spark.sparkContext._gateway.new_array(jvm.int, 2)
ids[0], ids[1] = 1, 3
builder = iceberg.FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(ids).withPath(path).withFormat("PARQUET")
if spec.isPartitioned():
    builder = builder.withPartitionPath(partition)
file = builder.withFileSizeInBytes(10).withRecordCount(2).withEncryptionKeyMetadata(
    jvm.java.nio.ByteBuffer.wrap(b"key")).build()
table.newRowDelta().addDeletes(file).commit()
"""


@official_only
@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_we_read_what_java_commits(
    official: Callable[[str], list[tuple[Any, ...]]], official_runtime: OfficialRuntime, lake: Lake, version: int
) -> None:
    """Every kind of commit, on two partition specs, through upgrades up to a version; all snapshots are compared."""
    official(
        "CREATE TABLE db.t (id BIGINT, amount DOUBLE, region STRING) USING iceberg "
        "PARTITIONED BY (region, bucket(4, id)) "
        "TBLPROPERTIES ('format-version' = '1', 'write.delete.mode' = 'merge-on-read')"
    )
    for current in range(1, version + 1):
        official(f"ALTER TABLE db.t SET TBLPROPERTIES ('format-version' = '{current}')")
        official(f"INSERT INTO db.t SELECT id, {current}.5, if(id % 3 = 0, null, 'é') FROM range(12)")
        official("INSERT INTO db.t VALUES (100, 0.0, 'us')")
        if current > 1:
            official(f"DELETE FROM db.t WHERE id = {current} AND amount > 1")
            official_runtime.python(
                JAVA + ADD_EQUALITY_DELETES,
                spec_id=0,
                path=f"file:/d{current}.parquet",
                partition="region=us/id_bucket=1",
            )
        official("CALL system.rewrite_manifests('db.t')")
        official(
            f"INSERT OVERWRITE db.t VALUES (7, {current}, 'eu')" if current == 1 else "DELETE FROM db.t WHERE id = 7"
        )
        official("DELETE FROM db.t WHERE region = 'us'")
    official("ALTER TABLE db.t DROP PARTITION FIELD region")
    official("INSERT INTO db.t VALUES (8, 1.0, 'x')")
    if version > 1:
        official("ALTER TABLE db.t DROP PARTITION FIELD id_bucket")
        official_runtime.python(JAVA + ADD_EQUALITY_DELETES, spec_id=2, path="file:/e.parquet", partition="")
    table = lake.load_table("db.t")
    ours = read_table(table)
    assert ours == official_runtime.python(JAVA + "result = read_table('db.t')")
    entries = [e for snapshot in ours for manifest in snapshot for e in manifest["entries"]]
    assert {e["status"] for e in entries} == {0, 1, 2}
    kinds = {(e["file"]["content"], e["file"]["file-format"]) for e in entries}
    deletes = {("position-deletes", "parquet"), ("equality-deletes", "parquet")}
    vectors = {("position-deletes", "puffin")}
    assert kinds == {("data", "parquet")} | (deletes if version > 1 else set()) | (vectors if version > 2 else set())


LIST_FIELDS = [f for f in ManifestFile.__struct_fields__ if f not in {"partitions", "first_row_id"}]
FILE_FIELDS = [
    f
    for f in DataFile.__struct_fields__
    if f
    not in {
        "partition",
        "physical_schema",
        "referenced_data_file",
        "first_row_id",
        "content_offset",
        "content_size_in_bytes",
    }
]
ENTRY_FIELDS = ["status", "snapshot_id", "sequence_number", "file_sequence_number"]


def is_not_float(value: Any) -> bool:
    """PyIceberg reads doubles in partitions as floats."""
    return isinstance(value, float) and value not in {0.0, 1.5, -2.5}


def plain_manifest(manifest: Any) -> dict[str, Any]:
    """What PyIceberg and bergline both say of a manifest."""
    summaries = [(s.contains_null, s.contains_nan, s.lower_bound, s.upper_bound) for s in manifest.partitions]
    return {f: getattr(manifest, f) for f in LIST_FIELDS} | {"partitions": summaries}


def plain_entry(found: Any) -> dict[str, Any]:
    """What PyIceberg and bergline both say of an entry."""
    file = {f: getattr(found.data_file, f) for f in FILE_FIELDS}
    lists = {f: file[f] and list(file[f]) for f in ("split_offsets", "equality_ids")}
    values = [list(found.data_file.partition)]
    return {f: getattr(found, f) for f in ENTRY_FIELDS} | file | lists | {"partition": values}


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_every_field_that_it_knows(tmp_path: Path, version: int) -> None:
    location, manifests, entries = write_ours(version, tmp_path, is_not_float)
    io = PyArrowFileIO()
    theirs = list(read_manifest_list(io.new_input(location)))
    assert [plain_manifest(m) for m in theirs] == [plain_manifest(m) for m in manifests]
    for found, manifest, written in zip(theirs, manifests, entries, strict=True):
        read = found.fetch_manifest_entry(io, discard_deleted=False)
        assert [plain_entry(e) for e in read] == [plain_entry(e) for e in inherit(written, manifest)]


def test_pyiceberg_reads_our_v3_lists(tmp_path: Path) -> None:
    location, manifests, _ = write_ours(3, tmp_path, is_not_float)
    theirs = list(read_manifest_list(PyArrowFileIO().new_input(location)))
    assert [plain_manifest(m) for m in theirs] == [plain_manifest(m) for m in manifests]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "zstandard"])
@pytest.mark.parametrize("version", [1, 2])
def test_we_read_every_field_that_pyiceberg_writes(tmp_path: Path, version: TableVersion, codec: Any) -> None:
    """Snappy needs a library that PyIceberg does not bring."""
    schema, spec = every_partition(version)
    their_schema = pyiceberg_schema.Schema.model_validate_json(encode_json(schema))
    their_spec = pyiceberg_partitioning.PartitionSpec.model_validate_json(encode_json(spec))
    entries = without(some_entries(version, DATA, 0), lambda v: isinstance(v, float) and math.isnan(v))
    io = PyArrowFileIO()
    output = io.new_output(f"file://{tmp_path}/m.avro")
    with write_manifest(version, their_spec, their_schema, output, SNAPSHOT, codec) as writer:
        for written in entries:
            writer.add_entry(pyiceberg_entry(written))
    theirs = writer.to_manifest_file()
    listed = io.new_output(f"file://{tmp_path}/l.avro")
    number = 0 if version == 1 else NUMBER
    with write_manifest_list(version, listed, SNAPSHOT, PARENT, number, codec) as lists:
        lists.add_manifests([theirs])
    (manifest,) = parse_manifest_list((tmp_path / "l.avro").read_bytes(), "l.avro")
    (again,) = read_manifest_list(io.new_input(listed.location))
    assert plain_manifest(manifest) == plain_manifest(again)
    stored = parse_manifest((tmp_path / "m.avro").read_bytes(), spec, schema, "m.avro")
    found = [plain_entry(e) for e in inherit(stored, manifest)]
    assert found == [plain_entry(e) for e in inherit(entries, manifest)]


def pyiceberg_entry(written: ManifestEntry) -> PyIcebergEntry:
    file = {f: getattr(written.data_file, f) for f in FILE_FIELDS if f != "spec_id"}
    lists = {f: file[f] and list(file[f]) for f in ("split_offsets", "equality_ids")}
    values = Record(*written.data_file.partition)
    content = DataFileContent(file["content"])
    data_file = PyIcebergFile.from_args(**file | lists | {"partition": values, "content": content})
    numbers = {f: getattr(written, f) for f in ENTRY_FIELDS if f != "status"}
    return PyIcebergEntry.from_args(status=ManifestEntryStatus(int(written.status)), data_file=data_file, **numbers)
