"""Metadata files: their names, and that what is written is read."""

import gzip
import re
from typing import Any

import msgspec
import pytest

from bergline.catalog.metadata_files import next_location, table_files
from bergline.errors import FormatError, NotFoundError, RefusedError
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.memory import MemoryFileIO

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
CODEC = "write.metadata.compression-codec"


@pytest.mark.parametrize(
    ("previous", "version"),
    [
        (None, "00000"),
        ("memory:/t/metadata/00041-u.metadata.json", "00042"),
        ("memory:/t/metadata/00041-u.gz.metadata.json", "00042"),
        ("99999-u.metadata.json", "100000"),
        ("memory:/t/metadata/v3.metadata.json", "00000"),
        ("memory:/t/metadata/abc12-u.metadata.json", "00000"),
        ("memory:/t/7-x/v3.metadata.json", "00000"),
        (f"memory:/t/metadata/{'9' * 5000}-u.metadata.json", "00000"),
    ],
)
def test_next_file_counts_on_from_the_name_before(metadata: TableMetadata, previous: str, version: str) -> None:
    location = next_location(metadata, previous)
    assert re.fullmatch(rf"memory:/lake/orders/metadata/{version}-{UUID}\.metadata\.json", location)


def test_metadata_path_and_codec_of_the_table_are_followed(metadata: TableMetadata) -> None:
    changed = msgspec.structs.replace(metadata, properties={"write.metadata.path": "memory:/else", CODEC: "gzip"})
    assert re.fullmatch(rf"memory:/else/00000-{UUID}\.gz\.metadata\.json", next_location(changed, None))


@pytest.mark.parametrize("properties", [{}, {CODEC: "gzip"}])
def test_what_is_written_is_read(metadata: TableMetadata, properties: dict[str, Any]) -> None:
    io = MemoryFileIO()
    changed = msgspec.structs.replace(metadata, properties=properties)
    location = table_files(io).write(changed, None)
    data = io.read(location)
    assert (gzip.decompress(data) if properties else data) == render_metadata(changed)
    assert table_files(io).load(location) == changed


def test_legacy_name_of_compressed_files_is_read(metadata: TableMetadata) -> None:
    io = MemoryFileIO()
    io.create("memory:/t/v1.metadata.json.gz", gzip.compress(render_metadata(metadata)))
    assert table_files(io).load("memory:/t/v1.metadata.json.gz") == metadata


def test_compressed_bytes_under_a_plain_name_are_refused_by_name(metadata: TableMetadata) -> None:
    io = MemoryFileIO()
    io.create("memory:/t/v1.metadata.json", gzip.compress(render_metadata(metadata)))
    with pytest.raises(FormatError, match=r"in memory:/t/v1\.metadata\.json"):
        table_files(io).load("memory:/t/v1.metadata.json")


class CountingIO(MemoryFileIO):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, location: str, most: int | None = None) -> bytes:
        self.reads.append(location)
        return super().read(location, most)


def test_file_is_parsed_once_while_it_is_among_those_used_last(
    metadata: TableMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(render_metadata(metadata))
    monkeypatch.setattr("bergline.catalog.metadata_files._CACHED_BYTES", 2 * size)
    io = CountingIO()
    names = [f"memory:/t/v{n}.metadata.json" for n in range(3)]
    for name in names:
        io.create(name, render_metadata(metadata))
    files = table_files(io)
    for number in (0, 1, 0, 1, 0, 2, 0, 1):
        files.load(names[number])
    assert io.reads == [names[n] for n in (0, 1, 2, 1)]


def test_file_larger_than_the_cache_is_parsed_once_too(
    metadata: TableMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bergline.catalog.metadata_files._CACHED_BYTES", 1)
    io = CountingIO()
    files = table_files(io)
    location = files.write(metadata, None)
    assert files.load(location) is files.load(location)
    assert io.reads == []
    files.discard(location)
    with pytest.raises(NotFoundError):
        files.load(location)


def test_file_that_is_too_large_is_not_read(metadata: TableMetadata) -> None:
    io, data = MemoryFileIO(), render_metadata(metadata)
    io.create("memory:/t/v1.metadata.json", data)
    io.create("memory:/t/v1.gz.metadata.json", gzip.compress(data))
    for name in ("memory:/t/v1.metadata.json", "memory:/t/v1.gz.metadata.json"):
        assert table_files(io, len(data)).load(name) == metadata
        with pytest.raises(FormatError, match=f"expected at most {len(data) - 1:,} bytes"):
            table_files(io, len(data) - 1).load(name)


@pytest.mark.parametrize("properties", [{}, {CODEC: "gzip"}])
def test_file_that_nobody_could_read_again_is_not_written(metadata: TableMetadata, properties: dict[str, Any]) -> None:
    io, changed = MemoryFileIO(), msgspec.structs.replace(metadata, properties=properties)
    size = len(render_metadata(changed))
    with pytest.raises(RefusedError, match=f"cannot write metadata of {size:,} bytes: at most {size - 1:,} are read"):
        table_files(io, size - 1).write(changed, None)
    assert io.list("memory:/") == []
    table_files(io, size).write(changed, None)


@pytest.mark.parametrize("properties", [{}, {CODEC: "gzip"}])
def test_history_is_shared_with_what_is_cached_of_the_directory(
    metadata: TableMetadata, properties: dict[str, Any]
) -> None:
    """After a commit that lost, too: its file is forgotten, and the winner's continues the base."""
    io = MemoryFileIO()
    base = msgspec.structs.replace(metadata, properties=properties)
    files, others = table_files(io), table_files(io)
    first = files.write(base, None)
    winner = others.write(msgspec.structs.replace(base, properties=properties | {"a": "b"}), first)
    files.discard(files.write(msgspec.structs.replace(base, snapshot_log=()), first))
    read = files.load(winner)
    assert read == others.load(winner)
    assert all(now is before for now, before in zip(read.snapshots, base.snapshots, strict=True))
