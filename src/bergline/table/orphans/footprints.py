"""The directories of other tables' files, as the catalog records them; unknown ones are read once and recorded."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.footprint import FilesDirectory, Footprint, FootprintKind, FootprintOwner, Footprints
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import metadata_directory, table_files, view_files
from bergline.catalog.table_locations import is_outside, may_have_files_elsewhere, table_directories
from bergline.errors import BerglineError, InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import absolute_location, scheme_of
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directory_set import DirectorySet
from bergline.table.orphans.referenced_files import referenced_in_metadata

_READERS = 16
_LONGEST_DIRECTORY = 2000
_RULES = PathRules({}, {})


class NearOwners(msgspec.Struct, frozen=True):
    """Tables and views that may have files in some directories, and metadata files of those in the trash."""

    tables: tuple[TableName, ...]
    views: tuple[TableName, ...]
    dropped: frozenset[str]

    def has_dropped(self, name: TableName, metadata_location: str) -> bool:
        """Whether one of them is in the trash, or was dropped after it was listed as a table."""
        return metadata_location in self.dropped or name in self.tables


def find_near(io: FileIO, footprints: Footprints, directories: DirectorySet, table_uuid: str | None) -> NearOwners:
    """Tables and views that may have files in the directories, have the UUID, or are unknown."""
    _read_unknown(io, footprints)
    # tables with commits in the meantime are unknown again, and so among them
    near: dict[FootprintKind, dict[FootprintOwner, None]] = {kind: {} for kind in FootprintKind}
    for found in footprints.near(directories.paths, table_uuid):
        same = table_uuid is not None and found.table_uuid == table_uuid
        if same or found.directory is None or directories.may_overlap([found.directory]):
            near[found.owner.kind][found.owner] = None
    return NearOwners(
        tables=tuple(owner.name for owner in near[FootprintKind.TABLE]),
        views=tuple(owner.name for owner in near[FootprintKind.VIEW]),
        dropped=frozenset(owner.metadata_location for owner in near[FootprintKind.DROPPED_TABLE]),
    )


def footprint_of_table(table: LoadedTable, owner: FootprintOwner) -> Footprint:
    """The directories of a table, if certainly all its files are in them."""
    named = list(referenced_in_metadata(table))
    metadata = table.metadata
    if may_have_files_elsewhere(table, named) or is_outside(metadata, named):
        return Footprint(owner, metadata.table_uuid, ())
    parents = [location.rpartition("/")[0] for location in named]
    return Footprint(owner, metadata.table_uuid, _directories([*table_directories(metadata), *parents]))


def footprint_of_view(metadata: ViewMetadata, owner: FootprintOwner) -> Footprint:
    """The directories of a view."""
    parent = owner.metadata_location.rpartition("/")[0]
    return Footprint(owner, None, _directories([metadata.location, metadata_directory(metadata), parent]))


def _read_unknown(io: FileIO, footprints: Footprints) -> None:
    """Read and record what is unknown; what cannot be read stays unknown."""
    read = _reader(io)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-footprints") as pool:
        for owners in footprints.unknown():
            found = [footprint for footprint in pool.map(read, owners) if footprint is not None]
            try:
                footprints.keep(found)
            except BerglineError:
                # recording is optional: the user may lack the right to write, or the database may not respond
                return


def _reader(io: FileIO) -> Callable[[FootprintOwner], Footprint | None]:
    tables, views = table_files(io), view_files(io)

    def read(owner: FootprintOwner) -> Footprint | None:
        try:
            if owner.kind is FootprintKind.VIEW:
                return footprint_of_view(views.load(owner.metadata_location), owner)
            metadata: TableMetadata = tables.load(owner.metadata_location)
            return footprint_of_table(LoadedTable(owner.name, metadata, owner.metadata_location), owner)
        except BerglineError:
            return None

    return read


def _directories(locations: Sequence[str]) -> tuple[FilesDirectory, ...]:
    """The directories to record: on a disk all, else those not inside another one; none if one is invalid."""
    try:
        absolute = list(dict.fromkeys(absolute_location(location).rstrip("/") for location in locations))
        found = [FilesDirectory(location, _path(location)) for location in absolute]
    except InvalidInputError:
        return ()
    if any(len(directory.location) > _LONGEST_DIRECTORY for directory in found):
        return ()
    return tuple(_outermost(found))


def _path(location: str) -> str | None:
    return None if scheme_of(location) == "file" else _RULES.loosely_below(location)


def _outermost(directories: Sequence[FilesDirectory]) -> Iterator[FilesDirectory]:
    kept: set[str] = set()
    for directory in sorted(directories, key=lambda d: d.path or ""):
        if directory.path is None or not any(directory.path.startswith(path) for path in kept):
            yield directory
            kept |= {directory.path} if directory.path is not None else set()
