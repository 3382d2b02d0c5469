"""Where an engine looks up the files of a scan, by Iceberg's table properties."""

from enum import StrEnum
from typing import Final

from bergline.errors import InvalidInputError

DATA_MODE: Final = "read.data-planning-mode"
DELETE_MODE: Final = "read.delete-planning-mode"


class PlanningMode(StrEnum):
    """Iceberg's planning modes."""

    AUTO = "auto"
    LOCAL = "local"
    DISTRIBUTED = "distributed"


def check_planning_mode(key: str, value: str) -> PlanningMode:
    """The mode with this name, ignoring case."""
    try:
        return PlanningMode(value.lower())
    except ValueError:
        raise InvalidInputError(f"expected {', '.join(PlanningMode)} for `{key}`, found `{value}`") from None
