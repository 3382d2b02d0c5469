"""Decisions on access: all grants, roles and owners of a catalog at one moment, and what a caller may do by them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.ref_rule import matches
from bergline.governance.grants.grant import Grant, Grantee, GranteeKind, Role, principal
from bergline.governance.grants.privilege import ABOUT_REFS, IMPLIED, Privilege
from bergline.governance.grants.securable import CATALOG, Securable, SecurableKind, namespace_of

_MAX_CALLERS: Final = 10_000

_Key = tuple[SecurableKind, Namespace, str]
_Held = tuple[Privilege, str | None]
_Leading = Callable[[], Iterable[Collection[Namespace]]]
_Within = tuple[SecurableKind, Namespace]
_Named = Callable[[_Within], Iterable[AbstractSet[str]]]


class AccessDecision(StrEnum):
    """The decision on a request."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    """It may be seen, but the privilege is missing."""
    HIDDEN = "hidden"
    """It may not be seen: the response is as if it did not exist."""


class NamesSeen(Collection[str]):
    """Names in a namespace that a caller may see, some of which may not exist; owners may change concurrently."""

    def __init__(self, of: Iterable[AbstractSet[str]]) -> None:
        self._of = tuple(of)

    def __contains__(self, name: object) -> bool:
        return any(name in names for names in self._of)

    def __iter__(self) -> Iterator[str]:
        return iter({name for names in self._of for name in frozenset(names)})

    def __len__(self) -> int:
        """An upper limit: a name that is granted twice counts twice."""
        return sum(map(len, self._of))


class CallerAccess:
    """What one caller may do, by grants to the principal, its groups and their roles, and by ownership."""

    def __init__(
        self,
        held: Iterable[tuple[Privilege, Securable]],
        owns: Callable[[_Key], bool],
        owned: _Leading,
        owned_names: _Named,
    ) -> None:
        self._held: dict[_Key, list[_Held]] = {}
        self._owns = owns
        self._owned = owned
        self._owned_names = owned_names
        self._leading: set[Namespace] = set()
        self._names: dict[_Within, set[str]] = {}
        for privilege, securable in held:
            self._held.setdefault(_key(securable), []).append((privilege, securable.ref))
            self._leading.update(_levels(securable))
            if securable.name and Privilege.LIST in IMPLIED[privilege]:
                self._names.setdefault((securable.kind, securable.namespace), set()).add(securable.name)

    def may(self, privilege: Privilege, securable: Securable) -> bool:
        """Whether a grant on it or on what contains it has the privilege, or the caller owns it."""
        return any(
            self._owns(key)
            or any(_allows(held, ref, privilege, securable.ref) for held, ref in self._held.get(key, ()))
            for key in _keys(securable)
        )

    def may_somewhere(self, privilege: Privilege) -> bool:
        """Whether a grant on anything has the privilege, or the caller owns something."""
        held = (held for on_one in self._held.values() for held, _ in on_one)
        return self._owns(_key(CATALOG)) or any(privilege in IMPLIED[one] for one in held) or any(self._owned())

    def sees(self, securable: Securable) -> bool:
        """Whether its name may be known: it may be listed, or contains something that may."""
        if securable.kind is SecurableKind.CATALOG:
            return True
        if securable.kind is SecurableKind.NAMESPACE and any(
            securable.namespace in leading for leading in (self._leading, *self._owned())
        ):
            return True
        return self.may(Privilege.LIST, securable)

    def namespaces_seen(self, parent: Namespace) -> set[Namespace] | None:
        """The visible namespaces directly below one, some of which may not exist; None if all are visible."""
        if self.may(Privilege.LIST, namespace_of(parent) if parent else CATALOG):
            return None
        depth = len(parent)
        leading = (namespace for known in (self._leading, *self._owned()) for namespace in list(known))
        return {found for found in leading if len(found) == depth + 1 and found[:depth] == parent}

    def names_seen(self, kind: SecurableKind, namespace: Namespace) -> NamesSeen | None:
        """The visible names of tables or of views in a namespace; None if all are visible."""
        if self.may(Privilege.LIST, namespace_of(namespace)):
            return None
        within = kind, namespace
        return NamesSeen((self._names.get(within, set()), *self._owned_names(within)))

    def decide(
        self, privilege: Privilege | None, securable: Securable, seen: Securable | None = None
    ) -> AccessDecision:
        """Decide whether the caller has a privilege on something; None asks only to see it.

        For something that does not exist yet, `seen` is what must be visible in its place.
        """
        is_seen = self.sees(seen or securable)
        if is_seen if privilege is None else self.may(privilege, securable):
            return AccessDecision.ALLOWED
        return AccessDecision.FORBIDDEN if is_seen else AccessDecision.HIDDEN


class UnlimitedAccess(CallerAccess):
    """What everybody may do while there are no grants."""

    def __init__(self) -> None:
        super().__init__((), lambda _: True, lambda: (), lambda _: ())


class OwnerIndex:
    """Owners by what they own, the namespaces that lead to it, and the names in each."""

    def __init__(self, owners: Mapping[Securable, Grantee]) -> None:
        self.by_key: dict[_Key, Grantee] = {}
        self.owned: dict[Grantee, Counter[Namespace]] = {}
        self.names: dict[Grantee, dict[_Within, set[str]]] = {}
        self.note(owners)

    def note(self, owners: Mapping[Securable, Grantee | None] | Mapping[Securable, Grantee]) -> None:
        """Record changed owners; None removes one."""
        for securable, owner in owners.items():
            before = self.by_key.pop(_key(securable), None)
            if before is not None:
                self.owned[before].subtract(_levels(securable))
                self.owned[before] += Counter()  # drops the counts that are 0
                self._note_name(before, securable, is_owned=False)
            if owner is not None:
                self.by_key[_key(securable)] = owner
                self.owned.setdefault(owner, Counter()).update(_levels(securable))
                self._note_name(owner, securable, is_owned=True)

    def _note_name(self, owner: Grantee, securable: Securable, *, is_owned: bool) -> None:
        if not securable.name:
            return
        within, of_owner = (securable.kind, securable.namespace), self.names.setdefault(owner, {})
        if is_owned:
            of_owner.setdefault(within, set()).add(securable.name)
        elif within in of_owner:
            of_owner[within].discard(securable.name)
            if not of_owner[within]:
                del of_owner[within]


class AccessRules:
    """All grants, roles and owners; without a grant everybody may do everything.

    Only owners change in place: there may be very many, which later rules take over from earlier ones.
    """

    def __init__(
        self,
        grants: Iterable[Grant] = (),
        roles: Iterable[Role] = (),
        owners: Mapping[Securable, Grantee] | OwnerIndex | None = None,
    ) -> None:
        self.grants = tuple(grants)
        self.roles = {role.name: role for role in roles}
        self.owners = owners if isinstance(owners, OwnerIndex) else OwnerIndex(owners or {})
        self._of: dict[Grantee, list[tuple[Privilege, Securable]]] = {}
        for grant in self.grants:
            self._of.setdefault(grant.grantee, []).append((grant.privilege, grant.securable))
        self._roles_of: dict[Grantee, list[Grantee]] = {}
        for role in self.roles.values():
            for member in role.members:
                self._roles_of.setdefault(member, []).append(Grantee(GranteeKind.ROLE, role.name))
        self._callers: dict[tuple[str, frozenset[str]], CallerAccess] = {}

    def note_owners(self, owners: Mapping[Securable, Grantee | None]) -> None:
        """Record changed owners; None removes one."""
        self.owners.note(owners)

    @property
    def is_active(self) -> bool:
        """Whether there is a grant, so that everything else is denied."""
        return bool(self.grants)

    def of(self, name: str, groups: frozenset[str] = frozenset()) -> CallerAccess:
        """What a principal in these groups may do."""
        known = self._callers.get((name, groups))
        if known is None:
            own = frozenset(self.identities(name, groups))
            known = CallerAccess(
                (held for who in own for held in self._of.get(who, ())),
                lambda key: self.owners.by_key.get(key) in own,
                lambda: [self.owners.owned[who] for who in own if who in self.owners.owned],
                lambda within: [self.owners.names.get(who, {}).get(within, set()) for who in own],
            )
            if len(self._callers) >= _MAX_CALLERS:
                self._callers.clear()
            self._callers[name, groups] = known
        return known

    def identities(self, name: str, groups: frozenset[str] = frozenset()) -> tuple[Grantee, ...]:
        """A principal, its groups, and the roles of any of them."""
        own = [principal(name), *(Grantee(GranteeKind.GROUP, group) for group in sorted(groups))]
        roles = [role for who in own for role in self._roles_of.get(who, ())]
        return tuple(dict.fromkeys((*own, *roles)))


def _key(securable: Securable) -> _Key:
    return securable.kind, securable.namespace, securable.name


def _levels(securable: Securable) -> Iterator[Namespace]:
    """The namespaces that lead to it, itself among them if it is one."""
    levels = securable.namespace
    return (levels[:depth] for depth in range(1, len(levels) + 1))


def _keys(securable: Securable) -> Iterable[_Key]:
    """It and everything that contains it."""
    yield SecurableKind.CATALOG, (), ""
    levels = securable.namespace
    for depth in range(1, len(levels) + 1):
        yield SecurableKind.NAMESPACE, levels[:depth], ""
    if securable.name:
        yield securable.kind, levels, securable.name


def _allows(held: Privilege, pattern: str | None, asked: Privilege, ref: str | None) -> bool:
    if asked not in IMPLIED[held]:
        return False
    return pattern is None or ref is None or asked not in ABOUT_REFS or matches(pattern, ref)
