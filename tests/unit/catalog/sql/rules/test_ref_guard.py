"""Rules and reviews of a SQL catalog, decided again in the transaction that moves the pointer."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Committed, LoadedTable, TableChange
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.protection.caller import StandIn, acting_as
from bergline.catalog.sql.governance_layout import GOVERNANCE
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import InvalidInputError, NotFoundError, ProtectedRefError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.updates import AddSnapshot, RemoveSnapshotRef, RemoveSnapshots, SetSnapshotRef
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long

NAME = parse_table_name("db.orders")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def governed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A lake with namespace `db`."""
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    with bergline.connect(uri, warehouse=tmp_path, name=f"guard-{tmp_path.name}", create=True) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture
def reviewed(governed: Lake) -> Table:
    """`dev` by etl one snapshot ahead of `main`, which needs a check and an approval; it has both."""
    table = governed.create_table("db.orders", ORDERS)
    table.append(order_rows(1))
    governed.rules.protect("main", namespace="db", only_publish=True, checks=["nulls"], approvals=1)
    with acting_as("etl"):
        table.append(order_rows(2), branch="dev")
    head = table.refs["dev"].snapshot_id
    governed.reviews.report_check("db.orders", head, "nulls", detail="0 of 10")
    with acting_as("ann"):
        governed.reviews.approve("db.orders", head)
    return table


def store_of(lake: Lake) -> SqlPointerStore:
    assert isinstance(lake.catalog, PointerCatalog)
    assert isinstance(lake.catalog.store, SqlPointerStore)
    return lake.catalog.store


def metadata_files(table: Table) -> set[str]:
    return {file for file in table.io.list(f"{table.metadata.location}/metadata") if ".metadata.json" in file}


