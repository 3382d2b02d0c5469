"""What must hold of every table, whoever wrote it and however they ended."""

from itertools import pairwise

from bergline import Table
from bergline.format.metadata import TableMetadata
from bergline.format.metadata_gzip import unpack
from bergline.format.metadata_json import parse_metadata
from bergline.io.locations import normalized
from bergline.scan.manifests import load_entries, load_manifest_list


def check_nothing_is_missing(table: Table) -> dict[int, frozenset[str]]:
    """Every snapshot can be read: its list, its manifests and every file in them are there. The files of each."""
    there = {normalized(location) for location in table.io.list(table.location)}
    files: dict[int, frozenset[str]] = {}
    live: dict[str, frozenset[str]] = {}
    manifest_numbers: dict[str, int | None] = {}
    file_numbers: dict[str, int | None] = {}
    for snapshot in table.metadata.snapshots:
        manifests = load_manifest_list(table.io, snapshot)
        for manifest in manifests:
            path, number = manifest.manifest_path, manifest.sequence_number
            # a manifest stands in lists with one number for ever, and a file keeps its own
            assert manifest_numbers.setdefault(path, number) == number
            if path not in live:
                entries = load_entries(table.io, manifest, table.metadata)
                live[path] = frozenset(e.data_file.file_path for e in entries if e.is_live)
                for entry in entries:
                    file = entry.data_file.file_path
                    assert file_numbers.setdefault(file, entry.sequence_number) == entry.sequence_number
        of_snapshot = [path for m in manifests for path in live[m.manifest_path]]
        files[snapshot.snapshot_id] = frozenset(of_snapshot)
        assert len(files[snapshot.snapshot_id]) == len(of_snapshot), "a file is in a snapshot twice"
        needed = {normalized(p) for p in (snapshot.manifest_list, *(m.manifest_path for m in manifests), *of_snapshot)}
        assert needed <= there, f"{needed - there} missing, for snapshot {snapshot.snapshot_id}"
    return files


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
