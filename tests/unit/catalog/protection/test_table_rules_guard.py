"""The guard of a catalog: every way to change a protected ref, with bergline's own library."""

import copy
import logging
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from bergline import Lake, Table
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.protection.caller import acting_as
from bergline.catalog.protection.decision import HeadReview
from bergline.catalog.protection.ref_change import NoRecords, RefChange
from bergline.catalog.protection.table_rules_guard import TableRulesGuard
from bergline.errors import InvalidInputError, ProtectedRefError
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long

ONLY_PUBLISH = {"bergline.ref-rules.main": "only-publish; fast-forward-only"}
NAME = parse_table_name("db.orders")


@pytest.fixture
def protected(lake: Lake) -> Table:
    """Orders with a protected `main`, an unpublished branch and an older metadata file to register."""
    table = lake.create_table("db.orders", ORDERS)
    table.append(order_rows(1)).append(order_rows(2))
    table.refs.create_branch("dev")
    table.append(order_rows(3), branch="dev")
    table.refs.protect("main", only_publish=True, fast_forward_only=True)
    return table


def replace(lake: Lake, *, rows: bool) -> None:
    with lake.stage_table("db.orders", ORDERS, replace=True) as table:
        if rows:
            table.append(order_rows(9))


def change_two(lake: Lake) -> None:
    lake.create_table("db.items", ORDERS)
    with lake.transaction() as transaction:
        transaction.load_table("db.items").append(order_rows(1))
        transaction.load_table("db.orders").append(order_rows(9))


def lift_and_write(lake: Lake) -> None:
    with lake.transaction() as transaction:
        table = transaction.load_table("db.orders")
        table.refs.unprotect("main")
        table.append(order_rows(9))


def create_and_publish(lake: Lake) -> None:
    with lake.transaction() as transaction:
        table = transaction.load_table("db.orders")
        table.refs.create_branch("new")
        table.append(order_rows(9), branch="new")
        table.refs.fast_forward("main", to="new")


def register_older(lake: Lake) -> None:
    assert isinstance(lake.catalog, PointerCatalog)
    older = lake.load_table("db.orders").metadata.metadata_log[-4].metadata_file
    lake.catalog.tables.register_over(NAME, older)


def connected_anew(lake: Lake) -> Lake:
    """The same lake, as another process opens it."""
    return copy.copy(lake)


FORBIDDEN: dict[str, Callable[[Lake], object]] = {
    "append": lambda lake: lake.load_table("db.orders").append(order_rows(9)),
    "delete": lambda lake: lake.load_table("db.orders").delete("id = 1"),
    "rollback": lambda lake: lake.load_table("db.orders").refs.rollback(
        to=lake.load_table("db.orders").metadata.snapshots[0].snapshot_id
    ),
    "replace with rows": lambda lake: replace(lake, rows=True),
    "replace": lambda lake: replace(lake, rows=False),
    "transaction of two tables": change_two,
    "unprotect and write at once": lift_and_write,
    "create a branch and publish it at once": create_and_publish,
    "drop": lambda lake: lake.drop_table("db.orders"),
    "purge": lambda lake: lake.purge_table("db.orders"),
    "unregister": lambda lake: lake.unregister_table("db.orders"),
    "rename": lambda lake: lake.rename_table("db.orders", "db.other"),
    "register over": register_older,
}


@pytest.mark.parametrize("way", FORBIDDEN)
def test_every_way_is_refused_and_changes_nothing(lake: Lake, protected: Table, way: str) -> None:
    before = lake.catalog.pointer(NAME)
    with pytest.raises(ProtectedRefError, match=r"branch `main` of table `db\.orders` is protected") as caught:
        FORBIDDEN[way](lake)
    assert (caught.value.table, caught.value.ref, caught.value.rule) == ("db.orders", "main", "main")
    assert caught.value.hints
    assert lake.catalog.pointer(NAME) == before
    assert protected.refresh().scan().to_arrow().num_rows == 2
    assert "db.items" not in lake.list_tables("db") or not lake.load_table("db.items").refs


@pytest.mark.parametrize(
    "publish",
    [
        lambda lake: lake.publish("dev"),
        lambda lake: lake.load_table("db.orders").refs.fast_forward("main", to="dev"),
        lambda lake: lake.load_table("db.orders").refs.merge("dev", into="main"),
        lambda lake: lake.load_table("db.orders").refs.cherry_pick("dev"),
    ],
)
def test_published_branch_gets_in(lake: Lake, protected: Table, publish: Callable[[Lake], object]) -> None:
    publish(lake)
    assert protected.refresh().scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("squash", [False, True])
def test_merge_on_top_of_another_gets_in(lake: Lake, protected: Table, squash: bool) -> None:
    protected.refs.create_branch("other")
    protected.append(order_rows(4), branch="other").append(order_rows(5), branch="other")
    lake.publish("dev")
    protected.refresh().refs.merge("other", into="main", squash=squash)
    assert protected.scan().to_arrow().num_rows == 5


def test_staged_write_is_published(lake: Lake, protected: Table) -> None:
    protected.append(order_rows(7), wap_id="w")
    lake.publish("dev")
    protected.refresh().refs.publish("w")
    assert protected.scan().to_arrow().num_rows == 4


def test_first_snapshot_of_an_empty_table_is_published_too(lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, properties=ONLY_PUBLISH)
    with pytest.raises(ProtectedRefError, match="found it created"):
        table.append(order_rows(1))
    table.append(order_rows(1), branch="dev")
    table.refs.fast_forward("main", to="dev")
    assert table.scan().to_arrow().num_rows == 1


