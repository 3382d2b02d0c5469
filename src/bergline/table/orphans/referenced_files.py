"""Every file that a table's metadata references, from any ref or log."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import partial

import polars as pl

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.metadata_files import metadata_directory
from bergline.format.manifest.manifest import EntryStatus, ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.scan.manifest_cache import FreshReads
from bergline.scan.manifests import load_columns, load_manifest_list
from bergline.table.expiry.path_rules import PathRules

_READERS = 16
_MANIFESTS_AT_ONCE = 100
_HINT = "version-hint.text"


class ReferenceState(Enum):
    """Whether metadata references a file."""

    REFERENCED = "by this location, or one that is equal to it"
    IN_DOUBT = "by a location that differs in scheme, authority or encoding only"
    UNREFERENCED = "not at all"


class ReferencedFiles:
    """The files that any of several states of a table references. Only what is new in a state is read.

    Only hashes are kept: two files with the same hash both count as referenced.
    """

    def __init__(self, io: FileIO, rules: PathRules) -> None:
        self._io = io
        self._rules = rules
        self._exact: set[int] = set()
        self._loose: set[int] = set()
        self._read: set[str] = set()
        self.prefixes: set[str] = set()
        """Schemes and authorities that metadata uses."""

    def include(self, table: LoadedTable) -> None:
        """Add everything that a state of the table references; raises if any of its metadata cannot be read."""
        for location in referenced_files(self._io, table, self._read):
            spelling = self._rules.spell(location)
            self._exact.add(hash(spelling.exact))
            self._loose.add(hash(spelling.loose))
            self.prefixes.add(spelling.prefix)

    def find(self, location: str) -> ReferenceState:
        """Whether a file is referenced."""
        spelling = self._rules.spell(location)
        if hash(spelling.exact) in self._exact:
            return ReferenceState.REFERENCED
        return ReferenceState.IN_DOUBT if hash(spelling.loose) in self._loose else ReferenceState.UNREFERENCED


def referenced_files(io: FileIO, table: LoadedTable, read: set[str] | None = None) -> Iterator[str]:
    """All locations that metadata references, some twice, except from the lists and manifests in `read`.

    New ones are added to `read`. They are read from storage: a cached copy says nothing about the file being there.
    """
    known: set[str] = set() if read is None else read
    yield from referenced_in_metadata(table)
    snapshots = [s for s in table.metadata.snapshots if s.manifest_list is None or s.manifest_list not in known]
    fresh = FreshReads()
    manifests = _manifests(io, snapshots, fresh)
    yield from manifests
    new = [m for path, m in manifests.items() if path not in known and m.has_live_files]
    for start in range(0, len(new), _MANIFESTS_AT_ONCE):
        for frame in load_columns(io, new[start : start + _MANIFESTS_AT_ONCE], fresh):
            yield from frame.filter(pl.col("status") != int(EntryStatus.DELETED))["file_path"]
    known.update(manifests)  # only now, so that lists and manifests whose reading raised are read again
    known.update(s.manifest_list for s in snapshots if s.manifest_list is not None)


def referenced_in_metadata(table: LoadedTable) -> Iterator[str]:
    """The locations in the metadata file itself, and those of the version hint."""
    metadata = table.metadata
    yield table.metadata_location
    yield join(metadata.location, "metadata", _HINT)
    yield join(metadata_directory(metadata), _HINT)
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (s.manifest_list for s in metadata.snapshots if s.manifest_list is not None)
    yield from (path for s in metadata.snapshots for path in s.manifests or ())
    yield from (s.statistics_path for s in metadata.statistics)
    yield from (s.statistics_path for s in metadata.partition_statistics)


def _manifests(io: FileIO, snapshots: Iterable[Snapshot], fresh: FreshReads) -> dict[str, ManifestFile]:
    with ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-lists") as pool:
        lists = pool.map(partial(load_manifest_list, io, fresh=fresh), snapshots)
        return {m.manifest_path: m for found in lists for m in found}
