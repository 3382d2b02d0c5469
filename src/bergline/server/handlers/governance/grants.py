"""Grants, roles and owners: who administers something gives privileges on it to others."""

from collections.abc import Iterable

from bergline.catalog.protection.caller import acting_as
from bergline.catalog.rest.protocol.names import decode_name
from bergline.errors import InvalidInputError, NotFoundError
from bergline.governance.grants import protocol
from bergline.governance.grants.grant import check_name, parse_member
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import Securable
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response

_LONGEST_NUMBER = 18
_MOST = 1000


def list_grants(context: ServerContext, request: Request) -> Response:
    """The caller's own grants, and those on what the caller administers."""
    own = set(context.access.refresh().identities(request.principal, request.groups))
    by = context.access.newest(request.principal, request.groups)
    found = context.access.store.numbered_grants()
    shown = [
        protocol.grant_body(grant, number)
        for number, grant in found.items()
        if grant.grantee in own or by.may(Privilege.ADMINISTER, grant.securable)
    ]
    return json_response(protocol.ListGrantsResponse(tuple(shown)))


def create_grants(context: ServerContext, request: Request) -> Response:
    """Add grants."""
    body: protocol.CreateGrantsRequest = request.read()
    _check_number(len(body.grants), "grants")
    grants = [grant.value() for grant in body.grants]
    _check_administers(context, request, [grant.securable for grant in grants])
    with acting_as(request.principal, request.groups):
        context.access.store.grant(grants)
    context.access.refresh()
    return NO_CONTENT


def revoke_grant(context: ServerContext, request: Request) -> Response:
    """Remove a grant by its number."""
    text = decode_name(request.names["grant"])
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    grant = context.access.store.numbered_grants().get(int(text)) if is_number else None
    if grant is None or not context.access.may(
        request.principal, request.groups, Privilege.ADMINISTER, grant.securable.at(None)
    ):
        raise NotFoundError(f"no grant `{text[:80]}` that you may revoke", kind="grant", name=text[:80])
    with acting_as(request.principal, request.groups):
        context.access.store.revoke([grant])
    context.access.refresh()
    return NO_CONTENT


def list_roles(context: ServerContext, request: Request) -> Response:
    """All roles with their members."""
    del request
    roles = (protocol.RoleBody(role.name, tuple(map(str, role.members))) for role in context.access.store.roles())
    return json_response(protocol.ListRolesResponse(tuple(roles)))


def create_role(context: ServerContext, request: Request) -> Response:
    """Create a role."""
    body: protocol.CreateRoleRequest = request.read()
    with acting_as(request.principal, request.groups):
        context.access.store.create_role(body.name)
    context.access.refresh()
    return NO_CONTENT


def change_role(context: ServerContext, request: Request) -> Response:
    """Add and remove members of a role."""
    body: protocol.ChangeRoleRequest = request.read()
    _check_number(len(body.add) + len(body.remove), "members")
    add, remove = list(map(parse_member, body.add)), list(map(parse_member, body.remove))
    with acting_as(request.principal, request.groups):
        context.access.store.change_members(_role(request), add, remove)
    context.access.refresh()
    return NO_CONTENT


def drop_role(context: ServerContext, request: Request) -> Response:
    """Drop a role, and the grants to it."""
    with acting_as(request.principal, request.groups):
        context.access.store.drop_role(_role(request))
    context.access.refresh()
    return NO_CONTENT


def list_owners(context: ServerContext, request: Request) -> Response:
    """Who owns what the caller may see."""
    found = context.access.store.owners().items()
    seen = context.access.seen(request.principal, request.groups, found, lambda item: item[0])
    owners = (protocol.OwnerBody(protocol.securable_body(securable), str(owner)) for securable, owner in sorted(seen))
    return json_response(protocol.ListOwnersResponse(tuple(owners)))


def set_owner(context: ServerContext, request: Request) -> Response:
    """Give something to another owner."""
    body: protocol.OwnerBody = request.read()
    securable, owner = body.value()
    _check_administers(context, request, [securable])
    with acting_as(request.principal, request.groups):
        context.access.store.set_owner(securable, owner)
    context.access.refresh()
    return NO_CONTENT


def _check_number(number: int, what: str) -> None:
    if not 0 < number <= _MOST:
        raise InvalidInputError(f"expected 1 to {_MOST} {what} in a request, found {number}")


def _role(request: Request) -> str:
    return check_name(decode_name(request.names["role"]), "role")


def _check_administers(context: ServerContext, request: Request, securables: Iterable[Securable]) -> None:
    for securable in securables:
        context.access.check(request.principal, request.groups, Privilege.ADMINISTER, securable.at(None))
