"""Which directories may contain orphan files, and who shares them."""

import pytest

from bergline import Lake, Table
from bergline.errors import RefusedError
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directories import HiddenNames, check_not_shared, directories_to_list
from support.fixtures.rows import ORDERS, order_rows

RULES = PathRules({}, {})


def to_list(lake: Lake, table: Table, location: str | None = None) -> tuple[str, ...]:
    return directories_to_list(lake.catalog.load_table(table.name), location, RULES)


def test_own_directories_are_listed_once(lake: Lake, orders: Table) -> None:
    assert to_list(lake, orders) == (orders.location,)
    orders.set_properties({"write.data.path": f"{orders.location}-data"})
    assert set(to_list(lake, orders)) == {orders.location, f"{orders.location}-data"}


def test_given_location_must_be_of_the_table(lake: Lake, orders: Table) -> None:
    inside = f"{orders.location}/data"
    assert to_list(lake, orders, inside) == (inside,)
    with pytest.raises(RefusedError, match="it is not a directory of this table"):
        to_list(lake, orders, f"{orders.location}-other")


def test_directory_of_another_table_is_refused(lake: Lake, orders: Table) -> None:
    loaded = lake.catalog.load_table(orders.name)
    lake.create_table("db.beside", ORDERS).append(order_rows(1))
    check_not_shared(lake.catalog, loaded, [orders.location], RULES)
    lake.create_table("db.inside", ORDERS, location=f"{orders.location}/inside")
    with pytest.raises(RefusedError, match=r"table `db\.inside` has files in .* too"):
        check_not_shared(lake.catalog, loaded, [orders.location], RULES)


def test_hidden_names_are_not_those_of_partitions(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    with table.update_spec() as spec:
        spec.rename_field("region", "_region")
    hidden = HiddenNames(table.metadata)
    assert [hidden.holds(p) for p in ("data/_tmp/x", "data/.x", "data/_region=eu/x", "data/x")] == [
        True,
        True,
        False,
        False,
    ]
