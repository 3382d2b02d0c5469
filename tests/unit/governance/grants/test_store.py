"""Grants, roles and owners in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.governance_layout import GOVERNANCE
from bergline.catalog.sql.layout_version import GOVERNANCE_VERSION
from bergline.catalog.sql.migrations import LAYOUT
from bergline.catalog.sql.records import Records
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError
from bergline.governance.grants.grant import Grant, Grantee, GranteeKind, Role, make_grants, parse_grantee, principal
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import parse_securable
from bergline.governance.grants.store import SqlGrants
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.many_tables import watched

ADMINISTER = make_grants("administer", "catalog", "root")
READ = make_grants("read", "table db.orders", "ann")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    config = CatalogConfig(uri, f"file://{tmp_path}", f"grants-{tmp_path.name}", {}, 10.0, (), 10**6, True)
    catalog: Any = open_catalog(config)
    yield catalog.store
    catalog.close()


@pytest.fixture
def grants(store: SqlPointerStore) -> SqlGrants:
    return SqlGrants(store.database, store.catalog_name)


def audit(store: SqlPointerStore) -> list[tuple[str, str]]:
    return [(e.operation, e.resource) for e in Records(store.database, store.catalog_name).audit()]


def test_grants_are_kept_once_and_audited(store: SqlPointerStore, grants: SqlGrants) -> None:
    grants.grant(ADMINISTER)
    grants.grant([*READ, *make_grants("write", "table db.orders", "role-less", "release/*")])
    grants.grant(READ)
    assert [str(grant) for grant in grants.grants()] == [
        "administer on catalog to root",
        "read on table db.orders to ann",
        "write on table db.orders ref release/* to role-less",
    ]
    grants.revoke(READ)
    with pytest.raises(NotFoundError, match="no grant `read on table"):
        grants.revoke(READ)
    assert audit(store) == [
        ("grant", "access/administer on catalog to root"),
        ("grant", "access/read on table db.orders to ann"),
        ("grant", "access/write on table db.orders ref release/* to role-less"),
        ("revoke", "access/read on table db.orders to ann"),
    ]


def test_first_grant_is_made_in_the_database_and_the_last_one_goes_there(
    store: SqlPointerStore, grants: SqlGrants
) -> None:
    server = SqlGrants(store.database, store.catalog_name, from_afar=True)
    with pytest.raises(RefusedError, match="the first grant of a catalog is made in its database"):
        server.grant(ADMINISTER)
    with pytest.raises(RefusedError, match="cannot create a role yet"):
        server.create_role("etl")
    with pytest.raises(InvalidInputError, match="expected `administer on catalog` as the first grant"):
        grants.grant(READ)
    assert audit(store) == []
    grants.grant(ADMINISTER)
    server.grant(READ)
    for one in (server, grants):
        with pytest.raises(RefusedError, match="cannot remove the last `administer on catalog`"):
            one.revoke(ADMINISTER)
    server.revoke(READ)
    with pytest.raises(RefusedError, match="cannot remove the last"):
        server.revoke(ADMINISTER)
    assert grants.grants() == list(ADMINISTER)
    grants.revoke(ADMINISTER)
    assert not grants.rules()[1].is_active


def test_roles_have_members_and_go_with_their_grants(grants: SqlGrants) -> None:
    grants.grant(ADMINISTER)
    with pytest.raises(NotFoundError, match="no role `etl`"):
        grants.grant(make_grants("read", "catalog", "role:etl"))
    grants.create_role("etl")
    with pytest.raises(AlreadyExistsError, match="role `etl` exists already"):
        grants.create_role("etl")
    ann, team = principal("ann"), parse_grantee("group:team")
    grants.change_members("etl", [ann, team, ann], [])
    grants.change_members("etl", [], [ann])
    with pytest.raises(NotFoundError, match="no member `ann` in role `etl`"):
        grants.change_members("etl", [principal("bob")], [ann])
    assert grants.roles() == [Role("etl", (team,))]
    grants.grant(make_grants("read", "catalog", "role:etl"))
    grants.set_owner(parse_securable("table db.orders"), parse_grantee("role:etl"))
    grants.drop_role("etl")
    assert (grants.roles(), grants.grants(), grants.owners()) == ([], list(ADMINISTER), {})
    grants.create_role("admins")
    grants.grant(make_grants("administer", "catalog", "role:admins"))
    grants.revoke(ADMINISTER)
    with pytest.raises(RefusedError, match="cannot remove the last"):
        SqlGrants(grants._database, grants._catalog, from_afar=True).drop_role("admins")


def test_owner_and_grants_go_with_a_new_name(store: SqlPointerStore, grants: SqlGrants) -> None:
    grants.grant([*ADMINISTER, *READ])
    before, after = parse_securable("table db.orders"), parse_securable("table other.sales")
    with store.database.changing() as connection:
        grants.note_owner(connection, before, principal("bob"))
    known = grants.versions()
    with store.database.changing() as connection:
        grants.note_rename(connection, before, after)
    assert grants.owners() == {after: principal("bob")}
    assert Grant(principal("ann"), Privilege.READ, after) in grants.grants()
    assert grants.owners_since(known.newest) == {before: None, after: principal("bob")}
    assert grants.versions().of_grants > known.newest
    with store.database.changing() as connection:
        grants.note_owner(connection, after, None)
    assert grants.owners() == {}
    known = grants.versions()
    with store.database.changing() as connection:
        grants.note_owner(connection, after, None)
        grants.note_rename(connection, before, parse_securable("table db.new"))
    assert grants.versions() == known
    with pytest.raises(InvalidInputError, match="found the catalog"):
        grants.set_owner(parse_securable("catalog"), principal("ann"))


def test_refused_change_leaves_nothing(store: SqlPointerStore, grants: SqlGrants) -> None:
    grants.grant(ADMINISTER)
    known = grants.versions()
    with pytest.raises(NotFoundError):
        grants.grant([*READ, *make_grants("read", "catalog", "role:missing")])
    assert (grants.grants(), grants.versions()) == (list(ADMINISTER), known)
    assert len(audit(store)) == 1


def test_changes_at_the_same_time_all_count(grants: SqlGrants) -> None:
    grants.grant(ADMINISTER)
    known = grants.versions().newest
    together = threading.Barrier(4)

    def change(number: int) -> None:
        together.wait()
        grants.grant([*READ, *make_grants("read", "catalog", f"p{number}")])

    threads = [threading.Thread(target=change, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(grants.grants()) == 6
    assert grants.versions().newest == known + 4


def test_older_database_has_no_grants_and_is_left_as_it_is(store: SqlPointerStore, grants: SqlGrants) -> None:
    database = store.database
    if database.engine.dialect.name != "sqlite":
        pytest.skip("the database is shared by tests")
    with database.writing() as connection:
        GOVERNANCE.drop_all(connection)
        connection.execute(sa.delete(LAYOUT).where(LAYOUT.c.version >= GOVERNANCE_VERSION))
    assert (grants.grants(), grants.roles(), grants.owners(), grants.versions()) == ([], [], {}, (0, 0))
    assert not grants.rules()[1].is_active
    with database.reading() as connection:
        assert not sa.inspect(connection).has_table("bergline_grants")


def test_later_rules_read_only_the_owners_that_changed(store: SqlPointerStore, grants: SqlGrants) -> None:
    grants.grant(ADMINISTER)
    grants.create_role("team")
    for number in range(3):
        grants.set_owner(parse_securable(f"table db.t{number}"), principal("ann"))
    grants.set_owner(parse_securable("table db.teams"), Grantee(GranteeKind.ROLE, "team"))
    known = grants.rules()
    grants.grant(READ)
    grants.set_owner(parse_securable("table db.t1"), principal("bob"))
    grants.drop_role("team")
    with watched(store.database) as work:
        version, rules = grants.rules(known)
    owners = [text for text, _ in work.statements if "bergline_owners" in text]
    assert owners
    assert all("version > " in text for text in owners)
    newest = grants.rules()
    assert (version, rules.owners.by_key) == (newest[0], newest[1].owners.by_key)
    assert {who: owned for who, owned in rules.owners.owned.items() if owned} == newest[1].owners.owned
    assert rules.grants == newest[1].grants
    assert len(rules.owners.by_key) == 3
