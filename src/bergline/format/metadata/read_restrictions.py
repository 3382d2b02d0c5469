"""What a catalog demands of those who read the rows of a table."""

import msgspec


class ReadRestrictions(msgspec.Struct, frozen=True):
    """Row filters and column masks that came with a load of a table; they are known, and not applied."""

    table: str
    """The table's name in its catalog."""
    demands: tuple[str, ...]
    """What is demanded, in words."""
