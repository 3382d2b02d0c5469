"""Tables as far as they can be loaded."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError
from bergline.reports.found_table import find_table


def test_a_table_that_can_be_loaded_has_no_problem(lake: Lake, orders: Table) -> None:
    found = find_table(lake, orders.name)
    assert found.table is not None
    assert (found.metadata_location, found.problem) == (orders.metadata_location, None)


@pytest.mark.parametrize("damage", ["gone", "not json"])
def test_a_table_with_broken_metadata_is_found_with_its_problem(reopened: Lake, orders: Table, damage: str) -> None:
    file = Path(orders.metadata_location.removeprefix("file://"))
    file.unlink() if damage == "gone" else file.write_bytes(b"{]")
    found = find_table(reopened, orders.name)
    assert found.table is None
    assert found.metadata_location == orders.metadata_location
    assert found.problem is not None
    assert orders.metadata_location in found.problem.message


def test_a_table_that_the_catalog_does_not_have_is_an_error(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError, match=r"db\.nothing"):
        find_table(lake, TableName(("db",), "nothing"))
