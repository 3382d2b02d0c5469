"""Names to tables of lakes."""

import pytest

from bergline import Lake, Table
from bergline.errors import NotFoundError
from bergline.sql.names.engine_context import NoEngine
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.names.selector import VersionSelector
from support.fixtures.rows import order_rows


def test_names_resolve_to_tables_first_then_to_selectors(lake: Lake, orders: Table) -> None:
    lakes = Lakes({"lake": lake}, "lake")

    def selector(*name: str) -> VersionSelector | None:
        target = lakes.resolve(name)
        return target and target.selector

    assert selector("db", "orders") == selector("lake", "db", "orders") == VersionSelector()
    assert selector("db", "orders", "refs") == VersionSelector(metadata_table="refs")
    assert selector("lake", "db", "orders", "SNAPSHOTS") == VersionSelector(metadata_table="snapshots")
    assert selector("db", "orders", "branch_a/b") == VersionSelector(branch="a/b")
    assert selector("db", "orders", "tag_v1") == VersionSelector(ref="v1")
    assert selector("db", "orders", "snapshot_id_7") == VersionSelector(snapshot_id=7)
    assert selector("db", "orders", "at_timestamp_7") == VersionSelector(as_of_ms=7)
    assert selector("elsewhere", "orders") is None
    lake.create_namespace("db.orders")
    lake.create_table("db.orders.refs", orders.schema)
    assert selector("db", "orders", "refs") == VersionSelector()
    assert selector("db", "orders", "history") == VersionSelector(metadata_table="history")


class _CaseSensitive(NoEngine):
    @property
    def is_case_sensitive(self) -> bool:
        return True


def test_names_in_another_case_mean_the_only_one_that_fits(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("Audit")
    lakes = Lakes({"lake": lake}, "lake")
    for name in (("DB", "Orders"), ("lake", "Db", "ORDERS")):
        target = lakes.resolve(name)
        assert target is not None
        assert target.table.name == orders.name
        assert lakes.place_existing(name) == (lake, ("db", "orders"))
    branch = lakes.resolve(("DB", "ORDERS", "BRANCH_audit"))
    assert branch is not None
    assert branch.selector == VersionSelector(branch="Audit")
    assert lakes.place_namespace(("DB",)) == (lake, ("db",))
    assert lakes.place(("DB", "New")) == (lake, ("db", "New"))
    with pytest.raises(NotFoundError, match=r"no table `db\.ordres`"):
        lakes.resolve(("DB", "ordres"))
    exact = Lakes({"lake": lake}, "lake", engine=_CaseSensitive())
    assert exact.resolve(("DB", "orders")) is None
    with pytest.raises(NotFoundError, match=r"no table `db\.Orders`"):
        exact.resolve(("db", "Orders"))


def test_a_name_that_fits_several_in_another_case_is_none_of_them(lake: Lake, orders: Table) -> None:
    lake.create_table("db.ORDERS", orders.schema)
    lakes = Lakes({"lake": lake}, "lake")
    found = [lakes.resolve(("db", name)) for name in ("orders", "ORDERS")]
    assert [str(target and target.table.name) for target in found] == ["db.orders", "db.ORDERS"]
    with pytest.raises(NotFoundError, match=r"no table `db\.Orders`"):
        lakes.resolve(("db", "Orders"))
    refs = orders.append(order_rows(1)).refs
    refs.create_branch("a")
    refs.create_branch("A")
    target = lakes.resolve(("db", "orders", "branch_A"))
    assert target is not None
    assert target.selector == VersionSelector(branch="A")


def test_a_lake_is_named_at_its_refs(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("staging")
    orders.append(order_rows(2))
    lakes = Lakes({"lake": lake, "lake@home": lake.at("staging")}, "lake")

    def head(*name: str) -> int | None:
        target = lakes.resolve(name)
        return None if target is None else target.table.metadata.current_snapshot_id

    at_main, at_staging = (orders.refs[ref].snapshot_id for ref in ("main", "staging"))
    assert head("lake@staging", "db", "orders") == head("lake@home", "db", "orders") == at_staging
    assert head("lake@main", "db", "orders") == head("lake@home@main", "db", "orders") == at_main
    assert head("other@staging", "db", "orders") is None
    at = lakes.by_name("lake@staging")
    assert Lakes({"lake": lake}, "lake").by_name("lake@staging") is at
    assert (lakes.name_of(at), lakes.names) == ("lake@staging", ["lake", "lake@home"])
    assert lakes.place_namespace(("lake@staging", "DB")) == (at, ("db",))
    assert lakes.place_new_namespace(("lake@staging", "new")) == (at, ("new",))
    lakes.use(at, ("db",))
    assert Lakes({"lake": lake}, "lake", lakes.current).default is at
    assert lakes.within("lake@staging").default is at
    with pytest.raises(NotFoundError, match="no branch or tag `stagin`"):
        lakes.find("lake@stagin")


def test_another_lake_is_used_when_the_ref_in_use_is_gone(lake: Lake) -> None:
    lakes = Lakes({"lake": lake}, "lake", Current("lake@gone", ("db",)))
    with pytest.raises(NotFoundError, match="no branch or tag `gone`"):
        lakes.place(("orders",))
    lakes.use(lakes.by_name("lake"), ())
    assert Lakes({"lake": lake}, "lake", lakes.current).default is lake
    with pytest.raises(NotFoundError, match="no lake `attached before`"):
        lakes.by_name("attached before")
