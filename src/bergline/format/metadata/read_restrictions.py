"""What a catalog demands of readers of a table's rows."""

import msgspec


class ReadRestrictions(msgspec.Struct, frozen=True):
    """Row filters and column masks that came with a load of a table; bergline recognizes but does not apply them."""

    table: str
    """The table's name in its catalog."""
    demands: tuple[str, ...]
    """A description of what is demanded."""
