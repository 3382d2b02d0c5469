"""View updates and requirements, with the names of the REST protocol; `apply` applies them."""

from typing import assert_never

import msgspec

from bergline.errors import AlreadyExistsError, ConflictError
from bergline.format.encoding.integers import Int
from bergline.format.encoding.wire import decode_json
from bergline.format.metadata.requirements import AssertCreate
from bergline.format.metadata.updates import (
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from bergline.format.metadata.updates_json import WireSharedUpdate, plain_updates
from bergline.format.view.view_metadata import ViewMetadata, ViewVersion


class AddViewVersion(msgspec.Struct, frozen=True, tag_field="action", tag="add-view-version", rename="kebab"):
    """Add a version; an equal one is reused. Schema -1 is the one added last."""

    view_version: ViewVersion


class SetCurrentViewVersion(
    msgspec.Struct, frozen=True, tag_field="action", tag="set-current-view-version", rename="kebab"
):
    """Make a version current; -1 is the one added last."""

    view_version_id: Int


class AssertViewUuid(msgspec.Struct, frozen=True, tag_field="type", tag="assert-view-uuid"):
    """The view must be the same one, not one re-created under its name."""

    uuid: str


ViewUpdate = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)
ViewRequirement = AssertCreate | AssertViewUuid


def check_view_requirements(view: ViewMetadata | None, requirements: tuple[ViewRequirement, ...], name: str) -> None:
    """Raise ConflictError for the first requirement that no longer holds."""
    for requirement in requirements:
        match requirement:
            case AssertCreate():
                if view is not None:
                    message, condition = f"view `{name}` exists already", "VIEW_ALREADY_EXISTS"
                    raise AlreadyExistsError(message, kind="view", name=name, condition=condition)
            case AssertViewUuid(uuid):
                found = view.view_uuid if view else None
                if found is None or found.lower() != uuid.lower():
                    raise ConflictError(
                        f"expected view `{name}` with uuid {uuid}, found {found}: "
                        "it was dropped or re-created meanwhile"
                    )
            case _:
                assert_never(requirement)


WireViewUpdate = WireSharedUpdate | AddViewVersion | SetCurrentViewVersion


def parse_view_updates(data: bytes, source: str) -> tuple[ViewUpdate, ...]:
    """Parse a JSON list of view updates."""
    return plain_updates(decode_json(data, tuple[WireViewUpdate, ...], source))
