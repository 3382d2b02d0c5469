"""How a client and bergline's server agree that an append may go onto whatever head its branch has."""

from typing import Final

from bergline.errors import InvalidInputError

MAY_MOVE_PROPERTY: Final = "bergline.may-move"
"""The configuration property of a server that heeds the header."""
MAY_MOVE_HEADER: Final = "bergline-may-move"
"""With a commit to one table: `true` for an append that means the same on every head, `false` for anything else."""


def parse_may_move(text: str | None) -> bool:
    """What the header says; without one it may not: another client's append may have been checked against its base."""
    if text is None:
        return False
    if text.lower() not in {"true", "false"}:
        raise InvalidInputError(f"expected true or false in the header `{MAY_MOVE_HEADER}`, found `{text[:40]}`")
    return text.lower() == "true"
