"""How grants, roles and owners are changed, in a catalog's database or through its server."""

from collections.abc import Collection, Mapping
from typing import Protocol

from bergline.governance.grants.grant import Grant, Grantee, Role
from bergline.governance.grants.securable import Securable


class AccessManagement(Protocol):
    """The grants, roles and owners of one catalog; each change happens as a whole, or not at all."""

    def grants(self) -> list[Grant]:
        """The grants that the caller may see: all for an administrator."""
        ...

    def grant(self, grants: Collection[Grant]) -> None:
        """Add grants; those that exist stay.

        RefusedError without the privilege to administer the securable, and for the first grant of a catalog unless it
        is made in the database itself. InvalidInputError if the first grant is not `administer` on the catalog.
        """
        ...

    def revoke(self, grants: Collection[Grant]) -> None:
        """Remove grants; NotFoundError if one does not exist, RefusedError if nobody could administer the catalog."""
        ...

    def roles(self) -> list[Role]:
        """The roles by name."""
        ...

    def create_role(self, name: str) -> None:
        """Create a role; AlreadyExistsError if the name is taken."""
        ...

    def drop_role(self, name: str) -> None:
        """Drop a role with all grants to it; NotFoundError if there is none."""
        ...

    def change_members(self, role: str, add: Collection[Grantee], remove: Collection[Grantee]) -> None:
        """Add and remove members of a role; NotFoundError for a role or a member that is not there."""
        ...

    def owners(self) -> Mapping[Securable, Grantee]:
        """Owners by securable, as far as the caller may see them."""
        ...

    def set_owner(self, securable: Securable, owner: Grantee) -> None:
        """Transfer something to another owner."""
        ...
