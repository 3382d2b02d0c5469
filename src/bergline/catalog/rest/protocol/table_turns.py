"""Bodies and the header of bergline's own endpoints for turns on tables."""

from typing import Annotated, Final

import msgspec

from bergline.catalog.turns import LONGEST_TURN_MS

TURN_HEADER: Final = "bergline-turn"
"""Sent with the commits of the holder of a turn: who that is."""
TurnHolder = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern="^[0-9A-Za-z-]+$")]


class TakeTurnRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """Who asks for a turn, by a name that nobody else has, and for how long."""

    holder: TurnHolder
    lease_ms: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_TURN_MS)]


class TakeTurnResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Whether the holder has it; if not, it may ask again later."""

    granted: bool
