"""Manifests loaded from storage."""

from collections.abc import Callable

import msgspec
import polars as pl
import pytest

from bergline import Table
from bergline.errors import FormatError, NotFoundError, UnsupportedError
from bergline.format.manifest.avro import render_manifest, render_manifest_list
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.memory import MemoryFileIO
from bergline.scan.manifest_cache import MANIFESTS, forget_files
from bergline.scan.manifests import (
    each_batch,
    live_deletes,
    live_entries,
    load_entries,
    load_manifest_list,
    with_counts,
)
from support.fixtures.rows import order_rows

ENTRIES = [
    ManifestEntry(EntryStatus.ADDED, DataFile("memory:/new", "PARQUET", ("eu",), 1, 1)),
    ManifestEntry(EntryStatus.EXISTING, DataFile("memory:/old", "PARQUET", ("eu",), 1, 1), 101, 1, 1),
    ManifestEntry(EntryStatus.DELETED, DataFile("memory:/gone", "PARQUET", ("us",), 1, 1), 103, 2, 2),
]
MANIFEST = ManifestFile(
    "memory:/m.avro",
    1,
    0,
    ManifestContent.DATA,
    103,
    3,
    1,
    1,
    1,
    1,
    added_rows_count=1,
    existing_rows_count=1,
    deleted_rows_count=1,
)


@pytest.fixture
def io(metadata: TableMetadata) -> MemoryFileIO:
    io = MemoryFileIO()
    io.create("memory:/m.avro", render_manifest(ENTRIES, metadata.schema, metadata.spec))
    io.create(metadata.snapshot(103).manifest_list, render_manifest_list([MANIFEST], 103, 102, 3))
    return io


def test_list_of_a_snapshot_is_loaded(io: MemoryFileIO, metadata: TableMetadata) -> None:
    assert load_manifest_list(io, metadata.snapshot(103)) == [MANIFEST]


def test_entries_have_their_numbers_filled_in(io: MemoryFileIO, metadata: TableMetadata) -> None:
    found = load_entries(io, MANIFEST, metadata)
    assert [(e.snapshot_id, e.sequence_number, e.file_sequence_number) for e in found] == [
        (103, 3, 3),
        (101, 1, 1),
        (103, 2, 2),
    ]


def test_deleted_entries_are_not_live(io: MemoryFileIO, metadata: TableMetadata) -> None:
    found = [e.data_file.file_path for e in live_entries(io, [MANIFEST], metadata)]
    assert found == ["memory:/new", "memory:/old"]


def test_manifest_without_live_files_is_never_opened(metadata: TableMetadata) -> None:
    dead = msgspec.structs.replace(MANIFEST, added_files_count=0, existing_files_count=0)
    assert list(live_entries(MemoryFileIO(), [dead], metadata)) == []


def test_unknown_spec_is_a_format_error(io: MemoryFileIO, metadata: TableMetadata) -> None:
    with pytest.raises(FormatError, match=r"partition spec of \[0\], found 7 for memory:/m\.avro"):
        load_entries(io, msgspec.structs.replace(MANIFEST, partition_spec_id=7), metadata)


def test_missing_manifest_list_is_not_found(metadata: TableMetadata) -> None:
    with pytest.raises(NotFoundError, match=r"snap-103\.avro"):
        load_manifest_list(MemoryFileIO(), metadata.snapshot(103))


def test_damaged_manifest_names_its_location(metadata: TableMetadata) -> None:
    io = MemoryFileIO()
    io.create("memory:/m.avro", b"not avro")
    with pytest.raises(FormatError, match=r"in memory:/m\.avro"):
        load_entries(io, MANIFEST, metadata)


def test_manifest_with_fewer_entries_than_its_list_says_is_refused(orders: Table) -> None:
    orders.append(order_rows(1))
    assert orders.current_snapshot is not None
    (manifest,) = load_manifest_list(orders.io, orders.current_snapshot)
    cut = msgspec.structs.replace(manifest, added_files_count=2)
    with pytest.raises(FormatError, match="expected 2 entries, found 1 in "):
        load_entries(orders.io, cut, orders.metadata)


def test_what_is_encrypted_is_refused_by_name(io: MemoryFileIO, metadata: TableMetadata) -> None:
    with pytest.raises(UnsupportedError, match=r"encrypted manifest memory:/m\.avro"):
        load_entries(io, msgspec.structs.replace(MANIFEST, key_metadata=b"k"), metadata)
    with pytest.raises(UnsupportedError, match="encrypted manifest list of snapshot 103"):
        load_manifest_list(io, msgspec.structs.replace(metadata.snapshot(103), key_id="k"))


def test_missing_counts_are_taken_from_the_manifest(io: MemoryFileIO) -> None:
    bare = ManifestFile("memory:/m.avro", 1, 0, ManifestContent.DATA, 103, 3, 1)
    assert with_counts(io, bare) == MANIFEST


