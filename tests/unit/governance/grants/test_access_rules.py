"""Decisions on access."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.governance.grants.access_rules import AccessDecision, AccessRules, OwnerIndex, UnlimitedAccess
from bergline.governance.grants.grant import Grant, Grantee, Role, make_grants, parse_grantee, principal
from bergline.governance.grants.privilege import IMPLIED, Privilege
from bergline.governance.grants.securable import (
    ALL_REFS,
    CATALOG,
    SecurableKind,
    namespace_of,
    parse_securable,
    table_of,
)

P = Privilege
ORDERS = table_of(TableName(("db", "raw"), "orders"))
NOBODY: frozenset[str] = frozenset()


def rules(*texts: tuple[str, str, str] | tuple[str, str, str, str], roles: tuple[Role, ...] = ()) -> AccessRules:
    return AccessRules([grant for text in texts for grant in make_grants(*text)], roles)


def test_without_a_grant_nothing_is_denied() -> None:
    assert not AccessRules().is_active
    assert rules(("list", "catalog", "ann")).is_active


@pytest.mark.parametrize("on", ["catalog", "namespace db", "namespace db.raw", "table db.raw.orders"])
@pytest.mark.parametrize("held", list(Privilege))
def test_privilege_holds_for_everything_below_and_contains_others(on: str, held: Privilege) -> None:
    by = rules((held, on, "ann")).of("ann")
    assert {asked for asked in Privilege if by.may(asked, ORDERS)} == IMPLIED[held]
    neighbour = table_of(TableName(("dbx",), "orders"))
    assert by.may(P.LIST, neighbour) is (on == "catalog")


def test_what_leads_to_something_is_seen_and_nothing_beside_it() -> None:
    by = rules(("read", "table db.raw.orders", "ann")).of("ann")
    assert by.sees(CATALOG)
    assert by.sees(namespace_of(("db",)))
    assert by.sees(namespace_of(("db", "raw")))
    assert not by.sees(namespace_of(("db", "raw", "more")))
    assert not by.sees(namespace_of(("other",)))
    assert not by.may(P.LIST, namespace_of(("db",)))
    assert not by.sees(parse_securable("view db.raw.orders"))


def test_decision_tells_what_is_hidden_from_what_is_forbidden() -> None:
    by = rules(("list", "table db.raw.orders", "ann")).of("ann")
    new = parse_securable("table db.raw.new")
    assert by.decide(P.LIST, ORDERS) is AccessDecision.ALLOWED
    assert by.decide(P.READ, ORDERS) is AccessDecision.FORBIDDEN
    assert by.decide(P.READ, new) is AccessDecision.HIDDEN
    assert by.decide(P.CREATE, new, new.parent) is AccessDecision.FORBIDDEN
    assert by.decide(None, namespace_of(("db",))) is AccessDecision.ALLOWED
    assert by.decide(None, namespace_of(("x",))) is AccessDecision.HIDDEN


def test_pattern_limits_to_refs_and_not_what_is_read() -> None:
    by = rules(("write", "table db.raw.orders", "ann", "release/*")).of("ann")
    assert by.may(P.WRITE, ORDERS.at("release/1"))
    assert not by.may(P.WRITE, ORDERS.at("main"))
    assert by.may(P.WRITE, ORDERS)  # to some ref
    assert not by.may(P.WRITE, ORDERS.at(ALL_REFS))
    assert by.may(P.READ, ORDERS)
    everywhere = rules(("write", "catalog", "ann")).of("ann")
    assert everywhere.may(P.WRITE, ORDERS.at(ALL_REFS))


def test_groups_and_roles_give_what_they_hold() -> None:
    etl = Role("etl", (principal("ann"), parse_grantee("group:loaders")))
    found = rules(("write", "namespace db", "role:etl"), ("read", "catalog", "group:all"), roles=(etl,))
    assert found.of("ann").may(P.WRITE, ORDERS)
    assert found.of("bob", frozenset({"loaders"})).may(P.WRITE, ORDERS)
    assert not found.of("bob").sees(ORDERS)
    assert not found.of("etl").sees(ORDERS)
    assert found.of("bob", frozenset({"all"})).may(P.READ, ORDERS)
    assert not found.of("loaders", frozenset({"ann"})).sees(ORDERS)


def test_owner_may_do_everything_until_another_owns_it() -> None:
    found = AccessRules(make_grants("list", "catalog", "root"), owners={ORDERS: principal("ann")})
    assert all(found.of("ann").may(one, ORDERS) for one in Privilege)
    assert found.of("ann").sees(namespace_of(("db",)))
    assert not found.of("ann").sees(parse_securable("table db.raw.other"))
    found.note_owners({ORDERS: parse_grantee("group:team")})
    assert not found.of("ann").sees(ORDERS)
    assert not found.of("ann").sees(namespace_of(("db",)))
    assert found.of("bob", frozenset({"team"})).may(P.ADMINISTER, ORDERS)
    found.note_owners({ORDERS: None})
    assert not found.of("bob", frozenset({"team"})).sees(ORDERS)
    found.note_owners({namespace_of(("db",)): principal("ann")})
    assert found.of("ann").may(P.DROP, ORDERS)


def test_grant_says_itself_in_words() -> None:
    grant = Grant(Grantee(parse_grantee("role:etl").kind, "etl"), P.WRITE, ORDERS.at("release/*"))
    assert str(grant) == "write on table db.raw.orders ref release/* to role:etl"


def test_names_seen_in_a_namespace_are_those_that_may_be_seen_there() -> None:
    team = Role("team", (principal("ann"),))
    found = rules(
        ("read", "table db.raw.a", "ann"),
        ("write", "table db.raw.b", "ann", "release/*"),
        ("list", "view db.raw.v", "ann"),
        ("list", "table db.raw.r", "role:team"),
        ("list", "table db.raw.g", "group:etl"),
        ("list", "table db.other", "ann"),
        ("list", "namespace db.all", "ann"),
        roles=(team,),
    )
    owned = {parse_securable(f"table db.raw.{name}"): principal("ann") for name in ("a", "o", "p")}
    found.note_owners(owned | {parse_securable("namespace mine"): principal("ann")})
    found.note_owners({parse_securable("table db.raw.p"): principal("bob"), parse_securable("table db.raw.o"): None})
    found.note_owners({parse_securable("table db.raw.o"): principal("ann")})
    by, kind = found.of("ann", frozenset({"etl"})), SecurableKind.TABLE
    seen = by.names_seen(kind, ("db", "raw"))
    assert seen is not None
    assert set(seen) == {"a", "b", "g", "o", "r"}
    assert len(seen) == 6
    for name in "abgoprvx":
        assert (name in seen) is by.sees(table_of(TableName(("db", "raw"), name)))
    assert set(by.names_seen(SecurableKind.VIEW, ("db", "raw")) or ()) == {"v"}
    assert list(by.names_seen(kind, ("nowhere",)) or ()) == []
    for all_seen in (("db", "all"), ("db", "all", "below"), ("mine",)):
        assert by.names_seen(kind, all_seen) is None
    assert UnlimitedAccess().names_seen(kind, ("db", "raw")) is None


def test_names_of_owners_that_changed_are_not_kept() -> None:
    index = OwnerIndex(
        {parse_securable("table db.a"): principal("ann"), parse_securable("view db.a"): principal("ann")}
    )
    index.note({parse_securable("table db.a"): principal("bob"), parse_securable("view db.a"): None})
    assert index.names == {principal("ann"): {}, principal("bob"): {(SecurableKind.TABLE, ("db",)): {"a"}}}
