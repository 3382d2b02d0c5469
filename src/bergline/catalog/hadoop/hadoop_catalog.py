"""The Hadoop catalog: creating the next metadata file is the commit."""

import hashlib
from collections.abc import Sequence
from functools import cached_property

from bergline.catalog.catalog import Conflicted, LoadedTable, NewTable, Outcome, TableChange, added_snapshots
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.catalog.hadoop.version_files import is_version_file
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import MetadataFiles
from bergline.catalog.pointer.commits import TableCommits
from bergline.catalog.pointer.group_commits import GroupMember, MemberOutcomes
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.pointer.settle import CommitSettling, SentSwaps, lost, unknown
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.errors import BerglineError, RefusedError, UnsupportedError
from bergline.format.metadata.gzip import pack
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import join, normalized

_METADATA_PATH = "write.metadata.path"


class HadoopCatalog(PointerCatalog):
    """Catalog over a HadoopPointerStore: a table is its directory, and cannot move."""

    metadata_files_stay = True

    def __init__(self, store: HadoopPointerStore, io: FileIO, warehouse: str) -> None:
        super().__init__(store, io, warehouse, files=_VersionedFiles(io, store))
        self._versions = store

    @cached_property
    def commits(self) -> TableCommits:
        settling = _VersionSettling(self._access, self.tables.files, self._versions)
        return TableCommits(self._access, self.tables, settling, _check_stays)

    def default_location(self, name: TableName) -> str:
        return self._versions.table_directory(name)

    def check_location(self, name: TableName, location: str) -> None:
        """Refuse any directory but the table's own, and one with a table of another catalog."""
        own = self.default_location(name)
        if normalized(location) != normalized(own):
            raise UnsupportedError(
                f"expected table `{name}` at {own}, found {location}: a version-hint catalog finds tables by directory"
            )
        if self._versions.is_foreign(name):
            raise RefusedError(f"cannot create a table at {own}: another catalog's table is there")

    def is_own_file(self, location: str) -> bool:
        """Whether a file has the name of a version: while it exists, its number is not reused."""
        return is_version_file(location)

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        self.check_location(name, metadata.location)
        _check_stays(None, metadata)
        return super().create_table(name, metadata)

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Create the first version from a metadata file; its files must already be in the table's directory."""
        return self.create_table(name, self.tables.metadata_at(metadata_location))

    def commit(self, changes: tuple[TableChange, ...], new: Sequence[NewTable] = ()) -> Outcome:
        """Create the next version; a table that Java dropped and re-created under the same number is another one."""
        self.commits.check_tables(changes, new)
        for base in (c.base for c in changes):
            now = self.load_table(base.name)
            if now.metadata.table_uuid != base.metadata.table_uuid:
                return Conflicted(self.commits.moved_on(base))
        return super().commit(changes, new)

    def commit_group(self, base: LoadedTable, members: Sequence[GroupMember]) -> MemberOutcomes:
        """Always refused: a file that is not ours does not say which of several changes are in it."""
        raise UnsupportedError(
            f"cannot commit {len(members)} changes to `{base.name}` at once: a version-hint catalog takes one at a time"
        )


class _VersionSettling(CommitSettling):
    """Settles by the file of the next version, whose creation is the commit."""

    def __init__(self, access: StoreAccess, files: MetadataFiles[TableMetadata], versions: HadoopPointerStore) -> None:
        super().__init__(access, files)
        self._versions = versions

    def settle(self, changes: Sequence[TableChange], sent: SentSwaps, cause: str) -> Outcome:
        """The file itself decides: ours, another writer's, or none yet: then repeating the swap is harmless."""
        swap = sent.swaps[0]
        for wait in self._waits(changes):
            try:
                if self._versions.landed(swap.new) is None and self._versions.swap_all((swap,)):
                    return sent.made
                is_other = self._versions.landed(swap.new) is False
                is_there = self._is_there(changes[0], swap)
            except (BerglineError, OSError):
                wait()
            else:
                if is_there:
                    return sent.made
                return lost(swap) if is_other else unknown(sent.swaps, cause)
        return unknown(sent.swaps, cause)

    def check_refused(self, changes: Sequence[TableChange], sent: SentSwaps) -> Outcome:
        """Always refused: creating the file already compared the bytes, and its name does not identify the writer."""
        del changes
        return lost(sent.swaps[0])

    def _is_there(self, change: TableChange, swap: PointerSwap) -> bool:
        """Whether our file is current or an ancestor of the current one; a file that came too late is neither."""
        pointer = self._versions.read(swap.table)
        if pointer is None or pointer == swap.new:
            return pointer is not None and bool(self._versions.landed(swap.new))
        return not added_snapshots(change).isdisjoint(self._files.load(pointer).snapshots_by_id)


class _VersionedFiles(MetadataFiles[TableMetadata]):
    """Metadata files that the swap itself writes. Names may be reused by others, so the cache goes by content."""

    def __init__(self, io: FileIO, store: HadoopPointerStore) -> None:
        super().__init__(io, parse_metadata, render_metadata, "none")
        self._store = store

    def load(self, location: str) -> TableMetadata:
        """The metadata in a file; the same bytes are parsed only once."""
        data = self._read(location)
        key = f"{location}#{hashlib.sha256(data).hexdigest()}"
        return self._find(key) or self._parsed(location, data, key)

    def write(self, metadata: TableMetadata, previous_location: str | None) -> str:
        """Stage the bytes, to be written by the swap."""
        directory = previous_location.rpartition("/")[0] if previous_location else join(metadata.location, "metadata")
        text = self._rendered(metadata)
        return self._store.stage_file(directory, previous_location, lambda location: pack(text, location))

    def is_written(self, location: str) -> bool:
        """Always true: the swap itself writes the file."""
        return True

    def discard(self, location: str) -> None:
        """Discard the staged bytes: the file of this name is another writer's."""
        self._store.unstage(location)


def _check_stays(base: TableMetadata | None, metadata: TableMetadata) -> None:
    """Refuse updates that would move a table out of its directory."""
    if base is not None and normalized(metadata.location) != normalized(base.location):
        raise UnsupportedError(f"cannot move a table of a version-hint catalog from {base.location}")
    if _METADATA_PATH in metadata.properties:
        raise UnsupportedError(f"property `{_METADATA_PATH}` is not supported by a version-hint catalog")
