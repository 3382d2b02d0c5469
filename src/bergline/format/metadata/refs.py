"""Snapshot references: branches and tags with their retention."""

from enum import StrEnum
from typing import Final

import msgspec

from bergline.arguments import check_text, shown
from bergline.errors import InvalidInputError
from bergline.format.encoding.integers import Int, Long

MAIN: Final = "main"
CREATED_ON: Final = "bergline.created-on-branch"
"""The property of a table that is on a branch of the lake alone: it is in no list but the branch's."""
_MAX_NAME_LENGTH = 255
_MOST = {"min_snapshots_to_keep": 2**31 - 1, "max_snapshot_age_ms": 2**63 - 1, "max_ref_age_ms": 2**63 - 1}


class SnapshotRefType(StrEnum):
    """Branch (moved by writes) or tag (fixed)."""

    BRANCH = "branch"
    TAG = "tag"

    @classmethod
    def _missing_(cls, value: object) -> "SnapshotRefType | None":
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class SnapshotRef(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The snapshot that a ref names, and its retention; unset values default to table properties."""

    snapshot_id: Long
    snapshot_ref_type: SnapshotRefType = msgspec.field(name="type")
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None

    def __post_init__(self) -> None:
        for setting, most in _MOST.items():
            value = getattr(self, setting)
            if value is None:
                continue
            name = setting.replace("_", "-")
            if type(value) is not int or value > most:
                raise InvalidInputError(f"expected a whole number up to {most} for {name}, found {shown(value)}")
            if value < 1:
                raise InvalidInputError(f"expected {name} above 0, found {value}")
        if not self.is_branch and (self.min_snapshots_to_keep or self.max_snapshot_age_ms):
            raise InvalidInputError("expected only max-ref-age-ms on a tag, found snapshot retention")

    @property
    def retention(self) -> tuple[int | None, int | None, int | None]:
        """`min-snapshots-to-keep`, `max-snapshot-age-ms` and `max-ref-age-ms`."""
        return self.min_snapshots_to_keep, self.max_snapshot_age_ms, self.max_ref_age_ms

    @property
    def is_branch(self) -> bool:
        """Whether writes may move it."""
        return self.snapshot_ref_type is SnapshotRefType.BRANCH


def check_ref_name(name: str) -> None:
    """Refuse names that are empty or longer than 255 characters."""
    check_text(name, "the name of a branch or tag")
    if not 0 < len(name) <= _MAX_NAME_LENGTH:
        raise InvalidInputError(f"expected a ref name of 1 to {_MAX_NAME_LENGTH} characters, found {len(name)}")
