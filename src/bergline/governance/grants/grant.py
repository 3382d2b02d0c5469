"""Grants: who holds which privilege on what."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from bergline.arguments import check_no_nul, check_text, shown
from bergline.catalog.identifiers import check_lengths
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import check_ref_name
from bergline.governance.grants.privilege import ABOUT_REFS, Privilege, parse_privilege
from bergline.governance.grants.securable import Securable, SecurableKind, make_securable, parse_securable

_ON, _REF, _TO, _FROM = "on", "ref", "to", "from"
_EXAMPLE: Final = "`write on table db.orders ref 'release/*' to role:etl`"


class GranteeKind(StrEnum):
    """The kinds of grantees."""

    PRINCIPAL = "principal"
    GROUP = "group"
    ROLE = "role"


class Grantee(msgspec.Struct, frozen=True, order=True):
    """A principal, a group of the identity provider, or a role of this catalog."""

    kind: GranteeKind
    name: str

    def __str__(self) -> str:
        is_plain = self.kind is GranteeKind.PRINCIPAL and not self.name.startswith(tuple(f"{k}:" for k in GranteeKind))
        return self.name if is_plain else f"{self.kind}:{self.name}"


class Grant(msgspec.Struct, frozen=True, order=True):
    """One privilege of one grantee on one thing."""

    grantee: Grantee
    privilege: Privilege
    securable: Securable

    def __post_init__(self) -> None:
        ref = self.securable.ref
        if ref is None:
            return
        if self.privilege not in ABOUT_REFS:
            names = ", ".join(f"`{one}`" for one in sorted(ABOUT_REFS))
            raise InvalidInputError(
                f"expected {names} for some refs alone, found `{self.privilege}`",
                hints=["who may read a table may read all its snapshots, on every branch"],
            )
        if self.securable.kind is SecurableKind.VIEW:
            raise InvalidInputError(f"expected refs of tables, found {self.securable.described}, which has none")
        check_ref_name(ref)
        check_lengths(ref)

    def __str__(self) -> str:
        return f"{self.privilege} on {self.securable} to {self.grantee}"


class Role(msgspec.Struct, frozen=True, order=True):
    """A named set of principals and groups."""

    name: str
    members: tuple[Grantee, ...] = ()


def principal(name: str) -> Grantee:
    """A principal."""
    return Grantee(GranteeKind.PRINCIPAL, name)


def parse_grantee(text: str | Grantee) -> Grantee:
    """`alice`, `group:analysts` or `role:etl`."""
    if isinstance(text, Grantee):
        return text
    kind, colon, name = check_text(text, "a name like `alice` or `role:etl`").partition(":")
    if colon and kind in list(GranteeKind):
        return Grantee(GranteeKind(kind), check_name(name, kind))
    return principal(check_name(text, "principal"))


def parse_member(text: str | Grantee) -> Grantee:
    """A member of a role: a principal or a group."""
    found = parse_grantee(text)
    if found.kind is GranteeKind.ROLE:
        raise InvalidInputError(f"expected a principal or a group as a member of a role, found `{found}`")
    return found


def check_name(name: str, what: str) -> str:
    """A name of a principal, group or role, as the database keeps it."""
    check_lengths(name)
    check_no_nul(name, f"the name of a {what}")
    if not name or name != name.strip():
        raise InvalidInputError(f"expected a name of a {what} without spaces around it, found {shown(name)}")
    return name


def make_grants(
    privileges: str | Collection[str], on: str | Securable, who: str | Grantee, ref: str | None = None
) -> tuple[Grant, ...]:
    """Grants from a caller's arguments; several privileges are given as text with commas or as a list."""
    names = privileges.split(",") if isinstance(privileges, str) else list(privileges)
    securable, grantee = parse_securable(on), parse_grantee(who)
    if ref is not None:
        securable = securable.at(ref)
    return tuple(dict.fromkeys(Grant(grantee, parse_privilege(name), securable) for name in names))


def parse_grants(words: Sequence[str], *, revokes: bool = False) -> tuple[Grant, ...]:
    """Grants from the words of a command: `read,write on table db.orders ref main to alice`."""
    said = _FROM if revokes else _TO
    example = _EXAMPLE.replace(" to ", f" {said} ")
    rest = list(words)
    try:
        privileges = rest.pop(0)
        _expect(rest, _ON, example)
        kind = rest.pop(0)
        name = None if kind.lower() == SecurableKind.CATALOG else rest.pop(0)
        ref = None
        if rest and rest[0].lower() == _REF:
            rest.pop(0)
            ref = rest.pop(0)
        _expect(rest, said, example)
        who = rest.pop(0)
    except IndexError:
        raise InvalidInputError(f"expected words like {example}, found `{' '.join(words)[:200]}`") from None
    if rest:
        raise InvalidInputError(f"expected nothing after the grantee, found `{rest[0][:80]}`")
    return make_grants(privileges, make_securable(kind, name), who, ref)


def _expect(rest: list[str], word: str, example: str) -> None:
    found = rest.pop(0)
    if found.lower() != word:
        raise InvalidInputError(f"expected `{word}`, found `{found[:80]}`", hints=[f"as in {example}"])
