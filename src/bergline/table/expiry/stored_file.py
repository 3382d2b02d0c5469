"""A file of a table, whatever its kind."""

from enum import StrEnum

import msgspec

from bergline.format.manifest import FileContent


class FileKind(StrEnum):
    """What a file is for, in words for people; in the order in which files are deleted."""

    DATA = "data files"
    POSITION_DELETES = "position delete files"
    EQUALITY_DELETES = "equality delete files"
    MANIFEST = "manifests"
    MANIFEST_LIST = "manifest lists"
    STATISTICS = "statistics files"


class StoredFile(msgspec.Struct, frozen=True, gc=False):
    """Where a file is, and its size where metadata says it: of manifest lists it does not."""

    location: str
    kind: FileKind
    size: int | None = None


CONTENT_KINDS = {
    FileContent.DATA: FileKind.DATA,
    FileContent.POSITION_DELETES: FileKind.POSITION_DELETES,
    FileContent.EQUALITY_DELETES: FileKind.EQUALITY_DELETES,
}
