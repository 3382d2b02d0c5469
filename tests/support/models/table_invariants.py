"""What must hold of every table, whoever wrote it and however they ended."""

import re
from itertools import pairwise

from bergline import Table
from bergline.format.metadata.gzip import unpack
from bergline.format.metadata.json import parse_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.locations import normalized
from bergline.scan.manifests import live_entries, load_entries, load_manifest_list

Entries = list[tuple[str, int | None, bool]]
"""The files of a manifest: path, sequence number, whether it is live."""


def check_nothing_is_missing(
    table: Table, known: dict[str, Entries] | None = None, *, merged: bool = False
) -> dict[int, frozenset[str]]:
    """Every snapshot can be read: its list, its manifests and every file in them are there. The files of each.

    Manifests are read once for all calls with one `known`. Branches that were `merged` have files of each other, under
    other numbers.
    """
    there = {normalized(location) for location in table.io.list(table.location)}
    known = {} if known is None else known
    files: dict[int, frozenset[str]] = {}
    manifest_numbers: dict[str, int | None] = {}
    file_numbers: dict[str, int | None] = {}
    for snapshot in table.metadata.snapshots:
        live: list[str] = []
        manifests = load_manifest_list(table.io, snapshot)
        for manifest in manifests:
            path = manifest.manifest_path
            # a manifest stands in lists with one number for ever, and a file keeps its own
            assert manifest_numbers.setdefault(path, manifest.sequence_number) == manifest.sequence_number
            if path not in known:
                entries = load_entries(table.io, manifest, table.metadata)
                known[path] = [(e.data_file.file_path, e.sequence_number, e.is_live) for e in entries]
            for file, number, is_live in known[path]:
                assert merged or file_numbers.setdefault(file, number) == number
                live += [file] * is_live
        files[snapshot.snapshot_id] = frozenset(live)
        needed = {normalized(p) for p in (snapshot.manifest_list, *(m.manifest_path for m in manifests), *live)}
        assert needed <= there, f"{needed - there} missing, for snapshot {snapshot.snapshot_id}"
    return files


def unneeded_files(table: Table) -> set[str]:
    """Files of a table, beside metadata files, that none of its snapshots needs."""
    needed: set[str] = set()
    for snapshot in table.metadata.snapshots:
        manifests = load_manifest_list(table.io, snapshot)
        needed |= {snapshot.manifest_list, *(m.manifest_path for m in manifests)}
        needed |= {e.data_file.file_path for e in live_entries(table.io, manifests, table.metadata)}
    there = {normalized(f) for f in table.io.list(table.location) if not f.endswith(".metadata.json")}
    return there - {normalized(location) for location in needed if location}


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
    """The number in a name like `00012-….metadata.json` or `v12.metadata.json`."""
    match = re.match(r"v?(\d+)", location.rsplit("/", 1)[-1])
    assert match, location
    return int(match[1])
