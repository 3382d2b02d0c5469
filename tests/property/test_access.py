"""Decisions on access against a plain reading of the grants, one by one."""

from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.governance.grants.access_rules import AccessDecision, AccessRules
from bergline.governance.grants.grant import Grant, Grantee, GranteeKind, Role
from bergline.governance.grants.privilege import ABOUT_REFS, IMPLIED, Privilege
from bergline.governance.grants.securable import CATALOG, Securable, SecurableKind, namespace_of

NAMES = st.sampled_from(["a", "b"])
NAMESPACES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
THINGS = st.builds(Securable, st.sampled_from([SecurableKind.TABLE, SecurableKind.VIEW]), NAMESPACES, NAMES)
SECURABLES = st.one_of(st.just(CATALOG), NAMESPACES.map(namespace_of), THINGS)
PRIVILEGES = st.sampled_from(Privilege)
MEMBERS = st.builds(Grantee, st.sampled_from([GranteeKind.PRINCIPAL, GranteeKind.GROUP]), NAMES)
GRANTEES = st.one_of(MEMBERS, st.builds(Grantee, st.just(GranteeKind.ROLE), NAMES))
REFS = st.sampled_from([None, "main", "dev/x"])


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    privilege, securable = draw(PRIVILEGES), draw(SECURABLES)
    if privilege in ABOUT_REFS and securable.kind is not SecurableKind.VIEW:
        securable = securable.at(draw(st.sampled_from([None, "main", "dev/*", "*"])))
    return Grant(draw(GRANTEES), privilege, securable)


def covers(outer: Securable, inner: Securable) -> bool:
    match outer.kind:
        case SecurableKind.CATALOG:
            return True
        case SecurableKind.NAMESPACE:
            return inner.namespace[: len(outer.namespace)] == outer.namespace
        case _:
            return outer.at(None) == inner.at(None)


@settings(max_examples=150)
@given(
    held=st.lists(grants(), max_size=4),
    roles=st.lists(st.builds(Role, NAMES, st.lists(MEMBERS, max_size=2).map(tuple)), unique_by=lambda role: role.name),
    owners=st.dictionaries(st.one_of(NAMESPACES.map(namespace_of), THINGS), GRANTEES, max_size=3),
    groups=st.frozensets(NAMES),
    asked=PRIVILEGES,
    securable=SECURABLES,
    ref=REFS,
)
def test_decision_is_that_of_reading_every_grant(
    held: list[Grant],
    roles: list[Role],
    owners: dict[Securable, Grantee],
    groups: frozenset[str],
    asked: Privilege,
    securable: Securable,
    ref: str | None,
) -> None:
    own = {Grantee(GranteeKind.PRINCIPAL, "a"), *(Grantee(GranteeKind.GROUP, group) for group in groups)}
    own |= {Grantee(GranteeKind.ROLE, role.name) for role in roles if own & set(role.members)}
    mine = [grant for grant in held if grant.grantee in own]
    mine += [Grant(owner, Privilege.ADMINISTER, owned) for owned, owner in owners.items() if owner in own]

    def may(privilege: Privilege, on: Securable) -> bool:
        return any(
            privilege in IMPLIED[grant.privilege]
            and covers(grant.securable, on)
            and (
                privilege not in ABOUT_REFS
                or grant.securable.ref is None
                or on.ref is None
                or fnmatchcase(on.ref, grant.securable.ref)
            )
            for grant in mine
        )

    def sees(on: Securable) -> bool:
        leads = on.kind is SecurableKind.NAMESPACE and any(
            covers(on, g.securable) for g in mine if g.securable != CATALOG
        )
        return on == CATALOG or may(Privilege.LIST, on) or leads

    by = AccessRules(held, roles, owners).of("a", groups)
    at_ref = securable.at(ref)
    assert by.may(asked, at_ref) is may(asked, at_ref)
    assert by.sees(securable) is sees(securable)
    expected = AccessDecision.FORBIDDEN if sees(securable) else AccessDecision.HIDDEN
    assert by.decide(asked, securable) is (AccessDecision.ALLOWED if may(asked, securable) else expected)
