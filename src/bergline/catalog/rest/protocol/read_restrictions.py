"""The `read-restrictions` of a load result: whether a server restricts what a client may read of a table."""

from typing import Any

from bergline.format.metadata.read_restrictions import ReadRestrictions

_MASKS, _FILTER = "required-column-projections", "required-row-filter"


def read_restrictions(table: str, content: Any) -> ReadRestrictions | None:
    """The restrictions in a response; None only for what is certainly empty, whatever else a server may send."""
    if content is None or content == {}:
        return None
    if not isinstance(content, dict):
        return ReadRestrictions(table, ("restrictions of an unknown kind",))
    demands = []
    if content.get(_FILTER) is not None:
        demands.append("a row filter")
    if content.get(_MASKS) not in (None, []):
        demands.append("column masks")
    demands += [f"`{name[:80]}`" for name, value in content.items() if value is not None and name not in _KNOWN]
    return ReadRestrictions(table, tuple(demands)) if demands else None


_KNOWN = {_MASKS, _FILTER}
