"""Snapshot references: branches and tags with their retention."""

from enum import StrEnum
from typing import Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.integers import Int, Long

MAIN: Final = "main"
_MAX_NAME_LENGTH = 255


class SnapshotRefType(StrEnum):
    """What a ref may do: branches move with writes, tags stay."""

    BRANCH = "branch"
    TAG = "tag"

    @classmethod
    def _missing_(cls, value: object) -> "SnapshotRefType | None":
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class SnapshotRef(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A name's target and how long it and its history are kept; absent settings come from the table."""

    snapshot_id: Long
    snapshot_ref_type: SnapshotRefType = msgspec.field(name="type")
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None

    def __post_init__(self) -> None:
        for setting in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value = getattr(self, setting)
            if value is not None and value < 1:
                raise InvalidInputError(f"expected {setting.replace('_', '-')} above 0, found {value}")
        if not self.is_branch and (self.min_snapshots_to_keep or self.max_snapshot_age_ms):
            raise InvalidInputError("expected only max-ref-age-ms on a tag, found snapshot retention")

    @property
    def is_branch(self) -> bool:
        """Whether writes may move it."""
        return self.snapshot_ref_type is SnapshotRefType.BRANCH


def check_ref_name(name: str) -> None:
    """Refuse names that are empty or longer than 255 characters."""
    if not isinstance(name, str):
        raise InvalidInputError(f"expected the name of a branch or tag, found {name!r}")
    if not 0 < len(name) <= _MAX_NAME_LENGTH:
        raise InvalidInputError(f"expected a ref name of 1 to {_MAX_NAME_LENGTH} characters, found {len(name)}")
