"""Finding the last state of a dropped table."""

import shutil
from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.catalog.identifiers import parse_table_name
from bergline.errors import FormatError, NotFoundError, RefusedError
from bergline.reports.dropped_table import find_dropped
from support.fixtures.rows import ORDERS, order_rows

NAME = parse_table_name("db.orders")


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def test_the_newest_state_is_found(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2))
    location = lake.unregister_table(NAME)
    found = find_dropped(lake, NAME)
    assert (found.metadata_location, found.missing_files) == (location, ())
    assert found.metadata == orders.metadata


def test_of_two_tables_with_the_name_the_last_is_found(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    lake.drop_table(NAME)
    again = lake.create_table(NAME, ORDERS).append(order_rows(2))
    assert again.location != orders.location
    with pytest.raises(NotFoundError):  # the second is not dropped yet, and is not taken for the first
        find_dropped(lake, NAME, location=again.location)
    location = lake.unregister_table(NAME)
    assert find_dropped(lake, NAME).metadata_location == location
    assert find_dropped(lake, NAME, location=orders.location).metadata_location == orders.metadata_location


def test_table_under_another_name_is_not_taken_for_a_dropped_one(lake: Lake, orders: Table) -> None:
    lake.rename_table(NAME, "db.renamed")
    lake.create_table("db.orders_of_others", ORDERS)
    lake.drop_table("db.orders_of_others")
    with pytest.raises(NotFoundError, match=r"no metadata of a dropped table `db\.orders`"):
        find_dropped(lake, NAME)


def test_two_files_of_the_last_version_are_refused(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    newest = local(orders.metadata_location)
    shutil.copy(newest, newest.with_name("00001-0b6e6c2e-93b0-4a0a-9e5c-1f5a1d6c2b11.metadata.json"))
    lake.drop_table(NAME)
    with pytest.raises(RefusedError, match="cannot tell which metadata file"):
        find_dropped(lake, NAME)


def test_missing_files_are_named(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2))
    files = orders.inspect("files").column("file_path").to_pylist()
    lake.drop_table(NAME)
    local(files[0]).unlink()
    assert find_dropped(lake, NAME).missing_files == (files[0],)
    manifest_list = orders.metadata.snapshots[0].manifest_list
    assert manifest_list is not None
    local(manifest_list).unlink()
    (reason,) = find_dropped(lake, NAME).missing_files
    assert manifest_list in reason


def test_broken_metadata_is_an_error(lake: Lake, orders: Table) -> None:
    lake.drop_table(NAME)
    local(orders.metadata_location).write_text("{")
    with pytest.raises(FormatError):
        find_dropped(lake, NAME)
