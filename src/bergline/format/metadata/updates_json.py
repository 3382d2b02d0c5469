"""Updates in the JSON of REST clients, including older keys."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from bergline.errors import InvalidInputError
from bergline.format.encoding.wire import decode_json
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)


def parse_updates(data: bytes, source: str) -> tuple[Update, ...]:
    """Parse a JSON list of updates; partition fields without ids get them when applied."""
    return plain_updates(decode_json(data, tuple[WireUpdate, ...], source))


def plain_updates(updates: Iterable[Any]) -> tuple[Any, ...]:
    """Convert updates from their wire form."""
    return tuple(u.plain() if isinstance(u, _WireSetProperties | _WireRemoveProperties) else u for u in updates)


class _WireSetProperties(msgspec.Struct, tag_field="action", tag="set-properties"):
    updates: dict[str, str] | UnsetType = UNSET
    updated: dict[str, str] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.updates is UNSET and self.updated is UNSET:
            raise InvalidInputError("object missing required field `updates`")

    def plain(self) -> SetProperties:
        given = self.updated if self.updates is UNSET else self.updates
        return SetProperties({} if given is UNSET else given)


class _WireRemoveProperties(msgspec.Struct, tag_field="action", tag="remove-properties"):
    removals: tuple[str, ...] | UnsetType = UNSET
    removed: tuple[str, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.removals is UNSET and self.removed is UNSET:
            raise InvalidInputError("object missing required field `removals`")

    def plain(self) -> RemoveProperties:
        given = self.removed if self.removals is UNSET else self.removals
        return RemoveProperties(() if given is UNSET else given)


WireSharedUpdate = (
    AssignUuid | UpgradeFormatVersion | AddSchema | SetLocation | _WireSetProperties | _WireRemoveProperties
)
WireUpdate = (
    WireSharedUpdate
    | AddPartitionSpec
    | SetCurrentSchema
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | RemoveSnapshots
    | SetSnapshotRef
    | RemoveSnapshotRef
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)
