"""How much expiry deletes after it has removed snapshots; the names are those of Java's `CleanupLevel`."""

from enum import StrEnum
from typing import Any

from bergline.errors import InvalidInputError
from bergline.format.arguments import shown


class CleanupLevel(StrEnum):
    """What is deleted of what no snapshot needs any more."""

    ALL = "all"
    METADATA = "metadata"
    """Manifests, manifest lists and statistics; data and delete files stay."""
    NONE = "none"


_NAMES = {**{level.value: level for level in CleanupLevel}, "metadata_only": CleanupLevel.METADATA}


def parse_level(level: Any) -> CleanupLevel:
    """A level by its name, in small or large letters; Java's METADATA_ONLY too."""
    found = _NAMES.get(level.lower()) if isinstance(level, str) else None
    if found is None:
        raise InvalidInputError(f"expected a level of all, metadata or none, found {shown(level)}")
    return found
