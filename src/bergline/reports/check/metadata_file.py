"""The pointer and the metadata file of a table: read from storage, whatever they contain."""

import re

from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, FormatError, NotFoundError, UnsupportedError
from bergline.format.metadata.gzip import MAX_METADATA_BYTES, unpack
from bergline.format.metadata.invariants import broken_invariants
from bergline.format.metadata.json import parse_metadata, parse_unchecked_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.reports.check.findings import RESTORE, Findings

_NAME = re.compile(r"(?:^|/)v?(\d{1,18})[^/]*\.metadata\.json(?:\.gz)?$|(?:^|/)v(\d{1,18})\.gz\.metadata\.json$")
_MOST_TRIED = 10


def read_pointed_metadata(
    catalog: Catalog, name: TableName, findings: Findings
) -> tuple[str | None, TableMetadata | None]:
    """The table's pointer and metadata, even if inconsistent; None if it cannot be parsed at all.

    NotFoundError if there is no such table.
    """
    loaded: TableMetadata | None = None
    pointer: str | None = None
    try:
        found = catalog.load_table(name)  # first, because a REST server vends the credentials for the file with it
        loaded, pointer = found.metadata, found.metadata_location
    except BerglineError as error:
        if isinstance(error, NotFoundError) and error.kind != "file":
            raise
        try:
            pointer = catalog.pointer(name)
        except BerglineError:
            findings.error("table-unreadable", f"table `{name}`", str(error), "repair the catalog, or try again later")
            return None, None
    if not pointer:
        return None, loaded
    return pointer, read_metadata(catalog.io, pointer, loaded, findings)


def metadata_version(location: str) -> int | None:
    """The number in the name of a metadata file; None if it has none, or is not a metadata file."""
    match = _NAME.search(location)
    return None if match is None else int(match[1] or match[2])


def read_metadata(io: FileIO, pointer: str, loaded: TableMetadata | None, findings: Findings) -> TableMetadata | None:
    """The metadata in a file, even if inconsistent; `loaded` if the file cannot be read."""
    try:
        text = unpack(io.read(pointer, MAX_METADATA_BYTES), pointer)
    except NotFoundError:
        message = "the catalog points to a metadata file that does not exist"
        findings.error("metadata-missing", pointer, message, _mend(io, pointer))
        return loaded
    except BerglineError as error:
        findings.error("metadata-unreadable", pointer, str(error), _mend(io, pointer))
        return loaded
    try:
        return parse_metadata(text, pointer)
    except UnsupportedError as error:
        findings.warning("metadata-unsupported", pointer, str(error), "check it with the engine that wrote it")
        return None
    except FormatError as error:
        whole = error
    try:
        metadata = parse_unchecked_metadata(text, pointer)
    except BerglineError:
        findings.error("metadata-unreadable", pointer, str(whole), _mend(io, pointer))
        return None
    mend = _mend(io, pointer)
    for broken in broken_invariants(metadata):
        findings.error("metadata-contradicts-itself", pointer, str(broken), mend)
    return metadata


def _mend(io: FileIO, pointer: str) -> str:
    """What would repair a broken metadata file: an earlier one that can be read, if there is one."""
    earlier = _newest_readable(io, pointer)
    if earlier is None:
        return RESTORE
    return f"{RESTORE}; or drop the table without purging it, and register {earlier}, which lacks later commits"


def _newest_readable(io: FileIO, pointer: str) -> str | None:
    try:
        beside = io.list(pointer.rsplit("/", 1)[0])
    except BerglineError:
        return None
    versions = [(version, place) for place in beside if (version := metadata_version(place)) is not None]
    versions = [one for one in versions if not one[1].endswith(pointer.rsplit("/", 1)[-1])]
    for _, place in sorted(versions, reverse=True)[:_MOST_TRIED]:
        try:
            parse_metadata(unpack(io.read(place, MAX_METADATA_BYTES), place), place)
        except BerglineError:
            continue
        return place
    return None
