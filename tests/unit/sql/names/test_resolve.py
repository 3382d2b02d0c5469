"""Names to tables of lakes."""

from bergline import Lake, Table
from bergline.sql.names.resolve import Lakes
from bergline.sql.names.selector import VersionSelector


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
