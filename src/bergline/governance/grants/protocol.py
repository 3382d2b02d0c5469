"""Bodies of the endpoints for grants, roles and owners."""

import msgspec

from bergline.catalog.identifiers import Namespace, TableName, check_lengths, parse_namespace, parse_table_name
from bergline.catalog.rest.protocol.endpoints import OWN, Endpoint, endpoints_in
from bergline.errors import InvalidInputError
from bergline.governance.grants.grant import Grant, Grantee, Role, check_name, parse_grantee, parse_member
from bergline.governance.grants.privilege import parse_privilege
from bergline.governance.grants.securable import CATALOG, Securable, SecurableKind, namespace_of, table_of, view_of


class SecurableBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a grant is about."""

    kind: str
    namespace: Namespace = ()
    name: str = ""

    def value(self) -> Securable:
        """The securable."""
        match self.kind:
            case SecurableKind.CATALOG:
                return CATALOG
            case SecurableKind.NAMESPACE:
                check_lengths(".".join(self.namespace))
                return namespace_of(parse_namespace(self.namespace))
            case SecurableKind.TABLE | SecurableKind.VIEW:
                name = parse_table_name(TableName(self.namespace, self.name))
                check_lengths(".".join(name.namespace), name.name)
                return table_of(name) if self.kind == SecurableKind.TABLE else view_of(name)
        raise InvalidInputError(f"expected catalog, namespace, table or view, found `{self.kind[:80]}`")


class GrantBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A grant; `to` is `alice`, `group:analysts` or `role:etl`."""

    privilege: str
    on: SecurableBody
    to: str
    ref: str | None = None
    id: str | None = None
    """The number by which it is revoked."""

    def value(self) -> Grant:
        """The grant."""
        return Grant(parse_grantee(self.to), parse_privilege(self.privilege), self.on.value().at(self.ref))


class CreateGrantsRequest(msgspec.Struct, frozen=True):
    """Grants to add, all or none."""

    grants: tuple[GrantBody, ...]


class ListGrantsResponse(msgspec.Struct, frozen=True):
    """The grants that the caller may see."""

    grants: tuple[GrantBody, ...]


class RoleBody(msgspec.Struct, frozen=True):
    """A role with its members."""

    name: str
    members: tuple[str, ...] = ()

    def value(self) -> Role:
        """The role."""
        return Role(check_name(self.name, "role"), tuple(map(parse_member, self.members)))


class ListRolesResponse(msgspec.Struct, frozen=True):
    """All roles."""

    roles: tuple[RoleBody, ...]


class CreateRoleRequest(msgspec.Struct, frozen=True):
    """A role to create."""

    name: str


class ChangeRoleRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Members to add to a role and to remove from it."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class OwnerBody(msgspec.Struct, frozen=True):
    """Who owns something."""

    on: SecurableBody
    owner: str

    def value(self) -> tuple[Securable, Grantee]:
        """The securable and its owner."""
        return self.on.value(), parse_grantee(self.owner)


class ListOwnersResponse(msgspec.Struct, frozen=True):
    """Owners of what the caller may see."""

    owners: tuple[OwnerBody, ...]


def securable_body(securable: Securable) -> SecurableBody:
    """A securable as it is sent."""
    return SecurableBody(securable.kind.value, securable.namespace, securable.name)


def grant_body(grant: Grant, number: int | None = None) -> GrantBody:
    """A grant as it is sent."""
    of = grant.securable
    sent_id = None if number is None else str(number)
    return GrantBody(grant.privilege.value, securable_body(of), str(grant.grantee), of.ref, sent_id)


LIST_GRANTS = Endpoint("list_grants", "GET", f"{OWN}/grants", response=ListGrantsResponse)
CREATE_GRANTS = Endpoint("create_grants", "POST", f"{OWN}/grants", CreateGrantsRequest, status=204)
REVOKE_GRANT = Endpoint("revoke_grant", "DELETE", f"{OWN}/grants/{{grant}}", status=204)
LIST_ROLES = Endpoint("list_roles", "GET", f"{OWN}/roles", response=ListRolesResponse)
CREATE_ROLE = Endpoint("create_role", "POST", f"{OWN}/roles", CreateRoleRequest, status=204)
CHANGE_ROLE = Endpoint("change_role", "POST", f"{OWN}/roles/{{role}}/members", ChangeRoleRequest, status=204)
DROP_ROLE = Endpoint("drop_role", "DELETE", f"{OWN}/roles/{{role}}", status=204)
LIST_OWNERS = Endpoint("list_owners", "GET", f"{OWN}/owners", response=ListOwnersResponse)
SET_OWNER = Endpoint("set_owner", "POST", f"{OWN}/owners", OwnerBody, status=204)

GRANT_ENDPOINTS = endpoints_in(vars())
