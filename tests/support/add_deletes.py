"""Delete files brought into a table as they are, with nothing checked: what other engines leave behind."""

import uuid
from collections.abc import Mapping, Sequence

import msgspec

from bergline import Table
from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import position_set
from bergline.format.manifest.manifest import DataFile, ManifestContent
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.parquet.write.delete_writer import write_equality_deletes, write_position_deletes
from bergline.parquet.write.fit import ArrowRows
from bergline.parquet.write.write_spec import delete_write_spec
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer


class _AddDeletes(SnapshotProducer):
    def __init__(self, table: Table, deletes: Sequence[DataFile], branch: str) -> None:
        super().__init__(table.io, branch, {})
        self._deletes = deletes

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        entries = [self.added_entry(base, d) for d in self._deletes]
        (spec_id,) = {d.spec_id for d in self._deletes}
        new = self.write_manifests(base, spec_id, entries, ManifestContent.DELETES)
        old = load_manifest_list(self._io, parent) if parent else []
        return Draft(SnapshotOperation.DELETE, (*new, *old), added=tuple(self._deletes))


def add_deletes(table: Table, *deletes: DataFile, branch: str = MAIN) -> None:
    """One snapshot that adds delete files."""
    table.commit(_AddDeletes(table, deletes, branch))


def position_deletes(table: Table, positions: Mapping[str, Sequence[int]]) -> DataFile:
    """A file with deletes by path and position; all of the files are in one partition."""
    files = {p.file.file_path: p.file for p in table.scan().plan().files}
    data = files[next(iter(positions))]
    spec = msgspec.structs.replace(delete_write_spec(table.metadata), spec=table.metadata.specs_by_id[data.spec_id])
    return write_position_deletes(table.io, spec, _new_file(table, "parquet"), positions, partition=data.partition)


def equality_deletes(table: Table, rows: ArrowRows, ids: Sequence[int], partition: tuple[object, ...] = ()) -> DataFile:
    """A file with deletes by the values of some columns."""
    spec = delete_write_spec(table.metadata)
    return write_equality_deletes(table.io, spec, _new_file(table, "parquet"), rows, ids, partition=partition)


def deletion_vectors(table: Table, positions: Mapping[str, Sequence[int]]) -> tuple[DataFile, ...]:
    """A deletion vector for each of some data files, all in one Puffin file."""
    files = {p.file.file_path: p.file for p in table.scan().plan().files}
    location = _new_file(table, "puffin")
    vectors = [(files[path], position_set(found)) for path, found in positions.items()]
    data, deletes = deletion_vector_file(location, vectors, "tests")
    table.io.create(location, data)
    return deletes


def _new_file(table: Table, ending: str) -> str:
    return f"{table.location}/data/{uuid.uuid4()}.{ending}"
