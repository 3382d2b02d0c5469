"""The files that a read must open."""

from typing import Any

import msgspec
import pytest

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, Comparison
from bergline.format.manifest.avro import render_manifest, render_manifest_list
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import LONG
from bergline.io.memory import MemoryFileIO
from bergline.scan.changelog import plan_changelog
from bergline.scan.manifest_cache import MANIFESTS
from bergline.scan.plan import ScanPlan
from bergline.scan.planner import plan_scan


def file(low: int, high: int) -> DataFile:
    return DataFile(
        f"memory:/{low}-{high}",
        "PARQUET",
        ("eu",),
        10,
        1,
        lower_bounds={1: encode_value(LONG, low)},
        upper_bounds={1: encode_value(LONG, high)},
    )


def manifest(path: str, files: int, content: ManifestContent = ManifestContent.DATA) -> ManifestFile:
    return ManifestFile(
        path, 1, 0, content, 103, 3, 3, files, 0, 0, added_rows_count=0, existing_rows_count=0, deleted_rows_count=0
    )


@pytest.fixture
def io(metadata: TableMetadata) -> MemoryFileIO:
    """Two data manifests, and a delete manifest without live files whose file does not exist."""
    io = MemoryFileIO()
    for path, files in {"memory:/m0": [file(0, 9), file(10, 19)], "memory:/m1": [file(20, 29)]}.items():
        entries = [ManifestEntry(EntryStatus.ADDED, f) for f in files]
        io.create(path, render_manifest(entries, metadata.schema, metadata.spec))
    rows = [manifest("memory:/m0", 2), manifest("memory:/m1", 1), manifest("memory:/d", 0, ManifestContent.DELETES)]
    io.create(metadata.snapshot(103).manifest_list, render_manifest_list(rows, 103, 102, 3))
    return io


def plan(io: MemoryFileIO, metadata: TableMetadata, text: str | None = None, snapshot_id: int | None = 103) -> ScanPlan:
    return plan_scan(
        io,
        metadata,
        snapshot_id,
        table_schema=metadata.schema,
        columns=metadata.schema.select(["id"]),
        row_filter=parse_predicate(text) if text else ALWAYS_TRUE,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ["0-9", "10-19", "20-29"]),
        ("id >= 15", ["10-19", "20-29"]),
        ("id = 5", ["0-9"]),
        ("id > 100", []),
        ("NOT (id < 20)", ["20-29"]),
        ("id IN (3, 25) AND region = 'eu'", ["0-9", "20-29"]),
        ("false", []),
    ],
)
def test_only_files_that_may_match_are_planned(
    io: MemoryFileIO, metadata: TableMetadata, text: str | None, expected: list[str]
) -> None:
    found = plan(io, metadata, text)
    assert [p.file.file_path for p in found.files] == [f"memory:/{name}" for name in expected]


def test_plan_holds_the_bound_filter_and_the_numbers(io: MemoryFileIO, metadata: TableMetadata) -> None:
    found = plan(io, metadata, "ID = 5")
    assert found.filter == Comparison("id", "=", 5)
    assert [p.sequence_number for p in found.files] == [3]
    assert [f.name for f in found.schema.fields] == ["id"]


def test_table_without_snapshots_has_no_files(metadata: TableMetadata) -> None:
    assert plan(MemoryFileIO(), metadata, "id = 5", None).files == ()


def test_unknown_snapshot_is_not_found(io: MemoryFileIO, metadata: TableMetadata) -> None:
    with pytest.raises(NotFoundError, match="snapshot with id 5"):
        plan(io, metadata, snapshot_id=5)


@pytest.mark.parametrize(("text", "kind"), [("nope = 1", NotFoundError), ("id = 'x'", InvalidInputError)])
def test_filter_that_does_not_fit_is_refused_even_without_files(
    metadata: TableMetadata, text: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        plan(MemoryFileIO(), metadata, text, None)


@pytest.mark.parametrize("content", [FileContent.DATA, FileContent.EQUALITY_DELETES])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file_format": "LANCE"}, "expected a file of the format PARQUET, ORC, AVRO, found `LANCE` at memory:/0-9"),
        ({"key_metadata": b"key"}, "cannot read the encrypted file memory:/0-9"),
    ],
)
def test_files_that_cannot_be_read_are_refused_when_planned(
    metadata: TableMetadata, change: dict[str, Any], message: str, content: FileContent
) -> None:
    is_data = content is FileContent.DATA
    unreadable = msgspec.structs.replace(file(0, 9), content=content, equality_ids=None if is_data else (1,), **change)
    io, kind = MemoryFileIO(), ManifestContent.DATA if is_data else ManifestContent.DELETES
    entries = [ManifestEntry(EntryStatus.ADDED, f) for f in (unreadable, file(10, 19))]
    io.create("memory:/m", render_manifest(entries, metadata.schema, metadata.spec, content=kind))
    snapshot = metadata.snapshot(103)
    io.create(snapshot.manifest_list, render_manifest_list([manifest("memory:/m", 2, kind)], 103, 102, 3))
    with pytest.raises(UnsupportedError, match=f"{message} of the table at {metadata.location}$"):
        plan(io, metadata)
    if is_data:
        assert len(plan(io, metadata, "id > 9").files) == 1
        with pytest.raises(UnsupportedError, match=f"{message} of the table at {metadata.location}$"):
            plan_changelog(io, metadata, [snapshot], table_schema=metadata.schema, columns=metadata.schema)


def test_files_are_in_the_order_of_their_manifests_however_these_are_decoded(
    metadata: TableMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Manifests of one Avro schema are decoded together, a few at a time: others come in between."""
    io = MemoryFileIO()
    rows = []
    for number in range(12):
        path, version = f"memory:/m{number}", 2 + number % 2
        entries = [ManifestEntry(EntryStatus.ADDED, file(10 * number + n, 10 * number + n)) for n in range(3)]
        io.create(path, render_manifest(entries, metadata.schema, metadata.spec, format_version=version))
        rows.append(manifest(path, 3))
    io.create(metadata.snapshot(103).manifest_list, render_manifest_list(rows, 103, 102, 3))
    expected = [f"memory:/{n}-{n}" for m in range(12) for n in range(10 * m, 10 * m + 3)]
    for together in (1, 2000, 1 << 22):
        monkeypatch.setattr("bergline.format.manifest.columns._TOGETHER_BYTES", together)
        MANIFESTS.clear()
        assert [planned.file.file_path for planned in plan(io, metadata).files] == expected
        assert [p.file.file_path for p in plan(io, metadata, "id = 71 OR id = 22").files] == [
            "memory:/22-22",
            "memory:/71-71",
        ]
