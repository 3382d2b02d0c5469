"""Whatever deletes files deletes those alone that lie in the table's own directories."""

import datetime as dt
from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.errors import RefusedError
from support.fixtures.rows import ORDERS, ids, order_rows

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def taker(lake: Lake, orders: Table) -> Table:
    """A table that has taken the files of another in place, and needs them no more."""
    orders.append(order_rows(1, 2))
    table = lake.create_table("db.taker", ORDERS)
    table.append_files([planned.file for planned in orders.scan().plan().files])
    table.append(order_rows(3))
    table.delete("true")
    table.append(order_rows(4))
    return table


def test_expiry_leaves_the_files_of_another_table(taker: Table, orders: Table) -> None:
    plan = taker.plan_expiry(older_than=FUTURE, retain_last=1)
    result = taker.expire(older_than=FUTURE, retain_last=1)
    assert (result.deleted_data_files, result.foreign_files) == (1, 1)
    assert str(result).endswith("; 1 file outside of its directories left")
    assert all(file.location.startswith(taker.location) for file in plan.files)
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


def test_orphans_are_not_looked_for_where_a_table_has_taken_files(taker: Table, orders: Table) -> None:
    taker.append_files([planned.file for planned in orders.scan().plan().files])
    with pytest.raises(RefusedError, match="it is not a directory of this table"):
        taker.plan_orphans(location=f"{orders.location}/data")


def test_purge_leaves_the_files_of_another_table(lake: Lake, taker: Table, orders: Table) -> None:
    orders_files = [planned.file for planned in orders.scan().plan().files]
    taker.append_files(orders_files)
    lake.drop_table("db.orders")  # there is no neighbour any more who would say that the files are its own
    lake.purge_table("db.taker")
    assert all(Path(file.file_path.removeprefix("file://")).exists() for file in orders_files)
    assert not list(Path(taker.location.removeprefix("file://")).rglob("*.parquet"))


def test_failed_append_leaves_the_files_of_another_table(lake: Lake, taker: Table, orders: Table) -> None:
    files = [planned.file for planned in orders.scan().plan().files]
    lake.drop_table("db.taker")
    with pytest.raises(Exception, match=r"db\.taker"):
        taker.append_files(files, discard_on_failure=True)
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


@pytest.mark.parametrize("how", ["location", "write.data.path"])
def test_files_in_a_directory_that_the_table_left_are_still_its_own(lake: Lake, tmp_path: Path, how: str) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1))
    if how == "location":
        table.set_location(f"file://{tmp_path}/new")
    else:
        table.set_properties({"write.data.path": f"file://{tmp_path}/new"})
        table.set_properties(remove=["write.data.path"])
    table.delete("true")
    result = table.expire(older_than=FUTURE, retain_last=1)
    assert (result.deleted_data_files, result.foreign_files) == (1, 0)
