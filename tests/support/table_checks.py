"""What must hold of every table, whoever wrote it and however they ended."""

from itertools import pairwise

from bergline import Table
from bergline.format.manifest import ManifestEntry
from bergline.format.metadata import TableMetadata
from bergline.format.metadata_gzip import unpack
from bergline.format.metadata_json import parse_metadata
from bergline.io.locations import normalized
from bergline.scan.manifests import load_entries, load_manifest_list


def check_nothing_is_missing(table: Table) -> None:
    """Every snapshot can be read: its list, its manifests and every file in them are there."""
    there = {normalized(location) for location in table.io.list(table.location)}
    entries: dict[str, list[ManifestEntry]] = {}
    numbers: dict[str, int | None] = {}
    for snapshot in table.metadata.snapshots:
        for manifest in load_manifest_list(table.io, snapshot):
            path = manifest.manifest_path
            if path not in entries:
                entries[path] = load_entries(table.io, manifest, table.metadata)
                needed = {normalized(e.data_file.file_path) for e in entries[path] if e.is_live}
                assert needed <= there, f"{needed - there} missing, for snapshot {snapshot.snapshot_id}"
            # spec: a manifest has one sequence number for ever
            assert numbers.setdefault(path, manifest.sequence_number) == manifest.sequence_number


def pointer_line(table: Table) -> list[TableMetadata]:
    """Every version that the table has had, oldest first, each naming the one before it.

    The versions in the file names and the sequence numbers grow by one, so there is one line and no other.
    """
    line, location = [table.metadata], table.metadata_location
    while line[-1].metadata_log:
        before = line[-1].metadata_log[-1].metadata_file
        assert _version(location) == _version(before) + 1
        line.append(parse_metadata(unpack(table.io.read(before), before), before))
        location = before
    line.reverse()
    for before, after in pairwise(line):
        new = [s for s in after.snapshots if s.snapshot_id not in before.snapshots_by_id]
        expected = range(before.last_sequence_number + 1, before.last_sequence_number + 1 + len(new))
        assert [s.sequence_number for s in new] == list(expected)
    return line


def metadata_files_beside_the_line(table: Table, line: list[TableMetadata]) -> set[str]:
    """Metadata files that never became current and were left behind."""
    current = {normalized(table.metadata_location)}
    current |= {normalized(m.metadata_log[-1].metadata_file) for m in line if m.metadata_log}
    files = {normalized(f) for f in table.io.list(table.location) if f.endswith(".metadata.json")}
    return files - current


def _version(location: str) -> int:
    return int(location.rsplit("/", 1)[-1].split("-", maxsplit=1)[0])
