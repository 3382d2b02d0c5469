"""Manifests of millions of files that exist in metadata only, made by columns.

One record is encoded, and the bytes in which the others differ are put into copies of it: all have one length.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from bergline import Lake, Table
from bergline.format.encoding.avro_container import container_header, encode_long, read_container
from bergline.format.manifest.avro import render_manifest
from bergline.format.manifest.inheritance import added_entry
from bergline.format.manifest.manifest import DataFile, FieldSummary, FileContent, ManifestContent, ManifestFile
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from made_up import COLUMNS, REGIONS, SCHEMA, made_up_file

_BLOCK = 100
_SYNC = b"made-up manifest"
_NUMBER = 77_777_777
"""The number of the file that the others are made of."""
_SIZE = 777_777_777
"""Its size, in place of which others are written that take as many bytes."""
LARGE, SMALL = 600_000_000, 200_000_000
"""The sizes of files: one that is right for a table with the usual target, and one that is too small."""


def many_files(
    lake: Lake,
    name: str,
    files: int,
    manifests: int,
    deleted: int = 0,
    *,
    regions: Sequence[str] = REGIONS,
    small: Sequence[str] = (),
) -> Table:
    """A table of so many files in so many manifests, the first of which have a position delete file each.

    The files are dealt to partitions, whose names have one length; files of some of them are small.
    """
    table = lake.create_table(name, SCHEMA, partition_by=["region"])
    table.commit(_MadeUp(table, files, manifests, _Template(table, ManifestContent.DATA, regions, small)))
    if deleted:
        template = _Template(table, ManifestContent.DELETES, regions, small)
        table.commit(_MadeUp(table, deleted, -(-deleted * manifests // files), template))
    return table


class _MadeUp(SnapshotProducer):
    """One snapshot of many manifests."""

    def __init__(self, table: Table, files: int, manifests: int, template: "_Template") -> None:
        super().__init__(table.io, "main", {}, merges=False)
        self._table = table
        self._counts = {"added-data-files": str(files), "total-data-files": str(files)}
        each = -(-files // manifests)
        self._written = [self._write(template, start, min(each, files - start)) for start in range(0, files, each)]

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The manifests beside those that are there."""
        kept = load_manifest_list(self._table.io, parent) if parent else ()
        counts = {"total-data-files": str(sum(m.added_files_count or 0 for m in kept))} if kept else self._counts
        operation = SnapshotOperation.DELETE if kept else SnapshotOperation.APPEND
        return Draft(operation, (*kept, *self._written), summary=counts)

    def _write(self, template: "_Template", start: int, count: int) -> ManifestFile:
        path = f"{self._table.location}/metadata/{self.snapshot_id}-{start:08d}.avro"
        data = template.manifest(start, count)
        self._table.io.create(path, data)
        regions = sorted(template.regions)
        return ManifestFile(
            manifest_path=path,
            manifest_length=len(data),
            partition_spec_id=self._table.spec.spec_id,
            content=template.content,
            added_snapshot_id=self.snapshot_id,
            added_files_count=count,
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=10 * count,
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=(FieldSummary(False, None, regions[0].encode(), regions[-1].encode()),),
        )


class _Template:
    """The header of a manifest, and a record of which others are made."""

    def __init__(self, table: Table, content: ManifestContent, regions: Sequence[str], small: Sequence[str]) -> None:
        self.content, self.regions = content, regions
        self._region = b"@" * len(regions[0])
        sizes = [encode_long(SMALL if region in small else LARGE) for region in regions]
        self._sizes = np.array([list(size) for size in sizes], np.uint8)
        file = made_up_file(_NUMBER, table.location)
        region, marker = file.partition[0], self._region.decode()
        path = file.file_path.replace(f"region={region}", f"region={marker}")
        data = msgspec.structs.replace(
            file,
            file_path=path,
            partition=(marker,),
            file_size_in_bytes=_SIZE,
            lower_bounds={**(file.lower_bounds or {}), COLUMNS + 1: self._region},
            upper_bounds={**(file.upper_bounds or {}), COLUMNS + 1: self._region},
        )
        if content is ManifestContent.DELETES:
            data = DataFile(
                file_path=path.replace("made-up", "deletes"),
                file_format="PARQUET",
                partition=(marker,),
                record_count=1,
                file_size_in_bytes=1000,
                content=FileContent.POSITION_DELETES,
                referenced_data_file=path,
            )
        rendered = render_manifest([added_entry(data)], table.schema, table.spec, content=content)
        container = read_container(rendered, "template")
        self._header = container_header({**container.metadata, "avro.codec": b"deflate"}, _SYNC)
        self._record = container.data

    def manifest(self, start: int, count: int) -> bytes:
        """A manifest of the files with these numbers."""
        numbers = np.arange(start, start + count, dtype=np.int64)
        width = len(self._record)
        records = np.tile(np.frombuffer(self._record, np.uint8), (count, 1))
        region = numbers % len(self.regions)
        regions = np.array([list(region.encode()) for region in self.regions], np.uint8)[region]
        digits = (numbers[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")).astype(np.uint8)
        low = (numbers * 10).view(np.uint8).reshape(count, 8)
        high = (numbers * 10 + 9).view(np.uint8).reshape(count, 8)
        for marker, values in (
            (self._region, regions),
            (encode_long(_SIZE), self._sizes[region]),
            (str(_NUMBER).encode(), digits),
            (struct.pack("<q", _NUMBER * 10), low),
            (struct.pack("<q", _NUMBER * 10 + 9), high),
        ):
            for place in self._places(marker):
                records[:, place : place + len(marker)] = values
        data = records.tobytes()
        parts = [self._header]
        for first in range(0, count, _BLOCK):
            compressor = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
            payload = compressor.compress(data[first * width : (first + _BLOCK) * width]) + compressor.flush()
            parts += [encode_long(min(_BLOCK, count - first)), encode_long(len(payload)), payload, _SYNC]
        return b"".join(parts)

    def _places(self, marker: bytes) -> Iterator[int]:
        place = self._record.find(marker)
        while place >= 0:
            yield place
            place = self._record.find(marker, place + 1)