def before_the_swap(lake: Lake, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something once after the guard has decided and the metadata file is written."""
    store = store_of(lake)
    swap_all, acts = store.swap_all, [act]

    def swap_later(*arguments: Any) -> bool:
        while acts:
            acts.pop()()
        return swap_all(*arguments)

    monkeypatch.setattr(store, "swap_all", swap_later)


def test_reviewed_head_is_published(governed: Lake, reviewed: Table) -> None:
    governed.publish("dev")
    assert reviewed.refresh().scan().to_arrow().num_rows == 2


def withdraw(lake: Lake, head: int) -> None:
    with acting_as("ann"):
        lake.reviews.withdraw("db.orders", head)


MEANWHILE: dict[str, tuple[Callable[[Lake, int], object], str]] = {
    "approval withdrawn": (withdraw, "moves only with 1 approval of others, and has 0"),
    "check failed": (
        lambda lake, head: lake.reviews.report_check("db.orders", head, "nulls", passed=False),
        "on which `nulls` passed",
    ),
    "check runs again": (
        lambda lake, head: lake.reviews.report_check("db.orders", head, "nulls", passed=None),
        "on which `nulls` passed",
    ),
    "rule set": (lambda lake, _: lake.rules.protect("ma*", writers=["zoe"]), "by the rule `ma*` of the catalog"),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_changed_between_guard_and_swap_refuses_the_commit(
    governed: Lake, reviewed: Table, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    act, sentence = MEANWHILE[what]
    head, files = reviewed.refs["dev"].snapshot_id, metadata_files(reviewed)
    pointer = governed.catalog.pointer(NAME)
    before_the_swap(governed, monkeypatch, lambda: act(governed, head))
    with pytest.raises(ProtectedRefError, match=sentence.replace("*", r"\*")):
        governed.publish("dev")
    assert governed.catalog.pointer(NAME) == pointer
    assert metadata_files(reviewed) == files


def test_withdrawal_waits_for_the_commit_that_counts_on_the_approval(governed: Lake, reviewed: Table) -> None:
    head, database = reviewed.refs["dev"].snapshot_id, store_of(governed).database
    withdrawing = threading.Thread(target=withdraw, args=(governed, head))
    waited: list[bool] = []

    def start(connection: sa.Connection, _: object) -> None:
        del connection
        withdrawing.start()
        withdrawing.join(0.1)
        waited.append(withdrawing.is_alive())

    with database.before_commit(start):
        governed.publish("dev")
    withdrawing.join()
    assert waited == [True]
    assert reviewed.refresh().refs["main"].snapshot_id == head
    assert [a.withdrawn for a in governed.reviews.approvals("db.orders", head)] == [True]


GONE: dict[str, Callable[[Lake], object]] = {
    "drop": lambda lake: lake.drop_table("db.orders"),
    "unregister": lambda lake: lake.unregister_table("db.orders"),
    "rename": lambda lake: lake.rename_table("db.orders", "db.other"),
}


@pytest.mark.parametrize("way", GONE)
def test_rule_set_right_before_a_table_goes_keeps_it(governed: Lake, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    governed.create_table("db.orders", ORDERS).append(order_rows(1))
    store = store_of(governed)
    method = "rename" if way == "rename" else "drop"
    change = getattr(store, method)

    def change_later(*arguments: Any) -> bool:
        governed.rules.protect("main", no_drop=True)
        return bool(change(*arguments))

    monkeypatch.setattr(store, method, change_later)
    with pytest.raises(ProtectedRefError, match="by the rule `main` of the catalog: it cannot be dropped"):
        GONE[way](governed)
    assert governed.list_tables("db") == ["db.orders"]


def test_rules_of_all_levels_hold(governed: Lake) -> None:
    governed.create_namespace("db.raw")
    table = governed.create_table("db.raw.items", ORDERS)
    table.append(order_rows(1))
    governed.rules.protect("main", no_rollback=True)
    governed.rules.protect("main", namespace="db", writers=["group:ops", "ann"])
    governed.rules.protect("v*", namespace="db.raw", kind="tag", no_move=True)
    table.refs.protect("main", no_expiry=True)
    with acting_as("zoe"), pytest.raises(ProtectedRefError, match=r"rule `main` of namespace `db`: .* not by `zoe`"):
        table.append(order_rows(2))
    with acting_as("zoe", {"ops"}):
        table.append(order_rows(2))
    with acting_as("group:ops"), pytest.raises(ProtectedRefError):
        table.append(order_rows(3))
    first = table.metadata.snapshots[0].snapshot_id
    with acting_as("ann"), pytest.raises(ProtectedRefError, match="of the catalog: it is not rolled back"):
        table.refs.rollback(to=first)
    table.refs.create_tag("v1")
    with pytest.raises(ProtectedRefError, match=r"rule `v\*` of namespace `db.raw`: it does not move"):
        table.refs.replace_tag("v1", at=first)
    other = governed.create_table("db.orders", ORDERS)
    with acting_as("ann"):
        other.append(order_rows(1))


def test_approvals_of_authors_do_not_count(governed: Lake, reviewed: Table) -> None:
    head = reviewed.refs["dev"].snapshot_id
    withdraw(governed, head)
    with acting_as("etl"):
        governed.reviews.approve("db.orders", head)
    for who in ("etl", "bob"):
        with acting_as(who), pytest.raises(ProtectedRefError, match="1 approval of others, and has 0"):
            governed.publish("dev")
    with acting_as("bob"):
        governed.reviews.approve("db.orders", head)
        with pytest.raises(ProtectedRefError, match="has 0"):
            governed.publish("dev")
    with acting_as("etl"):
        governed.publish("dev")


def test_reviews_of_another_table_with_the_same_uuid_do_not_count(governed: Lake, reviewed: Table) -> None:
    head = reviewed.refs["dev"].snapshot_id
    withdraw(governed, head)
    governed.register_table("db.copy", reviewed.refresh().metadata_location)
    with acting_as("ann"):
        governed.reviews.approve("db.copy", head)
    with pytest.raises(ProtectedRefError, match="1 approval of others, and has 0"):
        governed.publish("dev", tables=["db.orders"])


def test_reviews_are_void_when_the_table_goes(governed: Lake, reviewed: Table) -> None:
    head, place = reviewed.refs["dev"].snapshot_id, reviewed.refresh().metadata_location
    governed.rules.unprotect("main", namespace="db")
    governed.unregister_table("db.orders")
    governed.register_table("db.orders", place)
    assert [a.withdrawn for a in governed.reviews.approvals("db.orders", head)] == [True]
    assert [c.state for c in governed.reviews.checks("db.orders", head)] == ["pending"]


def test_snapshot_that_goes_while_it_is_approved_is_not_approved(
    governed: Lake, reviewed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, catalog = reviewed.refs["dev"].snapshot_id, governed.catalog
    load, loads = catalog.load_table, [catalog.load_table(NAME)]

    def load_once(name: TableName) -> LoadedTable:
        if not loads:
            return load(name)
        found = loads.pop()
        catalog.commit((TableChange(found, (), (RemoveSnapshotRef("dev"), RemoveSnapshots((head,)))),))
        return found

    monkeypatch.setattr(catalog, "load_table", load_once)
    with acting_as("bob"), pytest.raises(NotFoundError, match=f"no snapshot with id {head}"):
        governed.reviews.approve("db.orders", head)


def test_snapshot_that_comes_again_has_the_authors_of_both(governed: Lake, reviewed: Table) -> None:
    head = reviewed.refs["dev"].snapshot_id
    loaded = governed.catalog.load_table(NAME)
    snapshot = msgspec.structs.replace(loaded.metadata.snapshot(head), sequence_number=3)
    gone = governed.catalog.commit((TableChange(loaded, (), (RemoveSnapshotRef("dev"), RemoveSnapshots((head,)))),))
    assert isinstance(gone, Committed)
    with acting_as("bob"):
        again = (AddSnapshot(snapshot), SetSnapshotRef("dev", head, SnapshotRefType.BRANCH))
        assert isinstance(governed.catalog.commit((TableChange(gone.tables[0], (), again),)), Committed)
        governed.reviews.approve("db.orders", head)
    governed.reviews.report_check("db.orders", head, "nulls")
    with acting_as("zoe"), pytest.raises(ProtectedRefError, match="1 approval of others, and has 0"):
        governed.publish("dev")


def test_snapshot_in_the_place_of_another_has_the_authors_of_both(governed: Lake, reviewed: Table) -> None:
    head = reviewed.refs["dev"].snapshot_id
    loaded = governed.catalog.load_table(NAME)
    snapshot = msgspec.structs.replace(loaded.metadata.snapshot(head), sequence_number=3)
    anew = (
        RemoveSnapshotRef("dev"), RemoveSnapshots((head,)),
        AddSnapshot(snapshot), SetSnapshotRef("dev", head, SnapshotRefType.BRANCH),
    )  # fmt: skip
    with acting_as("bob"):
        assert isinstance(governed.catalog.commit((TableChange(loaded, (), anew),)), Committed)
        governed.reviews.approve("db.orders", head)
    governed.reviews.report_check("db.orders", head, "nulls")
    with acting_as("zoe"), pytest.raises(ProtectedRefError, match="1 approval of others, and has 0"):
        governed.publish("dev")


@pytest.mark.parametrize("has_moved_on", [False, True])
def test_checks_of_a_merged_head_count_for_what_the_server_makes_of_it_if_it_has_all_of_the_target(
    governed: Lake, reviewed: Table, has_moved_on: bool
) -> None:
    head = reviewed.refs["dev"].snapshot_id
    governed.rules.protect("main", namespace="db", only_publish=True, checks=["nulls"], approvals=1, bypass=["root!"])
    if has_moved_on:
        with acting_as("root!"):
            reviewed.refresh().append(order_rows(3))
    with acting_as("bob") as bob:
        bob.stands_for[NAME] = StandIn(head)
        if has_moved_on:
            with pytest.raises(ProtectedRefError, match="`nulls` passed"):
                reviewed.refs.merge("dev", into="main", squash=True)
        else:
            reviewed.refs.merge("dev", into="main", squash=True)
    assert reviewed.refresh().scan().to_arrow().num_rows == 2


def test_author_of_a_merged_branch_does_not_approve_it(governed: Lake, reviewed: Table) -> None:
    head = reviewed.refs["dev"].snapshot_id
    withdraw(governed, head)
    with acting_as("etl"):
        governed.reviews.approve("db.orders", head)
    with acting_as("bob") as bob:
        bob.stands_for[NAME] = StandIn(head)
        with pytest.raises(ProtectedRefError, match="has 0"):
            reviewed.refs.merge("dev", into="main", squash=True)


def test_authors_of_all_that_a_merged_branch_has_more_do_not_approve_it(governed: Lake) -> None:
    table = governed.create_table("db.orders", ORDERS)
    governed.rules.protect("main", namespace="db", only_publish=True, approvals=1, bypass=["root!"])
    for who, branch in (("root!", "main"), ("zoe", "dev"), ("etl", "dev"), ("root!", "main")):
        with acting_as(who):
            table.refresh().append(order_rows(3), branch=branch)
    head = table.refresh().refs["dev"].snapshot_id
    with acting_as("zoe"):
        governed.reviews.approve("db.orders", head)
    with acting_as("bob") as bob:
        bob.stands_for[NAME] = StandIn(head)
        with pytest.raises(ProtectedRefError, match="1 approval of others, and has 0"):
            table.refs.merge("dev", into="main", squash=True)
    with acting_as("root!"):  # who wrote what both have
        governed.reviews.approve("db.orders", head)
    with acting_as("bob") as bob:
        bob.stands_for[NAME] = StandIn(head)
        table.refs.merge("dev", into="main", squash=True)


def test_rules_of_a_table_must_agree_with_those_of_its_scopes(governed: Lake) -> None:
    governed.rules.protect("main", writers=["ann"])
    table = governed.create_table("db.orders", ORDERS)
    with pytest.raises(InvalidInputError, match=r"rules `ma.` and `main` of the catalog have in common"):
        table.refs.protect("ma*", writers=["zoe"])
    with pytest.raises(InvalidInputError, match="in common"):
        governed.create_table("db.items", ORDERS, properties={"bergline.ref-rules.main": "writers=zoe"})
    table.refs.protect("main", writers=["group:etl"])


def test_bypass_of_a_catalog_rule_is_noted(governed: Lake) -> None:
    table = governed.create_table("db.orders", ORDERS)
    governed.rules.protect("main", only_publish=True, bypass=["group:admins"])
    with acting_as("ann", {"admins"}) as ann:
        table.append(order_rows(1))
    assert [(note.operation, note.rule) for note in ann.notes[NAME]] == [("bypass_ref_rule", "main")]


def test_older_database_is_read_as_it_is_and_gets_the_tables_with_the_first_change(governed: Lake) -> None:
    table = governed.create_table("db.orders", ORDERS)
    database = store_of(governed).database
    with database.writing() as connection:
        GOVERNANCE.drop_all(connection)
        connection.execute(sa.text("DELETE FROM bergline_layout WHERE version >= 6"))
    config = governed._config
    assert config is not None
    with bergline.connect(config.uri, warehouse=config.warehouse, name=config.name) as older:
        assert older.rules.list() == ()
        assert older.load_table("db.orders").metadata == table.metadata
        with database.reading() as connection:
            assert not sa.inspect(connection).has_table("bergline_ref_rules")
        older.load_table("db.orders").append(order_rows(1))
        older.rules.protect("main", only_publish=True)
        with pytest.raises(ProtectedRefError):
            older.load_table("db.orders").append(order_rows(2))