def _naming_itself(metadata: TableMetadata, data: bytes) -> tuple[MemoryFileIO, Snapshot]:
    """An old v1 snapshot, which has no manifest list."""
    io = MemoryFileIO()
    io.create("memory:/named.avro", data)
    snapshot = msgspec.structs.replace(metadata.snapshot(103), manifest_list=None, manifests=("memory:/named.avro",))
    return io, snapshot


def _of_spec(metadata: TableMetadata, spec_id: int) -> bytes:
    spec = msgspec.structs.replace(metadata.spec, spec_id=spec_id)
    return render_manifest(ENTRIES, metadata.schema, spec)


@pytest.mark.parametrize("spec_id", [0, 1, 12])
def test_a_manifest_that_a_snapshot_names_itself_says_its_spec(metadata: TableMetadata, spec_id: int) -> None:
    io, snapshot = _naming_itself(metadata, _of_spec(metadata, spec_id))
    (found,) = load_manifest_list(io, snapshot)
    assert found.partition_spec_id == spec_id
    assert found.manifest_length == len(io.read("memory:/named.avro"))


def test_a_manifest_that_names_no_spec_has_the_first_one(metadata: TableMetadata) -> None:
    data = _of_spec(metadata, 1).replace(b"partition-spec-id", b"partition-spec-no")
    io, snapshot = _naming_itself(metadata, data)
    assert [m.partition_spec_id for m in load_manifest_list(io, snapshot)] == [0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda data: data.replace(b"partition-spec-id\x021", b"partition-spec-id\x02x"),
            "found b'x' in memory:/named",
        ),
        (lambda data: data[:20], "expected an Avro file, found .* in memory:/named.avro"),
        (lambda _: b"", "expected an Avro file, found .* in memory:/named.avro"),
        (lambda data: b"PAR1" + data[4:], "other bytes at its start in memory:/named.avro"),
    ],
)
def test_a_damaged_manifest_that_a_snapshot_names_itself_is_refused(
    metadata: TableMetadata, damage: Callable[[bytes], bytes], message: str
) -> None:
    io, snapshot = _naming_itself(metadata, damage(_of_spec(metadata, 1)))
    with pytest.raises(FormatError, match=message):
        load_manifest_list(io, snapshot)


def test_a_scan_that_would_fill_the_cache_keeps_its_start_there(
    io: MemoryFileIO, metadata: TableMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"memory:/copy{n}.avro" for n in range(4)]
    for path in paths:
        io.create(path, io.read("memory:/m.avro"))
    manifests = [msgspec.structs.replace(MANIFEST, manifest_path=path) for path in paths]
    monkeypatch.setattr("bergline.format.manifest.columns._TOGETHER_BYTES", 1)
    forget_files()
    sizes = list(each_batch(io, manifests, lambda frames, places: (places[0], int(frames[0].estimated_size()))))
    assert sorted(place for place, _ in sizes) == [0, 1, 2, 3]
    assert all(MANIFESTS.find(io, path) is not None for path in paths)
    forget_files()
    monkeypatch.setattr("bergline.scan.manifests._MOST_KEPT", 2 * sizes[0][1])
    assert len(list(each_batch(io, manifests, lambda frames, _: len(frames)))) == 4
    assert sum(MANIFESTS.find(io, path) is not None for path in paths) == 2


def test_a_manifest_that_is_listed_twice_is_used_twice(io: MemoryFileIO) -> None:
    for _ in range(2):  # decoded, then from the cache
        batches = each_batch(io, [MANIFEST, MANIFEST], lambda frames, places: [*zip(frames, places, strict=True)])
        found = [(frame.height, place) for batch in batches for frame, place in batch]
        assert found == [(3, 0), (3, 1)]


@pytest.mark.parametrize("wanted", [[], ["memory:/a"], ["memory:/a", "memory:/b", "memory:/z"]])
def test_delete_files_of_other_data_files_are_left_out(metadata: TableMetadata, wanted: list[str]) -> None:
    io = MemoryFileIO()
    referenced = ["memory:/a", "memory:/b", "memory:/c", None]
    entries = [
        ManifestEntry(
            EntryStatus.ADDED,
            DataFile(
                f"memory:/d{n}", "PARQUET", ("eu",), 1, 1, FileContent.POSITION_DELETES, referenced_data_file=path
            ),
        )
        for n, path in enumerate(referenced)
    ]
    content = ManifestContent.DELETES
    io.create("memory:/d.avro", render_manifest(entries, metadata.schema, metadata.spec, content=content))
    counts = {"added_files_count": 4, "existing_files_count": 0, "deleted_files_count": 0}
    listed = msgspec.structs.replace(MANIFEST, manifest_path="memory:/d.avro", content=content, **counts)
    found = live_deletes(io, [listed], metadata, pl.Series("path", wanted, pl.String))
    assert [e.data_file.referenced_data_file for e in found] == [p for p in referenced if p is None or p in wanted]
