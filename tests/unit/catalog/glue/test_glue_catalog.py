"""A lake in AWS Glue: what Glue shows, and commits whose answers get lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.catalog import TableChange
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.glue_server import ANSWER_LOST, LATE_ERROR, NEVER_ARRIVES, THROTTLED, Fault, GlueProxy, refused


@pytest.fixture
def glue_lake(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as lake:
        lake.create_namespace("db")
        yield lake


def metadata_files(directory: Path) -> int:
    return len(list(directory.rglob("*.metadata.json")))


def test_new_tables_go_where_their_database_says(glue_lake: Lake, tmp_path: Path) -> None:
    glue_lake.create_namespace("far", {"location": f"file://{tmp_path}/elsewhere/"})
    assert glue_lake.create_table("far.orders", ORDERS).metadata.location == f"file://{tmp_path}/elsewhere/orders"
    assert glue_lake.create_table("db.orders", ORDERS).metadata.location == f"file://{tmp_path}/db/orders"


@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES, LATE_ERROR, THROTTLED])
def test_append_whose_answer_is_lost_is_there_once(
    glue: GlueProxy, glue_lake: Lake, tmp_path: Path, fault: Fault
) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    glue.fail("UpdateTable", fault)
    orders.append(order_rows(1))
    assert ids(glue_lake.load_table("db.orders").scan().to_arrow()) == [1]
    assert len(orders.metadata.snapshots) == 1
    assert metadata_files(tmp_path) == 2


@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES, LATE_ERROR, THROTTLED])
def test_table_whose_creation_was_not_answered_is_there(glue: GlueProxy, glue_lake: Lake, fault: Fault) -> None:
    glue.fail("CreateTable", fault)
    orders = glue_lake.create_table("db.orders", ORDERS)
    assert glue_lake.load_table("db.orders").metadata_location == orders.metadata_location


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable", "DeleteTable"])
@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES])
def test_rename_whose_answer_is_lost_is_carried_out(
    glue: GlueProxy, glue_lake: Lake, action: str, fault: Fault
) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    glue.fail(action, fault)
    glue_lake.rename_table("db.orders", "db.moved")
    assert glue_lake.list_tables("db") == ["db.moved"]
    assert glue_lake.load_table("db.moved").metadata_location == orders.metadata_location


def test_several_tables_at_once_are_refused_before_anything_is_written(glue_lake: Lake, tmp_path: Path) -> None:
    bases = [glue_lake.create_table(name, ORDERS) for name in ("db.a", "db.b")]
    with pytest.raises(UnsupportedError, match="this catalog moves one at a time"):
        glue_lake.catalog.commit(tuple(TableChange(glue_lake.catalog.load_table(b.name), (), ()) for b in bases))
    assert metadata_files(tmp_path) == 2


def test_append_that_is_not_allowed_says_so_at_once_and_leaves_nothing(
    glue: GlueProxy, glue_lake: Lake, tmp_path: Path
) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    glue.fail("UpdateTable", refused("AccessDeniedException"))
    with pytest.raises(RefusedError, match="AccessDeniedException"):
        orders.append(order_rows(1))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [orders.metadata_location.rpartition("/")[2]]


def test_table_is_not_created_over_one_that_is_not_iceberg(glue: GlueProxy, glue_lake: Lake, tmp_path: Path) -> None:
    glue.ask("CreateTable", DatabaseName="db", TableInput={"Name": "orders", "TableType": "EXTERNAL_TABLE"})
    with pytest.raises(AlreadyExistsError, match=r"`db\.orders` already, not an Iceberg table"):
        glue_lake.create_table("db.orders", ORDERS)
    assert metadata_files(tmp_path) == 0
    with pytest.raises(NotFoundError, match=r"no table `db\.orders`"):
        glue_lake.load_table("db.orders")


def test_name_in_capitals_finds_nothing_and_hints_at_the_right_one(glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS)
    with pytest.raises(NotFoundError) as caught:
        glue_lake.load_table("db.Orders")
    assert caught.value.near == ("db.orders",)


def test_nothing_is_lost_when_many_append_at_once(glue: GlueProxy, glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS)

    def work(first: int) -> None:
        table = glue_lake.load_table("db.orders")
        for number in range(3):
            table.append(order_rows(first * 100 + number))

    run_for_each(work, range(8))
    expected = sorted(first * 100 + number for first in range(8) for number in range(3))
    assert ids(glue_lake.load_table("db.orders").scan().to_arrow()) == expected
    assert glue.calls["UpdateTable"] >= 24


def test_without_a_warehouse_what_is_there_can_be_used(glue: GlueProxy, glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS).append(order_rows(1))
    with bergline.connect("glue://", properties=glue.properties) as lake:
        assert ids(lake.load_table("db.orders").append(order_rows(2)).scan().to_arrow()) == [1, 2]
        with pytest.raises(InvalidInputError, match="expected a warehouse for what is new in namespace `db`"):
            lake.create_table("db.more", ORDERS)
