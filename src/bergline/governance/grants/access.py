"""Who may do what on a server: grants, roles and owners, as a lake offers them."""

from collections.abc import Collection, Iterable

from bergline.errors import UnsupportedError
from bergline.governance.grants.grant import Grant, Grantee, Role, make_grants, parse_grantee, parse_member
from bergline.governance.grants.management import AccessManagement
from bergline.governance.grants.securable import Securable, parse_securable


class LakeAccess:
    """Grants, roles and owners of a catalog that `bergline serve` serves, in its database or through the server.

    Securables are named like `catalog`, `namespace db`, `table db.orders` and `view db.recent`; grantees like `alice`,
    `group:analysts` and `role:etl`.
    """

    def __init__(self, managed: AccessManagement | None) -> None:
        if managed is None:
            raise UnsupportedError(
                "expected a catalog in SQLite or PostgreSQL, or a server, to have grants, found another",
                hints=["`bergline serve` enforces grants, on a catalog in SQLite or PostgreSQL"],
            )
        self._managed = managed

    def grant(
        self, privileges: str | Collection[str], *, on: str | Securable, to: str | Grantee, ref: str | None = None
    ) -> None:
        """Grant privileges; `ref` limits `write`, `publish` and `manage-refs` to refs such as `release/*`."""
        self._managed.grant(make_grants(privileges, on, to, ref))

    def revoke(
        self,
        privileges: str | Collection[str],
        *,
        on: str | Securable,
        from_: str | Grantee,
        ref: str | None = None,
    ) -> None:
        """Revoke privileges, with the arguments with which they were granted."""
        self._managed.revoke(make_grants(privileges, on, from_, ref))

    def grants(self, *, to: str | Grantee | None = None, on: str | Securable | None = None) -> list[Grant]:
        """The grants that the caller may see: all, those to a grantee, or those directly on a securable."""
        who = None if to is None else parse_grantee(to)
        what = None if on is None else parse_securable(on)
        return [
            grant
            for grant in self._managed.grants()
            if who in {None, grant.grantee} and what in {None, grant.securable.at(None)}
        ]

    def roles(self) -> list[Role]:
        """The roles with their members."""
        return self._managed.roles()

    def create_role(self, name: str, members: Iterable[str | Grantee] = ()) -> None:
        """Create a role of principals and groups."""
        added = [parse_member(member) for member in members]
        self._managed.create_role(name)
        if added:
            self._managed.change_members(name, added, ())

    def drop_role(self, name: str) -> None:
        """Drop a role, with all grants to it."""
        self._managed.drop_role(name)

    def add_to_role(self, role: str, *members: str | Grantee) -> None:
        """Add principals and groups to a role."""
        self._managed.change_members(role, [parse_member(member) for member in members], ())

    def remove_from_role(self, role: str, *members: str | Grantee) -> None:
        """Remove principals and groups from a role."""
        self._managed.change_members(role, (), [parse_member(member) for member in members])

    def owner(self, of: str | Securable) -> Grantee | None:
        """The owner of a namespace, table or view; None if it has none."""
        return self._managed.owners().get(parse_securable(of))

    def set_owner(self, of: str | Securable, to: str | Grantee) -> None:
        """Transfer a namespace, table or view to another owner."""
        self._managed.set_owner(parse_securable(of), parse_grantee(to))

    def apply(self, *, grant: Collection[Grant] = (), revoke: Collection[Grant] = ()) -> None:
        """Add grants, then remove others, as values."""
        if grant:
            self._managed.grant(grant)
        if revoke:
            self._managed.revoke(revoke)