def test_unprotected_table_is_changed_and_dropped(lake: Lake, protected: Table) -> None:
    protected.refs.unprotect("main")
    protected.append(order_rows(9))
    lake.purge_table("db.orders")
    assert lake.list_tables("db") == []


def test_table_whose_metadata_is_gone_can_be_dropped(lake: Lake, protected: Table) -> None:
    lake.catalog.io.delete([protected.metadata_location])
    with connected_anew(lake) as other:  # which has not read it before
        other.drop_table("db.orders")
    assert lake.list_tables("db") == []


def test_wrong_rules_are_refused_wherever_they_come_from(lake: Lake, orders: Table) -> None:
    wrong = {"bergline.ref-rules.main": "nothing"}
    with pytest.raises(InvalidInputError, match=r"bergline\.ref-rules\.main"):
        orders.set_properties(wrong)
    with pytest.raises(InvalidInputError, match=r"bergline\.ref-rules\.main"):
        lake.create_table("db.items", ORDERS, properties=wrong)
    assert lake.list_tables("db") == ["db.orders"]
    assert orders.refresh().refs.rules() == ()


def test_writers_are_known_by_name(orders: Table) -> None:
    orders.refs.protect("main", writers=["etl"])
    with acting_as("etl"):
        orders.append(order_rows(1))
    with acting_as("zoe"), pytest.raises(ProtectedRefError, match="only by `etl`, not by `zoe`"):
        orders.append(order_rows(2))


def test_bypass_is_noted_and_logged(orders: Table, caplog: pytest.LogCaptureFixture) -> None:
    orders.refs.protect("main", only_publish=True, bypass=["ann"])
    with acting_as("ann") as ann, caplog.at_level(logging.WARNING):
        orders.append(order_rows(1))
    assert [(n.operation, n.rule) for n in ann.notes[NAME]] == [("bypass_ref_rule", "main")]
    assert "`ann` bypasses a rule: branch `main` of table `db.orders`" in caplog.text


class OneReview(NoRecords):
    """Only one snapshot was checked, and approved by bob."""

    def __init__(self, head: int) -> None:
        self._head = head

    def review(self, table: TableName, table_uuid: str, snapshot_id: int, ref: str) -> HeadReview | None:
        del table, table_uuid, ref
        return HeadReview(frozenset({"dq"}), frozenset({"bob"})) if snapshot_id == self._head else None


def test_review_is_not_of_another_snapshot_that_takes_the_id(protected: Table) -> None:
    base, head = protected.metadata, protected.refs["dev"].snapshot_id
    ruled = msgspec.structs.replace(base, properties={"bergline.ref-rules.main": "checks=dq"})
    refs = ruled.refs | {"main": ruled.refs["dev"]}
    published = msgspec.structs.replace(ruled, refs=refs)
    RefChange(NAME, ruled, published).check(OneReview(head))
    forged = msgspec.structs.replace(
        published,
        snapshots=tuple(
            msgspec.structs.replace(s, manifest_list="memory:/forged") if s.snapshot_id == head else s
            for s in published.snapshots
        ),
    )
    with pytest.raises(ProtectedRefError, match="on which `dq` passed"):
        RefChange(NAME, ruled, forged).check(OneReview(head))


def test_guard_with_records_lets_in_what_has_passed(lake: Lake, protected: Table) -> None:
    head = protected.refs["dev"].snapshot_id
    protected.refs.protect("main", checks=["dq"], approvals=1)
    with pytest.raises(ProtectedRefError, match="on which `dq` passed"):
        lake.publish("dev")
    assert isinstance(lake.catalog, PointerCatalog)
    lake.catalog.guard = TableRulesGuard(records=OneReview(head))
    lake.publish("dev")
    assert protected.refresh().refs["main"].snapshot_id == head


def test_rule_with_bypass_is_changed_only_by_those(orders: Table) -> None:
    orders.refs.protect("main", only_publish=True, bypass=["ann"])
    with acting_as("zoe"):
        for change in (lambda: orders.refs.unprotect("main"), lambda: orders.refs.protect("main", no_drop=True)):
            with pytest.raises(ProtectedRefError, match="changed only by those who may bypass it, `ann`, not by `zoe`"):
                change()
    with acting_as("ann") as ann:
        orders.refs.unprotect("main")
    assert [(n.operation, n.rule) for n in ann.notes[NAME]] == [("change_ref_rule", "main")]
    assert orders.refs.rules() == ()


def test_drop_is_decided_on_the_pointer_that_is_dropped(lake: Lake, orders: Table) -> None:
    """A rule that another process adds after the table was loaded."""
    orders.append(order_rows(1))
    with connected_anew(lake) as other:
        other.load_table("db.orders").refs.protect("main", no_drop=True)
    with pytest.raises(ProtectedRefError):
        lake.drop_table("db.orders")


def test_no_writer_slips_in_after_a_rule(lake: Lake, orders: Table) -> None:
    heads: list[int] = []

    def write_until_refused(number: int) -> None:
        own = lake.load_table("db.orders")
        with pytest.raises(ProtectedRefError):
            list(map(own.append, [order_rows(number)] * 10_000))

    def protect() -> None:
        table = orders.append(order_rows(0)).append(order_rows(0))
        table.refs.protect("main", only_publish=True)
        heads.append(table.refs["main"].snapshot_id)

    run_at_once(protect, *(partial(write_until_refused, number) for number in (1, 2)))
    assert [orders.refresh().refs["main"].snapshot_id] == heads
