"""Manifests and manifest lists next to Java's own readers and writers and PyIceberg, both ways, every version."""

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from every_partition import any_file, every_partition, partition_values, vector_file
from java_manifests import JAVA, entry_json, manifest_json
from peers import OfficialRuntime

from bergline.format.inheritance import assign_numbers, assign_row_ids, inherit
from bergline.format.manifest import DataFile, EntryStatus, FileContent, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.manifest_avro import parse_manifest, parse_manifest_list, render_manifest, render_manifest_list
from bergline.format.manifest_summary import describe_manifest, summarize_partitions
from bergline.format.partition import PartitionSpec
from bergline.format.schema import Schema
from bergline.format.wire import encode_json
from bergline.io.schemes import SchemeFileIO

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


def write_ours(version: int, directory: Path) -> tuple[str, list[ManifestFile], list[list[ManifestEntry]]]:
    """A list of ours with two manifests of each content."""
    schema, spec = every_partition(version)
    manifests, entries = [], []
    for seed, content in enumerate(contents(version) * 2):
        path = directory / f"m{seed}.avro"
        entries.append(without(some_entries(version, content, seed), is_fixed))
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
    location, manifests, entries = write_ours(version, tmp_path)
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
