"""Who sends a request, however that was found out."""

from enum import StrEnum

import msgspec

from bergline.server.http.request import ANONYMOUS


class PrincipalKind(StrEnum):
    """How a principal was recognized."""

    TOKEN = "token"  # noqa: S105  (no secret)
    OIDC = "oidc"
    ANONYMOUS = "anonymous"


class Principal(msgspec.Struct, frozen=True):
    """The name under which changes are recorded, and the groups that grants and rules may name."""

    name: str
    groups: frozenset[str] = frozenset()
    kind: PrincipalKind = PrincipalKind.TOKEN


ANYBODY = Principal(ANONYMOUS, kind=PrincipalKind.ANONYMOUS)
"""Whoever comes to a server that needs no token."""
