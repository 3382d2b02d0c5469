"""Grants, roles and owners of a catalog, through its server."""

from collections.abc import Collection, Mapping
from typing import Any

from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.rest.protocol.names import encode_name
from bergline.errors import CommitUnknownError, NotFoundError
from bergline.governance.grants import protocol
from bergline.governance.grants.grant import Grant, Grantee, Role
from bergline.governance.grants.securable import Securable

_ABOUT = CallSubject("access", "")


class RestAccess:
    """Grants, roles and owners through the server, as far as this caller may see and change them."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def grants(self) -> list[Grant]:
        return sorted((body.value() for body in self._listed()), key=str)

    def grant(self, grants: Collection[Grant]) -> None:
        self._change(
            protocol.CREATE_GRANTS, _ABOUT, body=protocol.CreateGrantsRequest(tuple(map(protocol.grant_body, grants)))
        )

    def revoke(self, grants: Collection[Grant]) -> None:
        """Remove grants one by one, once all of them have been found."""
        numbers = {body.value(): body.id or "" for body in self._listed()}
        for grant in grants:
            if grant not in numbers:
                raise NotFoundError(f"no grant `{grant}`", kind="grant", name=str(grant), known=map(str, numbers))
        for grant in grants:
            self._change(
                protocol.REVOKE_GRANT, CallSubject("grant", str(grant)), names={"grant": encode_name(numbers[grant])}
            )

    def roles(self) -> list[Role]:
        response = self._session.calls.call(protocol.LIST_ROLES, _ABOUT)
        return [body.value() for body in self._session.calls.parsed(response, protocol.ListRolesResponse, _ABOUT).roles]

    def create_role(self, name: str) -> None:
        self._change(protocol.CREATE_ROLE, CallSubject("role", name), body=protocol.CreateRoleRequest(name))

    def drop_role(self, name: str) -> None:
        self._change(protocol.DROP_ROLE, CallSubject("role", name), names={"role": encode_name(name)})

    def change_members(self, role: str, add: Collection[Grantee], remove: Collection[Grantee]) -> None:
        body = protocol.ChangeRoleRequest(tuple(map(str, add)), tuple(map(str, remove)))
        self._change(protocol.CHANGE_ROLE, CallSubject("role", role), names={"role": encode_name(role)}, body=body)

    def owners(self) -> Mapping[Securable, Grantee]:
        response = self._session.calls.call(protocol.LIST_OWNERS, _ABOUT)
        return dict(
            body.value() for body in self._session.calls.parsed(response, protocol.ListOwnersResponse, _ABOUT).owners
        )

    def set_owner(self, securable: Securable, owner: Grantee) -> None:
        about = CallSubject(securable.kind.value, securable.path)
        self._change(protocol.SET_OWNER, about, body=protocol.OwnerBody(protocol.securable_body(securable), str(owner)))

    def _listed(self) -> tuple[protocol.GrantBody, ...]:
        response = self._session.calls.call(protocol.LIST_GRANTS, _ABOUT)
        return self._session.calls.parsed(response, protocol.ListGrantsResponse, _ABOUT).grants

    def _change(
        self, endpoint: Endpoint, about: CallSubject, *, names: Mapping[str, str] | None = None, body: Any = None
    ) -> None:
        try:
            self._session.calls.change(endpoint, about, names=names, body=body)
        except ChangeInDoubtError as error:
            raise CommitUnknownError(
                f"cannot find out whether the change for {about} was made: {error}",
                table=about.name,
                metadata_location=None,
                hints=["list the grants, roles or owners, and make the change again if it is missing"],
            ) from error
