"""The newest metadata file of a table, for a pointer that may come from an older backup.

Names only say where to look: a file counts if its metadata log, or that of an earlier file in it, names the pointer.
"""

from collections import defaultdict

import msgspec

from bergline.errors import BerglineError
from bergline.format.metadata.gzip import MAX_METADATA_BYTES, unpack
from bergline.format.metadata.json import parse_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.reports.check.metadata_file import metadata_version

_MOST_TRIED = 20
_MOST_STEPS = 1000


class NewestMetadata(msgspec.Struct, frozen=True):
    """The last state that is certain, and files of later commits of which at most one happened."""

    location: str
    doubtful: tuple[str, ...] = ()


def find_newest_metadata(io: FileIO, pointer: str, table_uuid: str | None = None) -> NewestMetadata:
    """The newest metadata file beside the pointer's that descends from it; the pointer itself if there is none."""
    tried = 0
    for files in _later_files(io, pointer):
        descending: dict[str, TableMetadata] = {}
        for place in files:
            tried += 1
            metadata = _read(io, place)
            if metadata is None or table_uuid not in {None, metadata.table_uuid}:
                continue
            if _descends(io, metadata, pointer):
                descending[place] = metadata
        if len(descending) == 1:
            return NewestMetadata(next(iter(descending)))
        if descending:  # all of them were attempts on the same base, so the base was committed
            base = next(iter(descending.values())).metadata_log[-1].metadata_file
            return NewestMetadata(base, tuple(sorted(descending)))
        if tried >= _MOST_TRIED:
            break
    return NewestMetadata(pointer)


def _later_files(io: FileIO, pointer: str) -> list[list[str]]:
    """Metadata files with higher numbers than the pointer's, by number, the highest first."""
    own = metadata_version(pointer)
    found: dict[int, list[str]] = defaultdict(list)
    for place in io.list(pointer.rpartition("/")[0]):
        version = metadata_version(place)
        if version is not None and (own is None or version > own) and normalized(place) != normalized(pointer):
            found[version].append(place)
    return [found[version] for version in sorted(found, reverse=True)]


def _descends(io: FileIO, metadata: TableMetadata, pointer: str) -> bool:
    """Whether the logs of metadata and of its earlier files, which each go back some way, name a file."""
    wanted = normalized(pointer)
    known: TableMetadata | None = metadata
    for _ in range(_MOST_STEPS):
        if known is None or not known.metadata_log:
            return False
        if any(normalized(entry.metadata_file) == wanted for entry in known.metadata_log):
            return True
        known = _read(io, known.metadata_log[0].metadata_file)
    return False


def _read(io: FileIO, place: str) -> TableMetadata | None:
    try:
        return parse_metadata(unpack(io.read(place, MAX_METADATA_BYTES), place), place)
    except BerglineError:
        return None
