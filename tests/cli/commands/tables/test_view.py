"""`bergline view`."""

import json

import pytest

from bergline import Lake
from bergline.catalog.catalog import DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.records import sql_store_of
from support.fixtures.rows import ORDERS
from support.processes.command_line import Command


@pytest.fixture(autouse=True)
def _view(lake: Lake) -> None:
    lake.create_view("db.v", "SELECT 1 AS id", ORDERS)


def test_views_are_listed_shown_and_dropped(bl: Command, lake: Lake) -> None:
    assert bl("view", "list").stdout == "db.v\n"
    assert json.loads(bl("view", "list", "--namespace", "db", "--json").stdout) == ["db.v"]
    assert bl("view", "show", "db.v").stdout.splitlines()[1].split(maxsplit=1) == ["spark", "SELECT 1 AS id"]
    assert json.loads(bl("view", "show", "db.v", "--json").stdout)["queries"] == {"spark": "SELECT 1 AS id"}
    done = bl("view", "drop", "db.v")
    assert "nothing was done" in done.stderr
    assert bl("view", "drop", "db.v", "--yes").stdout.startswith("dropped view `db.v`; its last metadata file is ")
    assert lake.list_views() == []


def test_view_in_the_trash_of_a_server_is_listed_and_comes_back(bl: Command, lake: Lake) -> None:
    store, location = sql_store_of(lake.catalog), lake.load_view("db.v").metadata_location
    lake.drop_view("db.v")
    assert "no trash here" in bl("view", "dropped").stderr
    with store.database.changing() as connection:
        for number in (1, 2):
            store.view_trash.add(connection, DroppedView(TableName(("db",), "v"), location, number, 9, "ann"))
    done = bl("view", "dropped", "--limit", "1")
    assert "there are more than 1 view in the trash" in done.stderr
    assert done.stdout.count("db.v") == 1
    assert len(json.loads(bl("view", "dropped", "--json").stdout)) == 2
    assert bl("view", "undrop", "db.v").stdout == "view `db.v` is back\n"
    assert json.loads(bl("view", "undrop", "db.v", "--to", "db.w", "--json").stdout)["view"] == "db.w"
    assert "no dropped view `db.v`" in bl("view", "undrop", "db.v").stderr
    assert lake.list_views() == ["db.v", "db.w"]
