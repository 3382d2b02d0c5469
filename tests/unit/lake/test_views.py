"""Views by name."""

import pytest

from bergline import Lake
from bergline.errors import AlreadyExistsError, NotFoundError
from support.fixtures.rows import ORDERS


def test_view_is_created_listed_renamed_and_dropped(lake: Lake) -> None:
    view = lake.create_view("db.v", "SELECT * FROM orders", ORDERS, properties={"owner": "a"})
    assert (view.sql(), view.properties["owner"]) == ("SELECT * FROM orders", "a")
    assert view.metadata.current_version.default_namespace == ("db",)
    assert lake.list_views() == lake.list_views("db") == ["db.v"]
    lake.rename_view("db.v", "db.w")
    assert (lake.view_exists("db.v"), lake.view_exists("db.w")) == (False, True)
    lake.drop_view("db.w")
    with pytest.raises(NotFoundError):
        lake.load_view("db.w")


def test_name_that_is_taken_is_refused_and_the_view_there_is_kept(lake: Lake) -> None:
    first = lake.create_view("db.v", "SELECT 1", ORDERS)
    with pytest.raises(AlreadyExistsError):
        lake.create_view("db.v", "SELECT 2", ORDERS)
    assert lake.create_view("db.v", "SELECT 2", ORDERS, if_not_exists=True).metadata == first.metadata
    lake.create_table("db.t", ORDERS)
    with pytest.raises(AlreadyExistsError):
        lake.create_view("db.t", "SELECT 1", ORDERS, if_not_exists=True)
    assert not lake.view_exists("none.v")
