"""A catalog as a caller may use it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.catalog.catalog import Catalog, TableChange, ViewChange
from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError, RefusedError
from bergline.governance.granted_catalog import GrantedCatalog
from bergline.governance.grants.access_rules import AccessDecision, AccessRules, CallerAccess, UnlimitedAccess
from bergline.governance.grants.grant import make_grants
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.refusals import forbidden, hidden
from bergline.governance.grants.securable import CATALOG, Securable
from bergline.governance.grants.store import SqlGrants
from bergline.governance.lake_branches.store import SqlLakeBranches
from bergline.lake.handle import LakeHandle
from bergline.lake.pull_requests import pull_request_calls
from bergline.table.commits.retry import Timing
from support.fixtures.catalog_files import new_catalog_uri

T, NEW, V = TableName(("db",), "orders"), TableName(("db",), "new"), TableName(("db",), "recent")


class Checks:
    """Of grants that do not change."""

    def __init__(self, by: CallerAccess) -> None:
        self.by = by

    def check(self, privilege: Privilege | None, securable: Securable, seen: Securable | None = None) -> None:
        decision = self.by.decide(privilege, securable, seen)
        if decision is AccessDecision.HIDDEN:
            raise hidden(seen or securable)
        if decision is AccessDecision.FORBIDDEN and privilege is not None:
            raise forbidden("ann", privilege, securable)

    def sees(self, securable: Securable) -> bool:
        return self.by.sees(securable)

    def may(self, privilege: Privilege, securable: Securable) -> bool:
        return self.by.may(privilege, securable)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect(new_catalog_uri(tmp_path / "catalog.db"), create=True) as opened:
        opened.create_namespace("db")
        opened.create_namespace("empty")
        opened.create_table("db.orders", pa.schema([("id", pa.int64())]))
        opened.create_view("db.recent", "SELECT 1 AS id", pa.schema([("id", pa.int64())]))
        yield opened


def granted(lake: Lake, *held: tuple[str, str]) -> GrantedCatalog:
    grants = [grant for privileges, on in held for grant in make_grants(privileges, on, "ann")]
    store: Any = lake.catalog
    management = SqlGrants(store.store.database, store.store.catalog_name)
    rules = AccessRules([*grants, *make_grants("list", "catalog", "root")])
    requests = pull_request_calls(LakeHandle(lake.catalog, Timing()))
    return GrantedCatalog(
        lake.catalog, Checks(rules.of("ann")), management, requests, SqlLakeBranches(lake.catalog, store.store)
    )


def calls(lake: Lake) -> dict[str, Callable[[Catalog], object]]:
    table, view = lake.catalog.load_table(T), lake.catalog.load_view(V)
    return {
        "load_table": lambda c: c.load_table(T),
        "pointer": lambda c: c.pointer(T),
        "load_view": lambda c: c.load_view(V),
        "list_tables": lambda c: c.list_tables(("db",)),
        "list_branch_tables": lambda c: c.list_branch_tables(("db",)),
        "list_views": lambda c: c.list_views(("db",)),
        "list_namespaces": lambda c: c.list_namespaces(("db",)),
        "namespace_properties": lambda c: c.namespace_properties(("db",)),
        "update_namespace": lambda c: c.update_namespace(("db",), {"a": "b"}, ()),
        "default_location": lambda c: c.default_location(NEW),
        "check_location": lambda c: c.check_location(NEW, f"{table.metadata.location}-new"),
        "commit": lambda c: c.commit((TableChange(table, (), ()),)),
        "commit_view": lambda c: c.commit_view(ViewChange(view, (), ())),
        "create_namespace": lambda c: c.create_namespace(("db", "more"), {}),
        "create_view": lambda c: c.create_view(NEW, view.metadata),
        "rename_view": lambda c: c.rename_view(NEW, TableName(("db",), "newer")),
        "drop_view": lambda c: c.drop_view(V),
        "rename_table": lambda c: c.rename_table(T, NEW),
        "drop_table": lambda c: c.drop_table(NEW),
        "register_table": lambda c: c.register_table(T, table.metadata_location),
        "unregister_table": lambda c: c.unregister_table(T),
        "create_table": lambda c: c.create_table(T, table.metadata),
        "drop_namespace": lambda c: c.drop_namespace(("empty",)),
    }


def test_administrator_does_everything(lake: Lake) -> None:
    catalog = granted(lake, ("administer", "catalog"))
    for call in calls(lake).values():
        call(catalog)
    assert catalog.dropped_tables() == []
    assert catalog.namespace_exists(("db",))
    assert catalog.unchecked(None) is lake.catalog
    assert catalog.management().grants() == []


def test_stranger_does_nothing_and_learns_nothing(lake: Lake) -> None:
    catalog = granted(lake)
    for name, call in calls(lake).items():
        with pytest.raises(NotFoundError) as hidden_error:
            call(catalog)
        assert hidden_error.value.hints == (), name
    assert catalog.list_namespaces() == []
    assert not catalog.namespace_exists(("db",))
    for refused in (lambda: catalog.unchecked(None), catalog.management):
        with pytest.raises(RefusedError):
            refused()
    with pytest.raises(NotFoundError):
        catalog.unchecked(T)


def test_reader_sees_and_changes_nothing(lake: Lake) -> None:
    catalog = granted(lake, ("read", "namespace db"), ("list", "namespace empty"))
    reading = {"load_table", "pointer", "load_view", "namespace_properties", "commit", "rename_view", "drop_table"}
    for name, call in calls(lake).items():
        if name not in reading and not name.startswith("list"):
            with pytest.raises(RefusedError, match="expected the privilege"):
                call(catalog)
    assert catalog.list_tables(("db",)) == [T]
    with pytest.raises(NotFoundError, match=r"no table `db\.order`") as missing:
        catalog.load_table(TableName(("db",), "order"))
    assert missing.value.hints == ()


def test_every_method_of_a_catalog_is_checked(lake: Lake) -> None:
    methods = {name for name, value in vars(Catalog).items() if callable(value) and not name.startswith("_")}
    unchecked = {"refusals", "is_own_file", "close", "rule_levels"}  # they tell nothing, or what a table is loaded with
    without = {"purge_later", "footprints"}
    catalog = granted(lake)
    assert (catalog.purge_later(T), catalog.footprints(), lake.catalog.pointer(T) != "") == (False, None, True)
    lists = {"dropped_tables", "undrop_table", "dropped_views", "undrop_view", "namespace_exists"}
    assert methods == {*calls(lake), *unchecked, *without, *lists}


class PolicedChecks(Checks):
    """Of a caller who has everything by grants, and whom a policy lets administer nothing."""

    def check(self, privilege: Privilege | None, securable: Securable, seen: Securable | None = None) -> None:
        super().check(privilege, securable, seen)
        if privilege is Privilege.ADMINISTER:
            raise forbidden("ann", privilege, securable)


def test_who_may_not_administer_by_the_policy_is_no_administrator(lake: Lake) -> None:
    inner = granted(lake)
    by = PolicedChecks(UnlimitedAccess())
    assert by.may(Privilege.ADMINISTER, CATALOG)
    management: Any = None
    assert not GrantedCatalog(lake.catalog, by, management, inner.pull_requests, inner.lake_branches).is_administered
    assert GrantedCatalog(
        lake.catalog, Checks(UnlimitedAccess()), management, inner.pull_requests, inner.lake_branches
    ).is_administered
