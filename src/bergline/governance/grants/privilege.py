"""Privileges, and which others each of them contains."""

from enum import StrEnum
from typing import Final

from bergline.errors import InvalidInputError, near_names


class Privilege(StrEnum):
    """Something that a grant allows."""

    LIST = "list"
    """See that it exists."""
    READ = "read"
    """Load it, plan scans, get credentials to read its files."""
    WRITE = "write"
    """Commit to its branches, change its columns and properties."""
    CREATE = "create"
    """Create namespaces, tables and views."""
    DROP = "drop"
    """Drop or rename it."""
    MANAGE_REFS = "manage-refs"
    """Create, drop, rename, roll back and replace branches and tags, change their retention."""
    PUBLISH = "publish"
    """Move a branch forward to what is on another branch."""
    ADMINISTER = "administer"
    """Everything, and grant it to others."""


ABOUT_REFS: Final = frozenset({Privilege.WRITE, Privilege.PUBLISH, Privilege.MANAGE_REFS})
"""Privileges that a pattern can limit to some branches and tags."""

IMPLIED: Final[dict[Privilege, frozenset[Privilege]]] = {
    Privilege.LIST: frozenset({Privilege.LIST}),
    Privilege.READ: frozenset({Privilege.READ, Privilege.LIST}),
    Privilege.WRITE: frozenset({Privilege.WRITE, Privilege.READ, Privilege.LIST}),
    Privilege.CREATE: frozenset({Privilege.CREATE, Privilege.LIST}),
    Privilege.DROP: frozenset({Privilege.DROP, Privilege.LIST}),
    Privilege.MANAGE_REFS: frozenset({Privilege.MANAGE_REFS, Privilege.LIST}),
    Privilege.PUBLISH: frozenset({Privilege.PUBLISH, Privilege.LIST}),
    Privilege.ADMINISTER: frozenset(Privilege),
}
"""The privileges that each one contains, including itself."""


def parse_privilege(text: str) -> Privilege:
    """A privilege by its name."""
    name = text.strip().lower().replace("_", "-")
    if name not in list(Privilege):
        near = near_names(name, list(Privilege))
        raise InvalidInputError(
            f"expected one of {', '.join(f'`{one}`' for one in Privilege)} as a privilege, found `{text[:80]}`",
            hints=[f"did you mean `{near[0]}`?"] if near else [],
        )
    return Privilege(name)
